"""NPU lines of cross products."""
from __future__ import annotations

from ..lines import npu

npu("linalg_cross", "aclnnLinalgCross(self, other, wrapped(self, dim), out)", expand=("self", "other"))
