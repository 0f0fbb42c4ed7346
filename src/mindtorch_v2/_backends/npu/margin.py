"""NPU lines of losses with margins; whatever has none is a composition."""
from __future__ import annotations

from .lines import npu
from .loss import reduced

npu("soft_margin_loss", reduced("aclnnSoftMarginLoss(self, target, reduction_of(self, target, reduction), out)",
                                cast=("self", "target")))
