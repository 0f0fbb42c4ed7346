"""NPU lines of combinations of tensors."""
from __future__ import annotations

from .lines import npu

npu("put", "aclnnInplacePut(out, index, source, accumulate)", starts="self")
npu("linalg_cross", "aclnnLinalgCross(self, other, wrapped(self, dim), out)", expand=("self", "other"))
