"""NPU lines of losses with margins; whatever has none is a composition."""
from __future__ import annotations

from typing import Any

from ...._tensor_base import numel
from ..lines import accepts_dtype, call, fused, npu
from .loss import NONE, reduced

npu("soft_margin_loss", reduced("aclnnSoftMarginLoss(self, target, reduction_of(self, target, reduction), out)",
                                cast=("self", "target")))


def _labelled(self: Any, target: Any, reduction: int) -> bool:
    return (accepts_dtype("aclnnMultilabelMarginLoss", self) and accepts_dtype("aclnnMultilabelMarginLoss", target, 1)
            and len(self._shape) in (1, 2) and target._shape == self._shape and numel(self) > 0)


def _multilabel(self: Any, target: Any, reduction: int) -> Any:
    out = self.new_empty(self._shape[:-1] if reduction == NONE else ())
    call("aclnnMultilabelMarginLoss", "multilabel_margin_loss", self, target, reduction, out,
         self.new_empty(self._shape))
    return out


# Without a function for its gradient, which goes through the parts.
npu("multilabel_margin_loss", fused(("aclnnMultilabelMarginLoss",), _labelled, _multilabel))
