"""NPU lines of the activation functions and of their backward operators.

Invariant: float64, which the vendor's activations do not have, is composed of operators that do.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ..lines import choose, helper, line, npu, parts

_where = registry.get("where")
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_KAPPA = 0.044715


# -- sigmoid and tanh -----------------------------------------------------------------------------------------------
def _tanh(self: Any) -> Any:
    # Beyond 20 the quotient is one, and its parts overflow.
    x = self if self.dtype.is_complex else self.clamp(-20, 20)
    return x.sinh() / x.cosh()


npu("sigmoid", "aclnnSigmoid(self, out)", otherwise=parts(lambda self: ((-self).exp() + 1).reciprocal()))
npu("sigmoid_backward", "aclnnSigmoidBackward(grad_output, output, out)")
npu("tanh", "aclnnTanh(self, out)", otherwise=parts(_tanh))
npu("tanh_backward", "aclnnTanhBackward(grad_output, output, out)",
    otherwise=parts(lambda grad_output, output: grad_output * (1 - output * output).conj()))

# -- rectifiers -----------------------------------------------------------------------------------------------------
npu("relu", "aclnnRelu(self, out)", otherwise=parts(lambda self: self.clamp_min(0)))
npu("threshold", "aclnnThreshold(self, threshold, value, out)")
npu("threshold_backward", "aclnnThresholdBackward(grad_output, self, threshold, out)",
    otherwise=parts(lambda grad_output, self, threshold: _where.call((self <= threshold, 0, grad_output))))
npu("leaky_relu", "aclnnLeakyRelu(self, negative_slope, out)")
npu("leaky_relu_backward", "aclnnLeakyReluBackward(grad_output, self, negative_slope, self_is_result, out)")
npu("hardtanh", "aclnnHardtanh(self, min_val, max_val, out)")
npu("hardtanh_backward", "aclnnHardtanhBackward(grad_output, self, min_val, max_val, out)")


# -- gelu, silu, mish -----------------------------------------------------------------------------------------------
@helper
def gelu_code(approximate: str) -> int:
    """The vendor's forward counts what its backward spells."""
    return {"none": 0, "tanh": 1}[approximate]


def _gelu(self: Any, approximate: str) -> Any:
    if approximate == "none":
        return self * 0.5 * ((self * math.sqrt(0.5)).erf() + 1)
    return self * 0.5 * (((self + self * self * self * _KAPPA) * _SQRT_2_OVER_PI).tanh() + 1)


def _gelu_backward(grad_output: Any, self: Any, approximate: str) -> Any:
    square = self * self
    if approximate == "none":
        below = ((self * math.sqrt(0.5)).erf() + 1) * 0.5
        return grad_output * (below + self * (square * -0.5).exp() / math.sqrt(2 * math.pi))
    t = ((self + self * square * _KAPPA) * _SQRT_2_OVER_PI).tanh()
    slope = (square * (3 * _KAPPA) + 1) * _SQRT_2_OVER_PI
    return grad_output * ((t + 1) * 0.5 + self * 0.5 * (1 - t * t) * slope)


def _silu_backward(grad_output: Any, self: Any) -> Any:
    s = self.sigmoid()
    return grad_output * s * (self * (1 - s) + 1)


npu("gelu", "aclnnGeluV2(self, gelu_code(approximate), out)", otherwise=parts(_gelu))
npu("gelu_backward", "aclnnGeluBackwardV2(grad_output, self, approximate, out)", otherwise=parts(_gelu_backward))
npu("silu", "aclnnSilu(self, out)", otherwise=parts(lambda self: self * self.sigmoid()))
npu("silu_backward", "aclnnSiluBackward(grad_output, self, out)", otherwise=parts(_silu_backward))
npu("mish", "aclnnMish(self, out)")
npu("mish_backward", "aclnnMishBackward(grad_output, self, out)")

# -- exponential units ----------------------------------------------------------------------------------------------
npu("elu", "aclnnElu(self, alpha, scale, input_scale, out)")
npu("elu_backward", "aclnnEluBackward(grad_output, alpha, scale, input_scale, is_result, self_or_result, out)",
    expand=("grad_output", "self_or_result"))
# Zero is refused by the composition.
npu("celu", choose(lambda self, alpha: alpha == 0,
                   {False: line("aclnnCelu(self, alpha, out)"), True: registry.get("celu").row.fallback}))
npu("softplus", "aclnnSoftplus(self, beta, threshold, out)")
npu("softplus_backward", "aclnnSoftplusBackward(grad_output, self, beta, threshold, out)",
    expand=("grad_output", "self"))
npu("log_sigmoid", "aclnnLogSigmoid(self, out)", cast=("self",))

# -- hard versions --------------------------------------------------------------------------------------------------
npu("hardsigmoid", "aclnnHardsigmoid(self, out)")
npu("hardsigmoid_backward", "aclnnHardsigmoidBackward(grad_output, self, out)")
npu("hardswish", "aclnnHardswish(self, out)")
npu("hardswish_backward", "aclnnHardswishBackward(grad_output, self, out)", expand=("grad_output", "self"))
