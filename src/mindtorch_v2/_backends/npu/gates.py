"""NPU lines of gated and shrinking activation functions.

Invariant: where a library lacks a function the row's own composition serves.
"""
from __future__ import annotations

from typing import Any

from ..._dispatch import registry
from ..._tensor_base import numel
from .lines import backed, choose, helper, line, npu

backed("hardshrink", "aclnnHardshrink(self, lambd, out)")
backed("hardshrink_backward", "aclnnHardshrinkBackward(grad_out, self, lambd, out)")
backed("softshrink", "aclnnSoftshrink(self, lambd, out)")
backed("softshrink_backward", "aclnnSoftshrinkBackward(grad_output, self, lambd, out)")
backed("glu", "aclnnGlu(self, dim, out)")
backed("glu_backward", "aclnnGluBackward(grad_output, self, dim, out)")


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


# aclnnPreluBackward sums the gradient of the slopes, which the row leaves to the engine: the composition serves.
npu("_prelu_kernel", choose(_by_channel, {
    True: line("aclnnPrelu(self, slopes(weight), out)", cast=("self",)),
    False: registry.get("_prelu_kernel").row.fallback}))
