"""NPU lines of gated and shrinking activation functions.

Invariant: where a library lacks a function the row's own composition serves.
"""
from __future__ import annotations

from ..._dispatch import registry
from .lines import npu


def _serve(name: str, text: str) -> None:
    npu(name, text, absent=registry.get(name).row.fallback)


_serve("hardshrink", "aclnnHardshrink(self, lambd, out)")
_serve("hardshrink_backward", "aclnnHardshrinkBackward(grad_out, self, lambd, out)")
_serve("softshrink", "aclnnSoftshrink(self, lambd, out)")
_serve("softshrink_backward", "aclnnSoftshrinkBackward(grad_output, self, lambd, out)")
_serve("glu", "aclnnGlu(self, dim, out)")
_serve("glu_backward", "aclnnGluBackward(grad_output, self, dim, out)")
