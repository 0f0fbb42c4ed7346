"""Launches of sorting.

Invariant: equal elements keep their order.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._tensor_base import TensorBase
from .base import SeveralResults, wrapped

_sort: Final[Any] = _native.sort


@final
class Sort(SeveralResults):
    """(self, dim, descending) -> values, indices"""

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        v = specs[0]
        w = specs[1]
        a = args[0]
        assert isinstance(v, Spec) and isinstance(w, Spec) and isinstance(a, TensorBase)
        values, indices = _sort(
            a._storage, int(a._offset), a._stride, a._dtype.code,
            None, 0, v.stride, v.dtype.code,
            None, 0, w.stride, w.dtype.code,
            a._shape, wrapped(args[1], len(a._shape)), args[2])
        return [values, indices]
