"""Launches of norms.

Invariant: the usual norms of real numbers are one pass; the others are what the row says, in terms of operators.
"""
from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._ops.reduce import norm_in_parts
from ...._ops.rules.reduce import dim_mask_or_all, spread_strides
from ...._tensor_base import TensorBase
from .dense import deliver, dense_as, wide_dtype
from .reduce import MOST_MASKED

_reduce: Final[Any] = _native.reduce
_NORM1: Final[int] = _native.NORM1
_NORM2: Final[int] = _native.NORM2


def vector_norm(out: TensorBase, self: TensorBase, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> None:
    """The usual norms of real numbers in one pass; the others as the row says, in terms of operators."""
    n, dt = len(self._shape), wide_dtype(out._dtype)
    plain = ord == 2
    if not (plain or ord == 1) or self._dtype.is_complex or n > MOST_MASKED:
        deliver(out, norm_in_parts(self, ord, dim, keepdim, dtype))
        return
    # Numbers of another dtype than the one asked for are rounded to that first.
    x = self if dtype is None or self._dtype is dtype else dense_as(self, dtype)
    _reduce(
        _NORM2 if plain else _NORM1, x._storage, int(x._offset), x._stride, x._dtype.code,
        out._storage, int(out._offset), spread_strides(out._stride, dim_mask_or_all(dim, n), n, keepdim),
        out._dtype.code, x._shape, dt.code)
