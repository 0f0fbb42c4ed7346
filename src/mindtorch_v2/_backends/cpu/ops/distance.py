"""CPU lines of distances between rows: no matrix of all differences is made."""

from __future__ import annotations

import math
from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import AUTOGRAD, CPU
from ...._dispatch.op import FnKernel
from ...._ops.distance import by_product
from ...._ops.rules.pointwise import broadcast_shapes
from ...._tensor_base import TensorBase
from ...recorded import Whole, recorder
from ..kernels.dense import dense_as, fresh, operand
from ..lines import cpu

_KINDS = (0.0, 1.0, 2.0, math.inf)
_PDIST = registry.get("pdist")


def _plain(t: Any, rank: int) -> bool:
    return t._dtype.name in ("float32", "float64") and len(t._shape) >= rank and 0 not in t._shape


def _pairs_fit(self: Any, p: float) -> bool:
    return p in _KINDS and len(self._shape) == 2 and self._shape[0] > 1 and _plain(self, 2)


def _pairs(self: Any, p: float) -> tuple[Any, list[Any]]:
    rows, width = self._shape
    x = dense_as(self, self._dtype)
    out = fresh((rows * (rows - 1) // 2,), self._dtype)
    _native.pair_distances(*operand(x), *operand(out), rows, width, p)
    return out, [out]


def _pairs_backward(grad: Any, needs: Any, args: Any, kept: Any) -> tuple[Any, None]:
    self, p = args
    dt = self._dtype
    rows, width = self._shape
    dx = fresh((rows, width), dt)
    _native.pair_distances_backward(*operand(dense_as(grad, dt)), *operand(dense_as(self, dt)),
                                    *operand(dense_as(kept[0], dt)), *operand(dx), rows, width, p)  # fmt: skip
    return dx, None


_ALONE = Whole(_PDIST, int(CPU), _pairs_fit, lambda self, p: _pairs(self, p)[0], None)
_RECORDED = Whole(_PDIST, int(CPU), lambda self, p: p in (1.0, 2.0) and _pairs_fit(self, p), _pairs, _pairs_backward)
cpu("pdist", FnKernel(_ALONE))
_PDIST.kernels[int(CPU | AUTOGRAD)] = FnKernel(recorder(_RECORDED))


def _rows_fit(x1: Any, x2: Any, p: float, compute_mode: str) -> bool:
    if not (p in _KINDS and _plain(x1, 2) and _plain(x2, 2) and x1._dtype is x2._dtype):
        return False
    return x1._shape[-1] == x2._shape[-1] and by_product(x1, x2, p, compute_mode) is False


def _rows(x1: Any, x2: Any, p: float, compute_mode: str) -> TensorBase:
    rows, columns, width = x1._shape[-2], x2._shape[-2], x1._shape[-1]
    batch = broadcast_shapes(x1._shape[:-2], x2._shape[:-2])
    out = fresh((*batch, rows, columns), x1._dtype)
    a = dense_as(x1.expand((*batch, rows, width)), x1._dtype)
    b = dense_as(x2.expand((*batch, columns, width)), x1._dtype)
    _native.cross_distances(*operand(a), *operand(b), *operand(out), math.prod(batch), rows, columns, width, p)
    return out


cpu("cdist", FnKernel(Whole(registry.get("cdist"), int(CPU), _rows_fit, _rows, None)))
