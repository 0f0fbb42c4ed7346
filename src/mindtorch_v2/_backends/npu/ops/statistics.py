"""NPU lines of statistics; whatever has none is a composition."""
from __future__ import annotations

from ..lines import npu

npu("renorm", "aclnnRenorm(self, p, dim, maxnorm, out)")
