"""NPU lines of gated and shrinking activation functions."""
from __future__ import annotations

from .lines import npu

npu("hardshrink", "aclnnHardshrink(self, lambd, out)")
npu("hardshrink_backward", "aclnnHardshrinkBackward(grad_out, self, lambd, out)")
npu("softshrink", "aclnnSoftshrink(self, lambd, out)")
npu("softshrink_backward", "aclnnSoftshrinkBackward(grad_output, self, lambd, out)")
npu("glu", "aclnnGlu(self, dim, out)")
npu("glu_backward", "aclnnGluBackward(grad_output, self, dim, out)")
