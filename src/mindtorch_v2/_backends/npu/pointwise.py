"""NPU lines of the pointwise operators."""
from __future__ import annotations

from .lines import npu

npu("add", "aclnnAdd(self, other, alpha, out)", numbers=dict(other="aclnnAdds(self, other, alpha, out)"))
npu("mul", "aclnnMul(self, other, out)",
    numbers=dict(other="aclnnMuls(self, other, out)", self="aclnnMuls(other, self, out)"))
