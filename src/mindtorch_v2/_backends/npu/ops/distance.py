"""NPU lines of distances between rows; whatever has none is a composition.

Invariant: the vendor computes differences, never the product of matrices that PyTorch takes for many rows.
"""
from __future__ import annotations

import math
from typing import Any

from ...._ops.rules.pointwise import broadcast_shapes
from ...._tensor_base import numel
from ..lines import accepts_dtype, call, fused, npu

_MODES = {"use_mm_for_euclid_dist_if_necessary": 0, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def _fits(x1: Any, x2: Any, p: float, compute_mode: str) -> bool:
    return (accepts_dtype("aclnnCdist", x1) and x2._dtype is x1._dtype and 2 <= len(x1._shape) <= 8
            and 2 <= len(x2._shape) <= 8 and x1._shape[-1] == x2._shape[-1] and numel(x1) > 0 and numel(x2) > 0
            and (0 <= p < 1e30 or p == math.inf) and compute_mode in _MODES)


def _cdist(x1: Any, x2: Any, p: float, compute_mode: str) -> Any:
    batch = broadcast_shapes(x1._shape[:-2], x2._shape[:-2])
    out = x1.new_empty((*batch, x1._shape[-2], x2._shape[-2]))
    call("aclnnCdist", "cdist", x1, x2, p, _MODES[compute_mode], out)
    return out, (out,)


def _back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    """The gradient of the second is that of the first with the pairs turned."""
    x1, x2, p = args[:3]
    result = kept[0]
    batch = tuple(result._shape[:-2])
    found: list[Any] = [None, None]
    for i, (mine, other) in enumerate(((x1, x2), (x2, x1))):
        if needs[i]:
            wide = mine.expand((*batch, *mine._shape[-2:]))
            out = mine.new_empty(wide._shape)
            g, d = (grad, result) if i == 0 else (grad.mT, result.mT)
            call("aclnnCdistBackward", "cdist_backward", g, wide, other, d, p, out)
            found[i] = out.sum_to_size(mine._shape)
    return (*found, None, None)


npu("cdist", fused(("aclnnCdist", "aclnnCdistBackward"), _fits, _cdist, _back))


def _all_pairs(self: Any, p: float) -> Any:
    n = self._shape[0]
    out = self.new_empty((n * (n - 1) // 2,))
    call("aclnnPdist", "pdist", self, p, out)
    return out


npu("pdist", fused(("aclnnPdist",), lambda self, p: (
    accepts_dtype("aclnnPdist", self) and len(self._shape) == 2 and self._shape[0] > 1 and self._shape[1] > 0
    and (0 <= p < 1e30 or p == math.inf)), _all_pairs))
