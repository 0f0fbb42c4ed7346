// Grouped products of small integers with what follows them fused: the gate and its quantization, or the way back from
// the order of experts to the order of tokens.
//
// The formulas are not in the facts; they are the ones of the functions' public descriptions. Weights of four bits under
// INT8 rows: the unit splits a row into high and low halves, lowers the low half by 8, and the caller's bias is what puts
// 8 * scale * (sum of the column) back, so the result is (x @ w - 8 * sum(w)) * scale + bias.
//
// Small floats are multiplied alike. Where their scales are of FLOAT8_E8M0 these stand in pairs (block_scales.h), and so do
// those of a gated result.
#include "activation.h"
#include "block_scales.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

// Names differ between versions: the first one the function has.
const char* first_of(const Call& c, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (has_parameter(c, name)) return name;
    throw std::logic_error("no such parameter");
}

const Tensor& listed(const Call& c, const char* name) {
    const Value& v = c.at(name);
    if (!v.tensors.empty()) return v.tensors[0];
    return c.tensor(name);
}

bool present(const Call& c, const char* name) { return given(c, name) && (c.at(name).tensors.empty() || c.at(name).tensors[0].numel() > 0) && listed(c, name).numel() > 0; }

struct Groups {
    const char *x, *weight, *scale, *bias, *rows, *list;
};

Groups names_of(const Call& c) {
    return {first_of(c, {"x1", "x"}),
            first_of(c, {"x2", "weight", "w"}),
            first_of(c, {"weightScale", "scaleOptional", "scale"}),
            first_of(c, {"weightAssistMatrix", "biasOptional", "bias"}),
            first_of(c, {"xScale", "pertokenScaleOptional"}),
            first_of(c, {"groupListOptional", "groupList"})};
}

Tensor standing(const Call& c, Tensor w) {
    for (const char* flag : {"transposeX2", "transposeW"})
        if (has_parameter(c, flag) && c.flag(flag) && w.rank() >= 3) std::swap(w.dims[1], w.dims[2]), std::swap(w.strides[1], w.strides[2]);
    return w;
}

Tensor weight_of(const Call& c, const Groups& g) { return standing(c, half_bytes(listed(c, g.weight))); }

// The pairs of scales of all weights, laid as these are.
Tensor pairs_of(const Call& c, const Groups& g) { return standing(c, listed(c, g.scale)); }
bool paired(const Call& c, const Groups& g) { return c.has(g.scale) && listed(c, g.scale).dtype == ACL_FLOAT8_E8M0; }

void plan_operands(const Plan& p, const Groups& g, const Tensor& x, const Tensor& w) {
    bool floats = is_narrow_float(x.dtype);
    p.require(floats ? is_narrow_float(w.dtype) : x.dtype == ACL_INT8 && (w.dtype == ACL_INT8 || w.dtype == ACL_INT4),
              "%s has dtype %s and %s %s; expected small floats, or INT8 and INT8 or INT4", g.x, dtype_name(x.dtype), g.weight, dtype_name(w.dtype));
    p.require(w.rank() == 3 && x.rank() == 2 && x.dims[1] == w.dims[1], "%s has shape %s, %s %s", g.x, text(x.dims).c_str(),
              g.weight, text(w.dims).c_str());
    p.require(p.has(g.scale) && p.has(g.list), "%s and %s must be given", g.scale, g.list);
    p.require(!paired(p, g) || floats, "%s has dtype FLOAT8_E8M0, %s %s", g.scale, g.x, dtype_name(x.dtype));
}

void plan_all_pairs(const Plan& p, const Groups& g, const Tensor& x, const Tensor& w) {
    Dims want = pair_dims(w.dims[1], w.dims[2], 0), have = pairs_of(p, g).dims;
    want = Dims{w.dims[0], want[0], want[1], want[2]};
    p.require(have == want, "%s has shape %s, expected a pair for each 64 rows of %s %s", g.scale, text(have).c_str(), g.weight, text(w.dims).c_str());
    p.require(present(p, g.rows) && p.tensor(g.rows).dtype == ACL_FLOAT8_E8M0, "%s must have pairs of FLOAT8_E8M0 as %s has", g.rows, g.scale);
    plan_pairs(p, g.rows, x.dims, 1, 1);
}

