// Arithmetic of two and three operands.
#include "elementwise.h"
#include "numbers.h"

using namespace emu;

// -- sums and products -----------------------------------------------------------------------------------------------
BOTH(BINARY_RIC, aclnnAdd, aclnnInplaceAdd, a + k[0] * b)
BOTH(BINARY_RIC, aclnnAdds, aclnnInplaceAdds, a + k[0] * b)
BOTH(BINARY_RIC, aclnnSub, aclnnInplaceSub, a - k[0] * b)
BOTH(BINARY_RIC, aclnnSubs, aclnnInplaceSubs, a - k[0] * b)
BINARY_RIC(aclnnRsub, b - k[0] * a)
BINARY_RIC(aclnnRsubs, b - k[0] * a)
BOTH(BINARY_RI, aclnnAddV3, aclnnInplaceAddV3, a + k[0] * b)
BOTH(BINARY_RI, aclnnAddRelu, aclnnInplaceAddRelu, relu(a + k[0] * b))
BOTH(BINARY_RIC, aclnnMul, aclnnInplaceMul, a * b)
BOTH(BINARY_RIC, aclnnMuls, aclnnInplaceMuls, a * b)
BOTH(MAP_THREE_RI, aclnnAddcmul, aclnnInplaceAddcmul, a + k[0] * b * c)
BOTH(MAP_THREE_RI, aclnnAddcdiv, aclnnInplaceAddcdiv, a + quotient(k[0] * b, c))
BOTH(MAP_THREE_R, aclnnLerp, aclnnInplaceLerp, lerp(a, b, c))
BOTH(MAP_TWO_R, aclnnLerps, aclnnInplaceLerps, lerp(a, b, k[0]))
MAP_THREE_RI(aclnnAxpyV2, a + c * b)

// -- quotients and remainders ----------------------------------------------------------------------------------------
BOTH(BINARY_RC, aclnnDiv, aclnnInplaceDiv, a / b)
BOTH(BINARY_RC, aclnnDivs, aclnnInplaceDivs, a / b)
BINARY_R(aclnnRealDiv, a / b)
BOTH(BINARY_RI, aclnnFloorDivide, aclnnInplaceFloorDivide, floor_divide(a, b))
BOTH(BINARY_RI, aclnnFloorDivides, aclnnInplaceFloorDivides, floor_divide(a, b))
BINARY_RI(aclnnFloorDiv, floor_divide(a, b))
BINARY_RI(aclnnTruncateDiv, divide_trunc(a, b))
BINARY_RI(aclnnTruncateMod, fmod_of(a, b))
BOTH(BINARY_RI, aclnnFmodTensor, aclnnInplaceFmodTensor, fmod_of(a, b))
BOTH(BINARY_RI, aclnnFmodScalar, aclnnInplaceFmodScalar, fmod_of(a, b))
BOTH(BINARY_RI, aclnnRemainderTensorTensor, aclnnInplaceRemainderTensorTensor, remainder_of(a, b))
BOTH(BINARY_RI, aclnnRemainderTensorScalar, aclnnInplaceRemainderTensorScalar, remainder_of(a, b))
BINARY_RI(aclnnRemainderScalarTensor, remainder_of(a, b))
BINARY_I(aclnnGcd, gcd_of(a, b))

namespace {

const Pointwise kTrueDivision = {EMU_RC(EMU_TWO, a / b), 2, true, false};
const Pointwise kTruncDivision = {EMU_RI(EMU_TWO, divide_trunc(a, b)), 2, true, false};
const Pointwise kFloorDivision = {EMU_RI(EMU_TWO, floor_divide(a, b)), 2, true, false};

const Pointwise& division(const Call& call) {
    int64_t mode = call.integer("mode");
    return mode == 0 ? kTrueDivision : mode == 1 ? kTruncDivision : kFloorDivision;
}

void plan_division(Plan& p) {
    int64_t mode = p.integer("mode");
    p.require(mode >= 0 && mode <= 2, "mode is %lld, expected 0 (none), 1 (trunc) or 2 (floor)",
              static_cast<long long>(mode));
    plan_pointwise(p, division(p));
}

void run_division(Run& r) { run_pointwise(r, division(r)); }

}  // namespace

ACLNN(aclnnDivMod, plan_division, run_division)
ACLNN(aclnnDivMods, plan_division, run_division)
ACLNN(aclnnInplaceDivMod, plan_division, run_division)
ACLNN(aclnnInplaceDivMods, plan_division, run_division)
ACLNN(aclnnDivV3, plan_division, run_division)

// -- powers ----------------------------------------------------------------------------------------------------------
namespace {

const Pointwise kPower = {EMU_RIC(EMU_TWO, power(a, b)), 2, true, false};

int operand_dtype(const Call& call, int place) {
    const Value& v = call.values[size_t(place)];
    return call.function->parameters[place].role == Role::tensor ? v.tensor.dtype : v.scalar.dtype;
}

void plan_power(Plan& p) {
    p.require(operand_dtype(p, 0) != ACL_BOOL || operand_dtype(p, 1) != ACL_BOOL,
              "the base and the exponent must not both be BOOL");
    int dtype = compute_dtype(p, kPower);
    if (is_integer(dtype) && p.function->parameters[1].role == Role::scalar) {
        int64_t exponent = p.scalar("exponent").as<int64_t>();
        p.require(exponent >= 0 && narrow<int64_t>(exponent, dtype) == exponent,
                  "exponent is %lld, expected one >= 0 that %s holds", static_cast<long long>(exponent),
                  dtype_name(dtype));
    }
    plan_pointwise(p, kPower);
}

void run_power(Run& r) { run_pointwise(r, kPower); }

}  // namespace

ACLNN(aclnnPowTensorTensor, plan_power, run_power)
ACLNN(aclnnPowTensorScalar, plan_power, run_power)
ACLNN(aclnnPowScalarTensor, plan_power, run_power)
ACLNN(aclnnInplacePowTensorTensor, plan_power, run_power)
ACLNN(aclnnInplacePowTensorScalar, plan_power, run_power)

// -- of logarithms and angles ----------------------------------------------------------------------------------------
BOTH(BINARY_R, aclnnAtan2, aclnnInplaceAtan2, std::atan2(a, b))
BOTH(BINARY_R, aclnnXLogYTensor, aclnnInplaceXLogYTensor, xlogy(a, b))
BOTH(BINARY_R, aclnnXLogYScalarOther, aclnnInplaceXLogYScalarOther, xlogy(a, b))
BINARY_R(aclnnXLogYScalarSelf, xlogy(a, b))
BINARY_R(aclnnXlog1py, a == 0 && !std::isnan(b) ? 0 : a * std::log1p(b))
BINARY_R(aclnnLogAddExp, log_add_exp(a, b))
BINARY_R(aclnnLogAddExp2, log_add_exp(a * kLogTwo, b * kLogTwo) / kLogTwo)
BINARY_R(aclnnMulNoNan, b == 0 ? 0 : a * b)
BINARY_R(aclnnHeaviside, std::isnan(a) ? a : a == 0 ? b : a > 0)
