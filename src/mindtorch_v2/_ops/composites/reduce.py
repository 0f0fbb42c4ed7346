"""From a reduced gradient to the input's shape.

Invariant: nothing is copied: the gradient is seen in the input's shape.
"""

from __future__ import annotations

from typing import Any

from ..._core_operators import CORE
from ..._mypyc import i64
from ..rules.reduce import all_dims, dim_mask_or_all, reduced_count, reduced_shape
from .rows import ROWS


def restore(t: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """Put the reduced dimensions back with size 1."""
    n: i64 = len(shape)
    if keepdim or n == 0:
        return t
    if n > 64 and len(t._shape) == 0:
        return t  # a number spreads over any shape
    mask = dim_mask_or_all(dim, n)
    if mask == all_dims(n):
        return t
    return ROWS.view.call((t, reduced_shape(shape, mask, True)))


def unreduce(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """The gradient of a sum: the reduced gradient at every element that went into it."""
    return ROWS.expand.call((restore(g, shape, dim, keepdim), shape, False))


def unreduce_mean(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    count = reduced_count(shape, dim_mask_or_all(dim, len(shape)))
    return unreduce(CORE.div.call((g, int(count), None)), shape, dim, keepdim)
