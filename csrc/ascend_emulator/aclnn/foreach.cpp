// One formula over lists of tensors: x, or a, b, c, are elements of the first, second, third list that is read; k[0] is
// the number of that tensor, from a scalar, a list of scalars or a tensor on the device of one or as many elements.
#include "activation.h"
#include "elementwise.h"
#include "special.h"

using namespace emu;

namespace {

struct Foreach {
    Formula<double> real;
    Formula<int64_t> integer;
    Formula<Complex> complex;  // none has one: it makes the initialisers those of Pointwise
};

using Lists = std::vector<const std::vector<Tensor>*>;

Lists read_lists(const Call& c) {
    Lists lists;
    for (int i = 0; i < c.function->count; ++i) {
        const Parameter& p = c.function->parameters[i];
        if (p.role == Role::tensors && (!p.output || p.in_place)) lists.push_back(&c.values[size_t(i)].tensors);
    }
    return lists;
}

const std::vector<Tensor>& written_list(const Call& c) {
    for (int i = 0; i < c.function->count; ++i) {
        const Parameter& p = c.function->parameters[i];
        if (p.role == Role::tensors && p.output) return c.values[size_t(i)].tensors;
    }
    throw std::logic_error("no list is written");
}

// The parameter numbers come from; -1: there is none.
int number_place(const Call& c) {
    for (int i = 0; i < c.function->count; ++i) {
        Role role = c.function->parameters[i].role;
        if (role == Role::scalar || role == Role::scalars || role == Role::tensor) return i;
    }
    return -1;
}

bool real_number(const Call& c, int place) {
    if (place < 0) return false;
    const Value& v = c.values[size_t(place)];
    switch (c.function->parameters[place].role) {
        case Role::scalar: return is_real(v.scalar.dtype);
        case Role::scalars: return !v.scalars.empty() && is_real(v.scalars[0].dtype);
        default: return is_real(v.tensor.dtype);
    }
}

void check_list(const Plan& p, const std::vector<Tensor>& list, const std::vector<Tensor>& like, bool same_dtype) {
    p.require(list.size() == like.size(), "the lists have %zu and %zu tensors", like.size(), list.size());
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].dims != like[i].dims)  // asked first: the words take longer than the question
            p.require(false, "tensors %zu of two lists have shapes %s and %s", i, text(like[i].dims).c_str(),
                      text(list[i].dims).c_str());
        p.require(!same_dtype || list[i].dtype == like[i].dtype, "tensors %zu of two lists have dtypes %s and %s", i,
                  dtype_name(like[i].dtype), dtype_name(list[i].dtype));
    }
}

void check_number(const Plan& p, size_t tensors) {
    int place = number_place(p);
    if (place < 0) return;
    const Parameter& q = p.function->parameters[place];
    const Value& v = p.values[size_t(place)];
    if (!v.given) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null; this call needs it", q.name);
    if (q.role == Role::scalars)
        p.require(v.scalars.size() == tensors, "%s has %zu scalars for %zu tensors", q.name, v.scalars.size(), tensors);
    if (q.role == Role::tensor) {
        bool each = std::string(q.name) == "scalars";
        p.require(size_t(v.tensor.numel()) == (each ? tensors : 1), "%s has %lld elements, expected %zu", q.name,
                  static_cast<long long>(v.tensor.numel()), each ? tensors : size_t(1));
    }
}

void plan_foreach(Plan& p) {
    Lists lists = read_lists(p);
    p.require(!lists[0]->empty(), "the list is empty");
    for (size_t i = 1; i < lists.size(); ++i) check_list(p, *lists[i], *lists[0], true);
    check_list(p, written_list(p), *lists[0], true);
    check_number(p, lists[0]->size());
}

template <class T>
std::vector<T> numbers_of(const Run& r, size_t tensors, int dtype) {
    std::vector<T> k(tensors);
    int place = number_place(r);
    if (place < 0) return k;
    const Value& v = r.values[size_t(place)];
    std::vector<T> on_device;
    Role role = r.function->parameters[place].role;
    if (role == Role::tensor) on_device = r.read<T>(v.tensor);
    for (size_t i = 0; i < tensors; ++i)
        k[i] = role == Role::scalar    ? scalar_value<T>(v.scalar, dtype)
               : role == Role::scalars ? scalar_value<T>(v.scalars[i], dtype)
                                       : on_device[on_device.size() == 1 ? 0 : i];
    return k;
}

template <class T>
void run_one(Run& r, size_t at, Formula<T> formula, const Lists& lists, int dtype) {
    std::vector<std::vector<T>> x;
    for (const auto* list : lists) x.push_back(r.read<T>((*list)[at]));
    T k = numbers_of<T>(r, lists[0]->size(), dtype)[at];
    std::vector<T> y(x[0].size());
    for (size_t i = 0; i < y.size(); ++i) {
        T v[3] = {};
        for (size_t j = 0; j < x.size(); ++j) v[j] = x[j][i];
        y[i] = formula(v, &k);
    }
    r.write(written_list(r)[at], y);
}

