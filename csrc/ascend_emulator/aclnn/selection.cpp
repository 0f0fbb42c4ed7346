// Choosing between values: extremes, bounds, conditions and masks.
#include "elementwise.h"
#include "numbers.h"

using namespace emu;

BINARY_RI(aclnnMaximum, larger(a, b))
BINARY_RI(aclnnMinimum, smaller(a, b))

// -- bounds ----------------------------------------------------------------------------------------------------------
// A NaN stays, in the value or in the bound.
BINARY_RI(aclnnClampMin, larger(a, b))
BOTH(BINARY_RI, aclnnClampMinTensor, aclnnInplaceClampMinTensor, larger(a, b))
BOTH(BINARY_RI, aclnnClampMax, aclnnInplaceClampMax, smaller(a, b))
BOTH(BINARY_RI, aclnnClampMaxTensor, aclnnInplaceClampMaxTensor, smaller(a, b))

namespace {

// (self, min, max): scalars or tensors, either of which may be null.
std::vector<int> clamp_places(const Call& call) {
    std::vector<int> places;
    for (int i = 0; i < 3; ++i)
        if (call.values[size_t(i)].given) places.push_back(i);
    return places;
}

void plan_clamp(Plan& p) {
    if (!p.values[1].given && !p.values[2].given)
        refuse(ACLNN_ERR_PARAM_NULLPTR, "%s and %s must not both be null", p.function->parameters[1].name,
               p.function->parameters[2].name);
    check_same_dtypes(p);
    Dims shape;
    for (int i : clamp_places(p)) {
        if (p.function->parameters[i].role != Role::tensor) continue;
        Dims next;
        p.require(broadcast(shape, p.values[size_t(i)].tensor.dims, &next), "shapes %s and %s do not broadcast",
                  text(shape).c_str(), text(p.values[size_t(i)].tensor.dims).c_str());
        shape = next;
    }
    p.require(p.output().dims == shape, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(shape).c_str());
    int dtype = promoted(p, clamp_places(p));
    p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of the operands do not promote");
    casts_into(p, dtype, p.output());
}

void run_clamp(Run& r) {
    int dtype = promoted(r, clamp_places(r));
    by_real_or_integer(category(dtype), [&](auto zero) {
        using T = decltype(zero);
        const Dims& dims = r.output().dims;
        auto x = read_operand<T>(r, 0, dims, dtype);
        if (r.values[1].given) {
            auto low = read_operand<T>(r, 1, dims, dtype, true);
            for (size_t i = 0; i < x.size(); ++i) x[i] = larger(x[i], low[i]);
        }
        if (r.values[2].given) {
            auto high = read_operand<T>(r, 2, dims, dtype, true);
            for (size_t i = 0; i < x.size(); ++i) x[i] = smaller(x[i], high[i]);
        }
        r.write(r.output(), x);
    });
}

}  // namespace

ACLNN(aclnnClamp, plan_clamp, run_clamp)
ACLNN(aclnnClampTensor, plan_clamp, run_clamp)
ACLNN(aclnnHardtanh, plan_clamp, run_clamp)
ACLNN(aclnnInplaceHardtanh, plan_clamp, run_clamp)

// -- what is not finite ----------------------------------------------------------------------------------------------
namespace {

const Pointwise kNanToNum = {
    EMU_FORMULA(double, EMU_ONE, std::isnan(x) ? k[0] : std::isinf(x) ? (x > 0 ? k[1] : k[2]) : x),
    EMU_FORMULA(int64_t, EMU_ONE, x), nullptr, 1, false, false};

}  // namespace

ACLNN(aclnnNanToNum, PLAN { plan_pointwise(p, kNanToNum); }, RUN { run_pointwise(r, kNanToNum); })
ACLNN(aclnnInplaceNanToNum, PLAN { plan_pointwise(p, kNanToNum); }, RUN { run_pointwise(r, kNanToNum); })

// -- conditions and masks --------------------------------------------------------------------------------------------
ACLNN(aclnnSWhere,
      PLAN {
          const Tensor& condition = p.tensor("condition");
          p.require(condition.dtype == ACL_BOOL || condition.dtype == ACL_UINT8,
                    "condition has dtype %s, expected BOOL or UINT8", dtype_name(condition.dtype));
          p.shape("out", broadcast_all(p, {&condition.dims, &p.tensor("self").dims, &p.tensor("other").dims}));
          int dtype = promoted(p, {1, 2});
          p.require(dtype != ACL_DT_UNDEFINED, "self of dtype %s and other of %s do not promote",
                    dtype_name(p.tensor("self").dtype), dtype_name(p.tensor("other").dtype));
          p.casts(dtype, "out");
      },
      RUN {
          const Dims& dims = r.tensor("out").dims;
          int dtype = promoted(r, {1, 2});
          auto chosen = r.read<int64_t>(r.tensor("condition"), dims);
          by_category(category(dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = read_operand<T>(r, 1, dims, dtype), y = read_operand<T>(r, 2, dims, dtype);
              for (size_t i = 0; i < x.size(); ++i) x[i] = chosen[i] ? x[i] : y[i];
              r.write(r.tensor("out"), x);
          });
      })

namespace {

void plan_masked_fill(Plan& p) {
    Dims shape;
    const Tensor& self = p.tensor("selfRef");
    p.require(broadcast(self.dims, p.tensor("mask").dims, &shape) && shape == self.dims,
              "mask of shape %s does not broadcast to selfRef of %s", text(p.tensor("mask").dims).c_str(),
              text(self.dims).c_str());
    const Value& value = p.at("value");
    bool is_tensor = value.tensor.dtype != ACL_DT_UNDEFINED;
    if (is_tensor)
        p.require(value.tensor.numel() == 1 && value.tensor.rank() <= 1, "value has shape %s, expected one element",
                  text(value.tensor.dims).c_str());
    p.casts(is_tensor ? value.tensor.dtype : value.scalar.dtype, "selfRef");
}

void run_masked_fill(Run& r) {
    const Tensor& self = r.tensor("selfRef");
    auto masked = r.read<int64_t>(r.tensor("mask"), self.dims);
    by_category(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        const Value& value = r.at("value");
        bool is_tensor = value.tensor.dtype != ACL_DT_UNDEFINED;
        T fill = is_tensor ? r.read<T>(value.tensor)[0] : value.scalar.as<T>();
        auto x = r.read<T>(self);
        for (size_t i = 0; i < x.size(); ++i)
            if (masked[i]) x[i] = fill;
        r.write(self, x);
    });
}

}  // namespace

ACLNN(aclnnInplaceMaskedFillScalar, plan_masked_fill, run_masked_fill)
ACLNN(aclnnInplaceMaskedFillTensor, plan_masked_fill, run_masked_fill)