// (groups, inner, columns)
Dims plan_groups(const Plan& p, const Groups& g) {
    need_elements(p, {g.weight, g.scale});
    for (const char* name : {g.weight, g.scale, g.bias})
        p.require(!given(p, name) || p.at(name).tensors.size() <= 1, "%s: the emulator computes lists of one tensor", name);
    for (const char* name : {"transposeX1", "transposeX"})
        p.require(!has_parameter(p, name) || !p.flag(name), "%s must be false", name);
    for (const char* name : {"offset", "offsetOptional", "antiquantScaleOptional", "antiquantOffsetOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator: the documents state no formula for it", name);
    const Tensor &x = p.tensor(g.x), w = weight_of(p, g);
    plan_operands(p, g, x, w);
    if (paired(p, g)) plan_all_pairs(p, g, x, w);
    p.require(paired(p, g) || listed(p, g.scale).numel() % (w.dims[0] * std::max<int64_t>(w.dims[2], 1)) == 0, "%s has shape %s", g.scale,
              text(listed(p, g.scale).dims).c_str());
    p.require(p.tensor(g.list).numel() == w.dims[0], "%s has %lld elements for %lld groups", g.list,
              static_cast<long long>(p.tensor(g.list).numel()), static_cast<long long>(w.dims[0]));
    if (present(p, g.rows) && !paired(p, g))
        p.require(p.tensor(g.rows).dtype != ACL_FLOAT8_E8M0 && p.tensor(g.rows).numel() == x.dims[0], "%s has shape %s", g.rows, text(p.tensor(g.rows).dims).c_str());
    if (present(p, g.bias))
        p.require(listed(p, g.bias).numel() == w.dims[0] * w.dims[2], "%s has shape %s", g.bias, text(listed(p, g.bias).dims).c_str());
    if (has_parameter(p, "groupListType"))
        p.require(p.integer("groupListType") == 0 || p.integer("groupListType") == 1, "groupListType must be 0 or 1");
    return w.dims;
}

// Rows of floats; those behind the last group are zero, and `used` says how many are not.
Values grouped(const Run& r, const Groups& g, int64_t* used) {
    const Tensor &xt = r.tensor(g.x), wt = weight_of(r, g);
    int64_t rows = xt.dims[0], inner = wt.dims[1], columns = wt.dims[2];
    auto x = r.read<double>(xt), w = r.read<double>(wt);
    Values scale(size_t(wt.dims[0] * columns), 1), bias, per_row(size_t(rows), 1), y(size_t(rows * columns), 0);
    if (paired(r, g)) {
        scale_pairs(x, r.read<double>(r.tensor(g.rows)), rows, inner, 1);
        scale_pairs(w, r.read<double>(pairs_of(r, g)), inner, columns, 0);
    } else {
        scale = read_scale(r, listed(r, g.scale));
    }
    if (present(r, g.bias)) bias = r.read<double>(listed(r, g.bias));
    if (present(r, g.rows) && !paired(r, g)) per_row = r.read<double>(r.tensor(g.rows));
    auto ends = r.read<int64_t>(r.tensor(g.list));
    bool counts = has_parameter(r, "groupListType") && r.integer("groupListType") == 1;
    for (size_t i = 1; counts && i < ends.size(); ++i) ends[i] += ends[i - 1];
    auto of = groups_of(ends, rows);
    *used = ends.empty() ? 0 : std::min(std::max<int64_t>(ends.back(), 0), rows);
    bool halves = wt.dtype == ACL_INT4;
    int64_t blocks = int64_t(scale.size()) / (wt.dims[0] * columns), height = (inner + blocks - 1) / blocks;
    for (int64_t i = 0; i < rows; ++i) {
        int64_t group = of[size_t(i)];
        if (group < 0) continue;
        for (int64_t k = 0; k < inner; ++k) {
            double value = x[size_t(i * inner + k)] - (halves && !bias.empty() ? 8 : 0);
            const double* row = w.data() + (group * inner + k) * columns;
            const double* factor = scale.data() + (group * blocks + k / height) * columns;
            for (int64_t j = 0; j < columns; ++j) y[size_t(i * columns + j)] += value * row[j] * factor[j];
        }
        for (int64_t j = 0; j < columns; ++j) {
            double& v = y[size_t(i * columns + j)];
            v = (v + (bias.empty() ? 0 : bias[size_t(group * columns + j)])) * per_row[size_t(i)];
        }
    }
    return y;
}

// -- the gate ----------------------------------------------------------------------------------------------------------
void plan_swiglu(Plan& p) {
    Groups g = names_of(p);
    Dims w = plan_groups(p, g);
    p.require(w[2] % 2 == 0, "%s has %lld columns, an even number is needed", g.weight, static_cast<long long>(w[2]));
    p.shape("output", {p.tensor(g.x).dims[0], w[2] / 2});
    const Tensor& out = p.tensor("output");
    p.require(is_narrow_float(out.dtype) == is_narrow_float(p.tensor(g.x).dtype) && out.dtype != ACL_INT4, "output has dtype %s, %s %s", dtype_name(out.dtype), g.x,
              dtype_name(p.tensor(g.x).dtype));
    if (p.tensor("outputScale").dtype == ACL_FLOAT8_E8M0) {
        p.require(is_narrow_float(out.dtype), "outputScale has dtype FLOAT8_E8M0, output %s", dtype_name(out.dtype));
        p.shape("outputScale", pair_dims(out.dims[0], out.dims[1], 1));
    } else {
        p.shape("outputScale", {out.dims[0]});
    }
    if (has_parameter(p, "quantMode")) {  // which scales there are says the same
        plan_number(p, "dequantMode", 2);
        plan_number(p, "quantMode", 2);
        p.require(p.integer("dequantDtype") == ACL_FLOAT, "dequantDtype is %lld, expected 0", static_cast<long long>(p.integer("dequantDtype")));
        p.require(!present(p, "bias"), "bias is reserved and must be null");
    }
    if (given(p, "smoothScale") && p.tensor("smoothScale").numel() > 0)
        p.require(p.tensor("smoothScale").numel() == w[0] || p.tensor("smoothScale").numel() == w[0] * w[2] / 2, "smoothScale has shape %s",
                  text(p.tensor("smoothScale").dims).c_str());
}

void run_swiglu(Run& r) {
    Groups g = names_of(r);
    int64_t used = 0, half = r.tensor("output").dims[1];
    Values y = grouped(r, g, &used), gated;
    for (int64_t i = 0; i < r.tensor("output").dims[0]; ++i)
        for (int64_t j = 0; j < half; ++j)
            gated.push_back(silu(y[size_t(i * 2 * half + j)]) * y[size_t(i * 2 * half + half + j)]);
    if (given(r, "smoothScale") && r.tensor("smoothScale").numel() > 0) {
        auto factors = r.read<double>(r.tensor("smoothScale"));
        auto ends = r.read<int64_t>(r.tensor(g.list));
        if (r.integer("groupListType") == 1)
            for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
        auto of = groups_of(ends, r.tensor("output").dims[0]);
        bool each = factors.size() > ends.size();
        for (size_t i = 0; i < gated.size(); ++i) {
            int64_t group = of[i / size_t(half)];
            if (group >= 0) gated[i] *= factors[each ? size_t(group * half) + i % size_t(half) : size_t(group)];
        }
    }
    const Tensor &out = r.tensor("output"), &scales = r.tensor("outputScale");
    if (scales.dtype != ACL_FLOAT8_E8M0) return write_dynamic(r, gated, std::max<int64_t>(half, 1), "output", "outputScale");
    RowBlocks blocks{std::max<int64_t>(half, 1), kBlock, parts_of(half, kPair) * 2, out.dtype, narrow_largest(out.dtype), true, false};
    Values found = blocks.divide(gated);
    r.write(out, gated);
    r.write(scales, found);
}

// -- back to the order of tokens -----------------------------------------------------------------------------------------
struct Routing {
    const char *shared, *logit, *index, *out;
};

Routing routing_of(const Call& c) {
    return {first_of(c, {"sharedInputOptional", "sharedInput"}), first_of(c, {"logitOptional", "logit"}),
            first_of(c, {"rowIndexOptional", "rowIndex"}), first_of(c, {"out", "y"})};
}

void plan_finalize(Plan& p) {
    Groups g = names_of(p);
    Routing f = routing_of(p);
    Dims w = plan_groups(p, g);
    int64_t rows = p.tensor(g.x).dims[0];
    const Dims& out = p.tensor(f.out).dims;
    p.require(out.n == 2 && out[1] == w[2], "%s has shape %s", f.out, text(out).c_str());
    p.require(p.integer("dtype") == 0, "dtype is %lld, expected 0 (FLOAT)", static_cast<long long>(p.integer("dtype")));
    p.require(p.has(f.logit) && p.has(f.index), "%s and %s must be given", f.logit, f.index);
    p.shape(f.logit, {rows});
    p.shape(f.index, {rows});
    if (p.has(f.shared)) {
        const Dims& shared = p.tensor(f.shared).dims;
        int64_t from = p.integer("sharedInputOffset");
        p.require(shared.n == 2 && shared[1] == w[2], "%s has shape %s", f.shared, text(shared).c_str());
        p.require(from >= 0 && from + shared[0] <= out[0], "sharedInputOffset is %lld, %s has %lld rows of %lld",
                  static_cast<long long>(from), f.shared, static_cast<long long>(shared[0]), static_cast<long long>(out[0]));
    }
}

void run_finalize(Run& r) {
    Groups g = names_of(r);
    Routing f = routing_of(r);
    const Dims& d = r.tensor(f.out).dims;
    int64_t used = 0;
    Values y = grouped(r, g, &used), out(size_t(d.product()), 0);
    auto logit = r.read<double>(r.tensor(f.logit));
    auto index = r.read<int64_t>(r.tensor(f.index));
    if (r.has(f.shared)) {
        auto shared = r.read<double>(r.tensor(f.shared));
        int64_t from = r.integer("sharedInputOffset") * d[1];
        for (size_t i = 0; i < shared.size(); ++i) out[size_t(from) + i] = shared[i] * r.real("sharedInputWeight");
    }
    for (int64_t i = 0; i < used; ++i) {
        int64_t row = index[size_t(i)];
        if (row < 0 || row >= d[0]) fault("%s holds %lld, %s has %lld rows", f.index, static_cast<long long>(row), f.out, static_cast<long long>(d[0]));
        for (int64_t j = 0; j < d[1]; ++j) out[size_t(row * d[1] + j)] += logit[size_t(i)] * y[size_t(i * d[1] + j)];
    }
    r.write(r.tensor(f.out), out);
}

// -- sum over the batch of quantized products ----------------------------------------------------------------------------
Tensor turned(const Call& c, const char* name, const char* flag) {
    Tensor t = half_bytes(c.tensor(name));
    int n = t.rank();
    if (has_parameter(c, flag) && c.flag(flag)) std::swap(t.dims[n - 1], t.dims[n - 2]), std::swap(t.strides[n - 1], t.strides[n - 2]);
    return t;
}

void plan_summed(Plan& p) {
    Tensor a = turned(p, "x1", "transposeX1"), b = turned(p, "x2", "transposeX2");
    p.require(a.rank() == 3 && b.rank() == 3 && a.dims[0] == b.dims[0] && a.dims[2] == b.dims[1], "shapes %s and %s cannot be multiplied",
              text(a.dims).c_str(), text(b.dims).c_str());
    p.require(p.ints("dims").size() == 1 && p.ints("dims")[0] == 0, "dims must be [0]");
    p.require(!p.flag("keepDims"), "keepDims must be false");
    for (const char* name : {"yScale", "x1Offset", "x2Offset", "yOffset", "bias"}) p.require(!p.has(name), "%s is reserved and must be null", name);
    p.require(p.tensor("x1Scale").numel() == a.dims[0] * a.dims[1], "x1Scale has shape %s", text(p.tensor("x1Scale").dims).c_str());
    p.shape("x2Scale", {b.dims[2]});
    p.shape("out", {a.dims[1], b.dims[2]});
}

void run_summed(Run& r) {
    Tensor a = turned(r, "x1", "transposeX1"), b = turned(r, "x2", "transposeX2");
    auto x = r.read<double>(a), w = r.read<double>(b), rows = r.read<double>(r.tensor("x1Scale")), columns = r.read<double>(r.tensor("x2Scale"));
    int64_t batch = a.dims[0], m = a.dims[1], inner = a.dims[2], n = b.dims[2];
    Values out(size_t(m * n), 0);
    for (int64_t z = 0; z < batch; ++z)
        for (int64_t i = 0; i < m; ++i)
            for (int64_t k = 0; k < inner; ++k) {
                double value = x[size_t((z * m + i) * inner + k)] * rows[size_t(z * m + i)];
                for (int64_t j = 0; j < n; ++j) out[size_t(i * n + j)] += value * w[size_t((z * inner + k) * n + j)] * columns[size_t(j)];
            }
    r.write(r.tensor("out"), out);
}

// -- x1 @ x2 with scales, then an activation ------------------------------------------------------------------------------
double fused(const std::string& kind, double x) {
    if (kind == "relu") return x > 0 ? x : 0;
    if (kind == "gelu_tanh") return gelu_tanh(x);
    if (kind == "gelu_erf") return gelu(x);
    return x;
}

void plan_fused(Plan& p) {
    const Tensor a = half_bytes(p.tensor("x1")), b = half_bytes(p.tensor("x2"));
    p.require(a.rank() == 2 && b.rank() == 2 && a.dims[1] == b.dims[0], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(),
              text(b.dims).c_str());
    const std::string& kind = p.string("fusedOpType");
    p.require(kind.empty() || kind == "relu" || kind == "gelu_tanh" || kind == "gelu_erf", "fusedOpType is \"%s\", expected \"\", relu, gelu_tanh or gelu_erf",
              kind.c_str());
    for (const char* name : {"yScaleOptional", "x1OffsetOptional", "x2OffsetOptional", "yOffsetOptional", "x3Optional"})
        p.require(!p.has(name), "%s is reserved and must be null", name);
    p.require(p.integer("groupSizeOptional") == 0, "groupSizeOptional must be 0");
    p.shape("x1Scale", {a.dims[0]});
    p.require(p.tensor("x2Scale").numel() == b.dims[1] || p.tensor("x2Scale").numel() == 1, "x2Scale has shape %s", text(p.tensor("x2Scale").dims).c_str());
    if (p.has("biasOptional"))
        p.require(p.tensor("biasOptional").numel() == b.dims[1], "biasOptional has shape %s", text(p.tensor("biasOptional").dims).c_str());
    p.shape("out", {a.dims[0], b.dims[1]});
}

void run_fused(Run& r) {
    const Tensor a = half_bytes(r.tensor("x1")), b = half_bytes(r.tensor("x2"));
    auto x = r.read<double>(a), w = r.read<double>(b), rows = r.read<double>(r.tensor("x1Scale")), scale = r.read<double>(r.tensor("x2Scale"));
    int64_t m = a.dims[0], inner = a.dims[1], n = b.dims[1];
    Values bias(size_t(n), 0), out;
    if (r.has("biasOptional")) bias = r.read<double>(r.tensor("biasOptional"));
    bool whole = r.has("biasOptional") && r.tensor("biasOptional").dtype == ACL_INT32;
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0, factor = scale[scale.size() == 1 ? 0 : size_t(j)] * rows[size_t(i)];
            for (int64_t k = 0; k < inner; ++k) sum += x[size_t(i * inner + k)] * w[size_t(k * n + j)];
            out.push_back(fused(r.string("fusedOpType"), whole ? (sum + bias[size_t(j)]) * factor : sum * factor + bias[size_t(j)]));
        }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnGroupedMatmulSwigluQuant, plan_swiglu, run_swiglu, NARROW)
