// Checks and loops of pointwise functions.
#include "elementwise.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

namespace emu {

namespace {

constexpr int kTilingError = 561002;

bool is_number(Role role) {
    return role == Role::scalar || role == Role::integer || role == Role::real || role == Role::boolean;
}

bool reads_tensor(const Parameter& p) { return p.role == Role::tensor && (!p.output || p.in_place); }

template <class T>
std::vector<T> numbers(const Run& r, const std::vector<int>& operands, int dtype) {
    std::vector<T> out;
    for (int i = 0; i < r.function->count; ++i) {
        Role role = r.function->parameters[i].role;
        if (!is_number(role) || std::find(operands.begin(), operands.end(), i) != operands.end()) continue;
        const Value& v = r.values[size_t(i)];
        if (role == Role::scalar) out.push_back(v.given ? scalar_value<T>(v.scalar, dtype) : T(0));
        else if (role == Role::real) out.push_back(convert<T>(v.real));
        else out.push_back(convert<T>(v.integer));
    }
    return out;
}

template <class T>
void run_typed(Run& r, const Pointwise& f, Formula<T> formula, int dtype) {
    const Tensor& out = r.output();
    std::vector<int> places = operand_places(r, f);
    std::vector<std::vector<T>> x;
    for (int place : places) x.push_back(read_operand<T>(r, place, out.dims, dtype, f.gives_bool));
    if constexpr (std::is_same_v<T, int64_t>)
        if (dtype == ACL_UINT64 && f.gives_bool && f.operands == 2)  // the order of unsigned numbers, seen as signed
            for (auto& list : x)
                for (T& one : list) one ^= INT64_MIN;
    std::vector<T> k = numbers<T>(r, places, dtype);
    std::vector<T> y(size_t(out.numel()));
    T v[3] = {};
    bool rounds = !f.gives_bool && out.dtype != dtype;
    for (size_t i = 0; i < y.size(); ++i) {
        for (size_t j = 0; j < x.size(); ++j) v[j] = x[j][i];
        y[i] = formula(v, k.data());
        if (rounds) y[i] = narrow<T>(y[i], dtype);
    }
    r.write(out, y);
}

// Axes that all operands stretch in the same way are one axis to the kernel.
int collapsed_rank(const Plan& p, const Pointwise& f, const Dims& out) {
    std::vector<int> places = operand_places(p, f);
    int rank = 0;
    std::vector<bool> before;
    for (int d = 0; d < out.n; ++d) {
        if (out[d] == 1) continue;
        std::vector<bool> stretched;
        for (int i : places) {
            if (p.function->parameters[i].role != Role::tensor) continue;
            const Dims& dims = p.values[size_t(i)].tensor.dims;
            int at = d - (out.n - dims.n);
            stretched.push_back(at < 0 || dims[at] == 1);
        }
        if (rank == 0 || stretched != before) ++rank;
        before = stretched;
    }
    return rank;
}

// These broadcast on the slower processor, which takes fewer axes.
bool broadcasts_few_axes(int dtype) {
    return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128 || dtype == ACL_DOUBLE || dtype == ACL_INT16 ||
           dtype == ACL_UINT16 || dtype == ACL_UINT64;
}

uint64_t cast_bytes(const Tensor& t, int dtype) {
    return t.dtype == dtype ? 0 : (uint64_t(t.numel()) * size_of(dtype) + 511) / 512 * 512;
}

// Their documents say that all tensors have one dtype.
const std::set<std::string_view>& one_dtype() {
    static const std::set<std::string_view> names = {
        "aclnnCeil",       "aclnnFloor",       "aclnnRound",  "aclnnTrunc",  "aclnnFrac",        "aclnnGelu",
        "aclnnGeluV2",     "aclnnFastGelu",    "aclnnLerp",   "aclnnLgamma", "aclnnInplaceLerp", "aclnnBitwiseNot",
        "aclnnEluBackward", "aclnnHardtanh",   "aclnnThresholdBackward",     "aclnnSoftsign",    "aclnnHardShrink",
        "aclnnTruncateMod", "aclnnSiluMul",
    };
    return names;
}

// Their documents say so of what is read.
const std::set<std::string_view>& one_input_dtype() {
    static const std::set<std::string_view> names = {
        "aclnnIsClose", "aclnnLerps", "aclnnInplaceLerps", "aclnnSoftshrinkBackward", "aclnnSoftsignBackward",
    };
    return names;
}

}  // namespace

int promoted(const Call& call, const std::vector<int>& places) {
    int dtype = ACL_DT_UNDEFINED;
    bool any = false;
    for (int i : places)
        if (call.function->parameters[i].role == Role::tensor) {
            int next = call.values[size_t(i)].tensor.dtype;
            dtype = any ? promote(dtype, next) : next;
            any = true;
        }
    for (int i : places)
        if (call.function->parameters[i].role == Role::scalar)
            dtype = promote_scalar(dtype, call.values[size_t(i)].scalar.dtype);
    return dtype;
}

void casts_into(const Plan& p, int from, const Tensor& to) {
    p.require(castable(from, to.dtype), "the result has dtype %s, which cannot be cast to %s, the dtype of the output",
              dtype_name(from), dtype_name(to.dtype));
}

void check_same_dtypes(const Plan& p) {
    bool all = one_dtype().count(p.function->name) != 0;
    if (!all && !one_input_dtype().count(p.function->name)) return;
    int first = -1;
    for (int i = 0; i < p.function->count; ++i) {
        const Parameter& q = p.function->parameters[i];
        if (q.role != Role::tensor || !p.values[size_t(i)].given || (!all && !reads_tensor(q))) continue;
        if (first < 0) first = i;
        p.same_dtype(p.function->parameters[first].name, q.name);
    }
}

std::vector<int> operand_places(const Call& call, const Pointwise& f) {
    std::vector<int> places;
    places.reserve(size_t(f.operands));
    for (int i = 0; i < call.function->count && int(places.size()) < f.operands; ++i) {
        const Parameter& p = call.function->parameters[i];
        if (!f.by_place && !reads_tensor(p)) continue;
        if (!call.values[size_t(i)].given) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null; this call needs it", p.name);
        places.push_back(i);
    }
    return places;
}

int compute_dtype(const Call& call, const Pointwise& f) {
    int dtype = promoted(call, operand_places(call, f));
    if (dtype == ACL_DT_UNDEFINED) refuse(ACLNN_ERR_PARAM_INVALID, "the dtypes of the operands do not promote");
    if (is_integer(dtype) && f.integer == nullptr) dtype = ACL_FLOAT;
    bool has = is_complex(dtype) ? f.complex != nullptr : is_real(dtype) ? f.real != nullptr : true;
    if (!has) refuse(ACLNN_ERR_PARAM_INVALID, "operands of dtype %s are not supported", dtype_name(dtype));
    return dtype;
}

void plan_pointwise(Plan& p, const Pointwise& f) {
    check_same_dtypes(p);
    for (int i = 0; i < p.function->count; ++i) {
        const Parameter& q = p.function->parameters[i];
        if (q.role == Role::scalar && !p.values[size_t(i)].given && std::strstr(q.name, "Optional") == nullptr)
            refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null; this call needs it", q.name);
    }
    Dims shape;
    for (int i : operand_places(p, f)) {
        if (p.function->parameters[i].role != Role::tensor) continue;
        const Dims& one = p.values[size_t(i)].tensor.dims;
        Dims next;
        p.require(broadcast(shape, one, &next), "shapes %s and %s do not broadcast", text(shape).c_str(),
                  text(one).c_str());
        shape = next;
    }
    const Tensor& out = p.output();
    p.require(out.dims == shape, "the output has shape %s, expected %s", text(out.dims).c_str(), text(shape).c_str());
    int dtype = compute_dtype(p, f);
    if (!f.gives_bool) casts_into(p, dtype, out);
    if (broadcasts_few_axes(dtype) && collapsed_rank(p, f, shape) >= 6)
        refuse(kTilingError, "operands of dtype %s broadcast over %d axes, at most 5 are supported", dtype_name(dtype),
               collapsed_rank(p, f, shape));
    // Operands and results of another dtype are cast in the workspace.
    for (int i : operand_places(p, f))
        if (p.function->parameters[i].role == Role::tensor)
            p.workspace += cast_bytes(p.values[size_t(i)].tensor, dtype);
    if (!f.gives_bool) p.workspace += cast_bytes(out, dtype);
}

void run_pointwise(Run& r, const Pointwise& f) {
    int dtype = compute_dtype(r, f);
    switch (category(dtype)) {
        case Category::Integer: run_typed<int64_t>(r, f, f.integer, dtype); break;
        case Category::Real: run_typed<double>(r, f, f.real, dtype); break;
        case Category::Complex: run_typed<Complex>(r, f, f.complex, dtype); break;
    }
}

}  // namespace emu
