"""NPU lines of the matrix products."""
from __future__ import annotations

from .lines import npu

npu("mm", "aclnnMm(self, mat2, out, cube())", empty=0)
npu("bmm", "aclnnBatchMatMul(self, mat2, out, cube())", empty=0)