ACLNN(aclnnGroupedMatmulSwigluQuantWeightNZ, plan_swiglu, run_swiglu, NARROW)
ACLNN(aclnnGroupedMatmulSwigluQuantV2, plan_swiglu, run_swiglu, NARROW)
ACLNN(aclnnGroupedMatmulSwigluQuantWeightNzV2, plan_swiglu, run_swiglu, NARROW)
ACLNN(aclnnGroupedMatmulFinalizeRouting, plan_finalize, run_finalize, NARROW)
ACLNN(aclnnGroupedMatmulFinalizeRoutingV2, plan_finalize, run_finalize, NARROW)
ACLNN(aclnnGroupedMatmulFinalizeRoutingV3, plan_finalize, run_finalize, NARROW)
ACLNN(aclnnGroupedMatmulFinalizeRoutingWeightNz, plan_finalize, run_finalize, NARROW)
ACLNN(aclnnGroupedMatmulFinalizeRoutingWeightNzV2, plan_finalize, run_finalize, NARROW)
ACLNN(aclnnQuantMatmulReduceSumWeightNz, plan_summed, run_summed)
ACLNN(aclnnFusedQuantMatmul, plan_fused, run_fused, NARROW)
ACLNN(aclnnFusedQuantMatmulWeightNz, plan_fused, run_fused, NARROW)
