"""NPU lines of gated and shrinking activation functions.

Invariant: where a library lacks a function the row's own composition serves.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._tensor_base import numel
from ..lines import accepts_dtype, call, choose, fused, helper, line, npu, with_fallback

with_fallback("hardshrink", "aclnnHardshrink(self, lambd, out)")
with_fallback("hardshrink_backward", "aclnnHardshrinkBackward(grad_out, self, lambd, out)")
with_fallback("softshrink", "aclnnSoftshrink(self, lambd, out)")
with_fallback("softshrink_backward", "aclnnSoftshrinkBackward(grad_output, self, lambd, out)")
with_fallback("glu", "aclnnGlu(self, dim, out)")
with_fallback("glu_backward", "aclnnGluBackward(grad_output, self, dim, out)")


def _by_channel(self: Any, weight: Any) -> bool:
    """Whether there is one slope, or one for each channel."""
    count = numel(weight)
    if count == 1:
        return True
    n = len(self._shape)
    return n > 1 and count == self._shape[1] and len(weight._shape) == n and weight._shape[1] == count


@helper
def slopes(weight: Any) -> Any:
    """As the vendor counts them: by channel, in one dimension."""
    return weight.reshape((-1,))


npu("_prelu_kernel", choose(_by_channel, {
    True: line("aclnnPrelu(self, slopes(weight), out)", cast=("self",)),
    False: registry.get("_prelu_kernel").row.fallback}))


# aclnnPreluBackward sums the gradient of the slopes, which the kernel's row leaves to the engine: the whole is served.
def _prelu_fits(self: Any, weight: Any) -> bool:
    count, n = numel(weight), len(self._shape)
    return (accepts_dtype("aclnnPreluBackward", self) and weight._dtype is self._dtype and len(weight._shape) <= 1
            and 0 < n <= 8 and numel(self) > 0 and (count == 1 or (n > 1 and self._shape[1] == count)))


def _prelu(self: Any, weight: Any) -> Any:
    return registry.get("_prelu_kernel").call(
        (self, weight.reshape((1, -1) + (1,) * (len(self._shape) - 2) if len(self._shape) > 1 else (-1,)))), ()


def _prelu_back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    self, weight = args
    of_self, of_weight = self.new_empty(self._shape), weight.new_empty((numel(weight),))
    call("aclnnPreluBackward", "prelu_backward", grad, self, slopes(weight), of_self, of_weight)
    return of_self if needs[0] else None, of_weight.reshape(weight._shape) if needs[1] else None


npu("prelu", fused(("aclnnPrelu", "aclnnPreluBackward"), _prelu_fits, _prelu, _prelu_back))
