"""CPU lines of bags of embeddings: sums and means where nobody asks for gradients."""

from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch.keys import CPU
from ...._dispatch.op import FnKernel
from ...._dtype import int64
from ...._ops.embedding_bag import BAG
from ...recorded import Whole
from ..kernels.dense import dense_as, fresh, operand
from ..lines import cpu

_SUM, _MEAN = 0, 1
_FLOATS = ("float32", "float64", "bfloat16", "float16")


def _fits(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
          per_sample_weights: Any, include_last_offset: bool, padding_idx: int) -> bool:  # fmt: skip
    if mode not in (_SUM, _MEAN) or weight._dtype.name not in _FLOATS or len(weight._shape) != 2:
        return False
    lists = all(t._dtype is int64 and len(t._shape) == 1 and t._shape[0] for t in (indices, offsets))
    if not lists or offsets._shape[0] == (1 if include_last_offset else 0):
        return False
    scale = per_sample_weights
    fine = scale is None or (mode == _SUM and scale._dtype is weight._dtype and scale._shape == indices._shape)
    return fine and (not include_last_offset or int(offsets[-1]) == indices._shape[0])


def _bag(*args: Any) -> Any:
    weight, indices, offsets, _, mode, _, scale, include_last_offset, padding_idx = args
    n, bags, dt = indices._shape[0], offsets._shape[0] - (1 if include_last_offset else 0), weight._dtype
    rows, width = weight._shape
    out = fresh((bags, width), dt)
    where, sizes, largest = fresh((n,), int64), fresh((bags,), int64), fresh((bags,), int64)
    _native.fill(largest._storage, 0, largest._stride, int64.code, largest._shape, 0)
    scaled: tuple[Any, int, int] = (None, 0, 0) if scale is None else operand(dense_as(scale, dt))
    fine = _native.bag_rows(
        *operand(dense_as(weight, dt)), *operand(dense_as(indices, int64)), *operand(dense_as(offsets, int64)), *scaled,
        *operand(out), *operand(where), *operand(sizes),
        n, bags, rows, width, mode == _MEAN, max(-1, padding_idx))  # fmt: skip
    # What is wrong with an index or a start, the parts say; they also know starts that fall.
    return (out, where, sizes, largest) if fine else _WHOLE.parts.run(BAG, args, int(CPU))


_WHOLE = Whole(BAG, int(CPU), _fits, _bag, None)
cpu("_embedding_bag", FnKernel(_WHOLE))
