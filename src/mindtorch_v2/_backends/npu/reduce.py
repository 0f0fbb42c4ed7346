"""NPU lines of the reductions."""
from __future__ import annotations

from .lines import npu

npu("sum", "aclnnReduceSum(self, dims(self, dim), keepdim, dtype(out), out)", cast=("self",), empty=0)
