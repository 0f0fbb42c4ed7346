// Comparisons, logic, bits and questions about values.
#include "elementwise.h"
#include "numbers.h"

using namespace emu;

// -- comparisons -----------------------------------------------------------------------------------------------------
BOTH(COMPARE_RIC, aclnnEqTensor, aclnnInplaceEqTensor, a == b)
BOTH(COMPARE_RIC, aclnnEqScalar, aclnnInplaceEqScalar, a == b)
BOTH(COMPARE_RIC, aclnnNeTensor, aclnnInplaceNeTensor, a != b)
BOTH(COMPARE_RIC, aclnnNeScalar, aclnnInplaceNeScalar, a != b)
BOTH(COMPARE_RI, aclnnLtTensor, aclnnInplaceLtTensor, a < b)
BOTH(COMPARE_RI, aclnnLtScalar, aclnnInplaceLtScalar, a < b)
BOTH(COMPARE_RI, aclnnLeTensor, aclnnInplaceLeTensor, a <= b)
BOTH(COMPARE_RI, aclnnLeScalar, aclnnInplaceLeScalar, a <= b)
BOTH(COMPARE_RI, aclnnGtTensor, aclnnInplaceGtTensor, a > b)
BOTH(COMPARE_RI, aclnnGtScalar, aclnnInplaceGtScalar, a > b)
BOTH(COMPARE_RI, aclnnGeTensor, aclnnInplaceGeTensor, a >= b)
BOTH(COMPARE_RI, aclnnGeScalar, aclnnInplaceGeScalar, a >= b)

// -- logic: what is not zero is true ---------------------------------------------------------------------------------
BOTH(COMPARE_RIC, aclnnLogicalAnd, aclnnInplaceLogicalAnd, a != T(0) && b != T(0))
BOTH(COMPARE_RIC, aclnnLogicalOr, aclnnInplaceLogicalOr, a != T(0) || b != T(0))
COMPARE_RIC(aclnnLogicalXor, (a != T(0)) != (b != T(0)))
BOTH(PREDICATE_RI, aclnnLogicalNot, aclnnInplaceLogicalNot, x == 0)

// -- bits ------------------------------------------------------------------------------------------------------------
BOTH(BINARY_I, aclnnBitwiseAndTensor, aclnnInplaceBitwiseAndTensor, a & b)
BOTH(BINARY_I, aclnnBitwiseAndTensorOut, aclnnInplaceBitwiseAndTensorOut, a & b)
BOTH(BINARY_I, aclnnBitwiseAndScalar, aclnnInplaceBitwiseAndScalar, a & b)
BOTH(BINARY_I, aclnnBitwiseOrTensor, aclnnInplaceBitwiseOrTensor, a | b)
BOTH(BINARY_I, aclnnBitwiseOrScalar, aclnnInplaceBitwiseOrScalar, a | b)
BOTH(BINARY_I, aclnnBitwiseXorTensor, aclnnInplaceBitwiseXorTensor, a ^ b)
BOTH(BINARY_I, aclnnBitwiseXorScalar, aclnnInplaceBitwiseXorScalar, a ^ b)
BINARY_I(aclnnLeftShift, shift_left(a, b))
BINARY_I(aclnnLeftShifts, shift_left(a, b))

namespace {

const Pointwise kInvert = {EMU_I(EMU_ONE, ~x), 1, false, false};
const Pointwise kNegate = {EMU_I(EMU_ONE, !x), 1, false, false};
const Pointwise kShiftRight = {EMU_I(EMU_TWO, shift_right(a, b)), 2, true, false};
const Pointwise kShiftRightUnsigned = {EMU_I(EMU_TWO, b < 0 || b > 63 ? 0 : uint64_t(a) >> b), 2, true, false};
const Pointwise kSignbit = {EMU_RI(EMU_ONE, sign_bit(x)), 1, false, true};
const Pointwise kNever = {EMU_I(EMU_ONE, x * 0), 1, false, true};

}  // namespace

ACLNN(aclnnBitwiseNot, PLAN { plan_pointwise(p, kInvert); },
      RUN { run_pointwise(r, r.tensor("self").dtype == ACL_BOOL ? kNegate : kInvert); })

// UINT64 is computed in int64_t, where its upper half looks negative.
ACLNN(aclnnRightShift, PLAN { plan_pointwise(p, kShiftRight); },
      RUN { run_pointwise(r, r.tensor("input").dtype == ACL_UINT64 ? kShiftRightUnsigned : kShiftRight); })
ACLNN(aclnnSignbit, PLAN { plan_pointwise(p, kSignbit); },
      RUN { run_pointwise(r, r.tensor("self").dtype == ACL_UINT64 ? kNever : kSignbit); })

// -- questions -------------------------------------------------------------------------------------------------------
PREDICATE_R(aclnnIsFinite, std::isfinite(x))
PREDICATE_R(aclnnIsInf, std::isinf(x))
PREDICATE_R(aclnnIsPosInf, std::isinf(x) && x > 0)
PREDICATE_R(aclnnIsNegInf, std::isinf(x) && x < 0)

namespace {

// Integers are compared exactly: their difference is taken before it is rounded.
const Pointwise kIsClose = {EMU_R(EMU_TWO, a == b || (std::isfinite(a) && std::isfinite(b) &&
                                                      std::fabs(a - b) <= k[1] + std::fabs(k[0] * b)) ||
                                               (k[2] != 0 && std::isnan(a) && std::isnan(b))),
                            2, true, true};

}  // namespace

ACLNN(aclnnIsClose,
      PLAN {
          p.require(p.real("rtol") >= 0 && p.real("atol") >= 0, "rtol is %g and atol %g, expected >= 0", p.real("rtol"),
                    p.real("atol"));
          plan_pointwise(p, kIsClose);
      },
      RUN {
          int dtype = r.tensor("self").dtype;
          if (!is_integer(dtype)) return run_pointwise(r, kIsClose);
          const Dims& dims = r.tensor("out").dims;
          auto a = r.read<int64_t>(r.tensor("self"), dims), b = r.read<int64_t>(r.tensor("other"), dims);
          for (size_t i = 0; i < a.size(); ++i)
              a[i] = a[i] == b[i] || std::fabs(double(a[i]) - double(b[i])) <=
                                         r.real("atol") + std::fabs(r.real("rtol") * double(b[i]));
          r.write(r.tensor("out"), a);
      })

ACLNN(aclnnEqual,
      PLAN {
          p.require(p.tensor("out").numel() == 1 && p.tensor("out").dtype == ACL_BOOL,
                    "out must be one BOOL, got %s of shape %s", dtype_name(p.tensor("out").dtype),
                    text(p.tensor("out").dims).c_str());
          p.same_dtype("self", "other");
          p.workspace = 512;
      },
      RUN {
          const Tensor &x = r.tensor("self"), &y = r.tensor("other");
          bool same = x.dims == y.dims;
          if (same)
              by_category(category(x.dtype), [&](auto zero) {
                  using T = decltype(zero);
                  same = r.read<T>(x) == r.read<T>(y);
              });
          r.write(r.tensor("out"), std::vector<int64_t>{same});
      })
