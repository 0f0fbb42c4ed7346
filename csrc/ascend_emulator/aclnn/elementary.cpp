// Functions of one argument.
#include "elementwise.h"
#include "numbers.h"
#include "special.h"

using namespace emu;

// -- signs and powers ------------------------------------------------------------------------------------------------
UNARY_RIC(aclnnAbs, magnitude(x))
BOTH(UNARY_RIC, aclnnNeg, aclnnInplaceNeg, -x)
UNARY_RIC(aclnnSign, sign_of(x))
BOTH(UNARY_RC, aclnnReciprocal, aclnnInplaceReciprocal, T(1) / x)
BOTH(UNARY_RC, aclnnSqrt, aclnnInplaceSqrt, std::sqrt(x))
BOTH(UNARY_RC, aclnnRsqrt, aclnnInplaceRsqrt, T(1) / std::sqrt(x))
UNARY_RI(aclnnSquare, x * x)

// -- exponentials and logarithms -------------------------------------------------------------------------------------
BOTH(UNARY_RC, aclnnExp, aclnnInplaceExp, std::exp(x))
BOTH(UNARY_R, aclnnExp2, aclnnInplaceExp2, std::exp2(x))
BOTH(UNARY_R, aclnnExpm1, aclnnInplaceExpm1, std::expm1(x))
BOTH(UNARY_RC, aclnnLog, aclnnInplaceLog, std::log(x))
BOTH(UNARY_RC, aclnnLog2, aclnnInplaceLog2, std::log(x) / kLogTwo)
BOTH(UNARY_RC, aclnnLog10, aclnnInplaceLog10, std::log10(x))
BOTH(UNARY_R, aclnnLog1p, aclnnInplaceLog1p, std::log1p(x))

// -- circular and hyperbolic -----------------------------------------------------------------------------------------
BOTH(UNARY_RC, aclnnSin, aclnnInplaceSin, std::sin(x))
BOTH(UNARY_RC, aclnnCos, aclnnInplaceCos, std::cos(x))
BOTH(UNARY_RC, aclnnTan, aclnnInplaceTan, std::tan(x))
BOTH(UNARY_R, aclnnAsin, aclnnInplaceAsin, std::asin(x))
BOTH(UNARY_R, aclnnAcos, aclnnInplaceAcos, std::acos(x))
BOTH(UNARY_R, aclnnAtan, aclnnInplaceAtan, std::atan(x))
BOTH(UNARY_RC, aclnnSinh, aclnnInplaceSinh, std::sinh(x))
BOTH(UNARY_R, aclnnCosh, aclnnInplaceCosh, std::cosh(x))
BOTH(UNARY_R, aclnnTanh, aclnnInplaceTanh, std::tanh(x))
BOTH(UNARY_R, aclnnAsinh, aclnnInplaceAsinh, std::asinh(x))
BOTH(UNARY_R, aclnnAcosh, aclnnInplaceAcosh, std::acosh(x))
BOTH(UNARY_R, aclnnAtanh, aclnnInplaceAtanh, std::atanh(x))
BOTH(UNARY_R, aclnnSinc, aclnnInplaceSinc, x == 0 ? 1 : std::sin(kPi * x) / (kPi * x))

// -- rounding --------------------------------------------------------------------------------------------------------
BOTH(UNARY_R, aclnnCeil, aclnnInplaceCeil, std::ceil(x))
BOTH(UNARY_RI, aclnnFloor, aclnnInplaceFloor, round_down(x))
BOTH(UNARY_R, aclnnTrunc, aclnnInplaceTrunc, std::trunc(x))
BOTH(UNARY_RI, aclnnFrac, aclnnInplaceFrac, x - round_to_zero(x))
BOTH(UNARY_RI, aclnnRound, aclnnInplaceRound, round_decimals(x, 0))
BOTH(UNARY_RI, aclnnRoundDecimals, aclnnInplaceRoundDecimals, round_decimals(x, int64_t(k[0])))

// -- special ---------------------------------------------------------------------------------------------------------
BOTH(UNARY_R, aclnnErf, aclnnInplaceErf, std::erf(x))
BOTH(UNARY_R, aclnnErfc, aclnnInplaceErfc, std::erfc(x))
BOTH(UNARY_R, aclnnErfinv, aclnnInplaceErfinv, inverse_erf(x))
UNARY_R(aclnnLgamma, log_gamma(x))
UNARY_R(aclnnDigamma, digamma(x))
UNARY_R(aclnnNdtri, -std::sqrt(2.0) * inverse_erf(1 - 2 * x))

// -- derivatives given the argument or the result --------------------------------------------------------------------
MAP_TWO_R(aclnnSqrtBackward, b / (2 * a))
MAP_TWO_R(aclnnTanhGrad, b * (1 - a * a))
MAP_TWO_R(aclnnAsinGrad, b / std::sqrt(1 - a * a))
MAP_TWO_R(aclnnAcosGradV2, -b / std::sqrt(1 - a * a))
MAP_TWO_R(aclnnAcosGrad, -a / std::sqrt(1 - b * b))
MAP_TWO_R(aclnnAtanGrad, b / (1 + a * a))
MAP_TWO_R(aclnnAsinhGrad, b / std::cosh(a))
MAP_TWO_R(aclnnAcoshGrad, b / std::sinh(a))