void run_foreach(Run& r, const Foreach& f) {
    Lists lists = read_lists(r);
    bool real = real_number(r, number_place(r));
    for (size_t at = 0; at < lists[0]->size(); ++at) {
        int dtype = (*lists[0])[at].dtype;
        bool whole = is_integer(dtype) && f.integer != nullptr && !real;
        if (whole) run_one<int64_t>(r, at, f.integer, lists, dtype);
        else run_one<double>(r, at, f.real, lists, is_integer(dtype) ? int(ACL_FLOAT) : dtype);
    }
}

}  // namespace

#define FOREACH(name, ...)                            \
    static const Foreach foreach_##name = {__VA_ARGS__}; \
    ACLNN(name, plan_foreach, [](Run& r) { run_foreach(r, foreach_##name); })
#define FOREACH_ONE_R(name, ...) FOREACH(name, EMU_R(EMU_ONE, __VA_ARGS__))
#define FOREACH_ONE_RI(name, ...) FOREACH(name, EMU_RI(EMU_ONE, __VA_ARGS__))
#define FOREACH_TWO_R(name, ...) FOREACH(name, EMU_R(EMU_TWO, __VA_ARGS__))
#define FOREACH_TWO_RI(name, ...) FOREACH(name, EMU_RI(EMU_TWO, __VA_ARGS__))
#define FOREACH_THREE_R(name, ...) FOREACH(name, EMU_R(EMU_THREE, __VA_ARGS__))
#define FOREACH_THREE_RI(name, ...) FOREACH(name, EMU_RI(EMU_THREE, __VA_ARGS__))
// The scalar of the first form is a tensor on the device, of the second a scalar, of the third a list.
#define FORMS(kind, first, second, list, ...)      \
    FOREACH_##kind(first, __VA_ARGS__)             \
    FOREACH_##kind(second, __VA_ARGS__)            \
    FOREACH_##kind(list, __VA_ARGS__)

// -- functions of one list -------------------------------------------------------------------------------------------
FOREACH_ONE_R(aclnnForeachAbs, std::fabs(x))
BOTH(FOREACH_ONE_R, aclnnForeachAcos, aclnnForeachACosInplace, std::acos(x))
FOREACH_ONE_R(aclnnForeachAsin, std::asin(x))
FOREACH_ONE_R(aclnnForeachAtan, std::atan(x))
FOREACH_ONE_RI(aclnnForeachCopy, x)
FOREACH_ONE_R(aclnnForeachCos, std::cos(x))
FOREACH_ONE_R(aclnnForeachCosh, std::cosh(x))
FOREACH_ONE_R(aclnnForeachErf, std::erf(x))
FOREACH_ONE_R(aclnnForeachErfc, std::erfc(x))
FOREACH_ONE_R(aclnnForeachExp, std::exp(x))
FOREACH_ONE_R(aclnnForeachExpm1, std::expm1(x))
BOTH(FOREACH_ONE_R, aclnnForeachLog, aclnnForeachLogInplace, std::log(x))
FOREACH_ONE_R(aclnnForeachLog10, std::log10(x))
FOREACH_ONE_R(aclnnForeachLog1p, std::log1p(x))
FOREACH_ONE_R(aclnnForeachLog2, std::log2(x))
FOREACH_ONE_RI(aclnnForeachNeg, -x)
FOREACH_ONE_R(aclnnForeachReciprocal, 1 / x)
FOREACH_ONE_R(aclnnForeachSigmoid, sigmoid(x))
FOREACH_ONE_RI(aclnnForeachSign, sign_of(x))
FOREACH_ONE_R(aclnnForeachSin, std::sin(x))
FOREACH_ONE_R(aclnnForeachSinh, std::sinh(x))
FOREACH_ONE_R(aclnnForeachSqrt, std::sqrt(x))
FOREACH_ONE_R(aclnnForeachTan, std::tan(x))
FOREACH_ONE_R(aclnnForeachTanh, std::tanh(x))

// -- a list and numbers ----------------------------------------------------------------------------------------------
FORMS(ONE_RI, aclnnForeachAddScalar, aclnnForeachAddScalarV2, aclnnForeachAddScalarList, x + k[0])
FORMS(ONE_RI, aclnnForeachSubScalar, aclnnForeachSubScalarV2, aclnnForeachSubScalarList, x - k[0])
FORMS(ONE_RI, aclnnForeachMulScalar, aclnnForeachMulScalarV2, aclnnForeachMulScalarList, x * k[0])
FORMS(ONE_R, aclnnForeachDivScalar, aclnnForeachDivScalarV2, aclnnForeachDivScalarList, x / k[0])
FORMS(ONE_RI, aclnnForeachMaximumScalar, aclnnForeachMaximumScalarV2, aclnnForeachMaximumScalarList, larger(x, k[0]))
FORMS(ONE_RI, aclnnForeachMinimumScalar, aclnnForeachMinimumScalarV2, aclnnForeachMinimumScalarList, smaller(x, k[0]))
FORMS(ONE_RI, aclnnForeachPowScalar, aclnnForeachPowScalarV2, aclnnForeachPowScalarList, power(x, k[0]))
FOREACH_ONE_RI(aclnnForeachPowScalarAndTensor, power(k[0], x))
FOREACH_ONE_RI(aclnnForeachSubScalarInplace, x - k[0])
FOREACH_ONE_RI(aclnnForeachMulScalarInplace, x * k[0])

// -- two and three lists ---------------------------------------------------------------------------------------------
BOTH(FOREACH_TWO_RI, aclnnForeachAddList, aclnnForeachAddListInplace, a + k[0] * b)
FOREACH_TWO_RI(aclnnForeachAddListV2, a + k[0] * b)
BOTH(FOREACH_TWO_RI, aclnnForeachSubList, aclnnForeachSubListInplace, a - k[0] * b)
FOREACH_TWO_RI(aclnnForeachSubListV2, a - k[0] * b)
BOTH(FOREACH_TWO_RI, aclnnForeachMulList, aclnnForeachMulListInplace, a * b)
BOTH(FOREACH_TWO_R, aclnnForeachDivList, aclnnForeachDivListInplace, a / b)
FOREACH_TWO_RI(aclnnForeachMaximumList, larger(a, b))
FOREACH_TWO_RI(aclnnForeachMinimumList, smaller(a, b))
FOREACH_TWO_RI(aclnnForeachPowList, power(a, b))
FOREACH_TWO_R(aclnnForeachLerpScalar, lerp(a, b, k[0]))
FOREACH_THREE_R(aclnnForeachLerpList, lerp(a, b, c))
FORMS(THREE_RI, aclnnForeachAddcmulScalar, aclnnForeachAddcmulScalarV2, aclnnForeachAddcmulScalarList, a + k[0] * b * c)
FOREACH_THREE_RI(aclnnForeachAddcmulList, a + k[0] * b * c)
FORMS(THREE_R, aclnnForeachAddcdivScalar, aclnnForeachAddcdivScalarV2, aclnnForeachAddcdivScalarList, a + k[0] * b / c)
FOREACH_THREE_R(aclnnForeachAddcdivList, a + k[0] * b / c)

// -- rounding --------------------------------------------------------------------------------------------------------
namespace {

double rounded(double x, int64_t mode) {
    switch (mode) {
        case 1: return std::nearbyint(x);
        case 2: return std::floor(x);
        case 3: return std::ceil(x);
        case 4: return std::round(x);
        case 5: return std::trunc(x);
        case 7: return x - std::trunc(x);
        default:
            fault("roundMode is %lld, expected 1 (even), 2 (floor), 3 (ceil), 4 (round), 5 (trunc) or 7 (fraction)",
                  static_cast<long long>(mode));
    }
}

void run_rounding(Run& r, int64_t mode) {
    const auto &x = r.tensors("x"), &out = r.tensors("out");
    for (size_t i = 0; i < x.size(); ++i) {
        auto values = r.read<double>(x[i]);
        for (double& one : values) one = rounded(one, mode);
        r.write(out[i], values);
    }
}

}  // namespace

ACLNN(aclnnForeachRoundOffNumber, plan_foreach, RUN { run_rounding(r, r.read<int64_t>(r.tensor("roundMode"))[0]); })
ACLNN(aclnnForeachRoundOffNumberV2, plan_foreach, RUN { run_rounding(r, r.scalar("roundMode").as<int64_t>()); })

// -- zeros -----------------------------------------------------------------------------------------------------------
ACLNN(aclnnForeachZeroInplace, PLAN { p.require(!p.tensors("x").empty(), "the list is empty"); }, RUN {
    for (const Tensor& t : r.tensors("x")) r.write(t, std::vector<int64_t>(size_t(t.numel())));
})

// -- norms -----------------------------------------------------------------------------------------------------------
ACLNN(aclnnForeachNorm,
      PLAN {
          const auto &x = p.tensors("x"), &out = p.tensors("out");
          p.require(!x.empty() && x.size() == out.size(), "x has %zu tensors and out %zu", x.size(), out.size());
          for (size_t i = 0; i < out.size(); ++i)
              p.require(out[i].numel() == 1 && out[i].dtype == x[i].dtype,
                        "out %zu is %s of shape %s, expected one %s", i, dtype_name(out[i].dtype),
                        text(out[i].dims).c_str(), dtype_name(x[i].dtype));
          p.workspace = 512 * x.size();
      },
      RUN {
          double order = r.scalar("scalar").as<double>();
          const auto &x = r.tensors("x"), &out = r.tensors("out");
          for (size_t i = 0; i < x.size(); ++i) {
              double total = 0;
              for (double v : r.read<double>(x[i])) {
                  v = std::fabs(v);
                  if (std::isinf(order)) total = larger(v, total);
                  else total += order == 0 ? double(v != 0) : std::pow(v, order);
              }
              if (!std::isinf(order) && order != 0) total = std::pow(total, 1 / order);
              r.write(out[i], std::vector<double>{total});
          }
      })
