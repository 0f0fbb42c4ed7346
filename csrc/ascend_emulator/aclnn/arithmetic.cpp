// Arithmetic.
#include "elementwise.h"

using namespace emu;

BINARY_RIC(aclnnAdd, a + alpha * b)
BINARY_RIC(aclnnAdds, a + alpha * b)
BINARY_RIC(aclnnInplaceAdd, a + alpha * b)
BINARY_RIC(aclnnInplaceAdds, a + alpha * b)
BINARY_RIC(aclnnMul, a * b)
BINARY_RIC(aclnnMuls, a * b)
BINARY_RIC(aclnnInplaceMul, a * b)
BINARY_RIC(aclnnInplaceMuls, a * b)
UNARY_RI(aclnnRelu, x > 0 || x != x ? x : T(0))
UNARY_RI(aclnnInplaceRelu, x > 0 || x != x ? x : T(0))
UNARY_RC(aclnnExp, std::exp(x))
COMPARE_RIC(aclnnEqTensor, a == b)
