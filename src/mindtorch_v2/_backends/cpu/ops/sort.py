"""CPU lines of sorting."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dtype import int64
from ...._ops.rules.base import wrap_dim
from ...._ops.sort import median_all, median_dim
from ...._tensor_base import is_contiguous, numel
from ...common.runtime import copy_same_device
from ..kernels.dense import dense, fresh
from ..kernels.sort import Sort
from ..lines import cpu, into
from ..numpy_view import np_view

cpu("sort", Sort())


def _topk(outs: tuple[Any, Any], self: Any, k: int, dim: int, largest: bool, sorted: bool) -> None:
    values, indices = outs
    _native.topk(self._storage, int(self._offset), self._stride, self._dtype.code,
                 values._storage, int(values._offset), values._stride, values._dtype.code,
                 indices._storage, int(indices._offset), indices._stride, indices._dtype.code,
                 self._shape, wrap_dim(dim, len(self._shape)) if self._shape else 0, k, largest)


cpu("topk", into(_topk))


def _medians(self: Any, rows: int, values: Any, places: Any, skip_nan: bool) -> bool:
    """The median of each of `rows` rows that lie one behind the other; False for dtypes the native module leaves."""
    n = numel(self) // rows
    served: bool = _native.median(
        self._storage, int(self._offset), (n, 1), self._dtype.code, (rows, n),
        values._storage, int(values._offset), (1,), values._dtype.code,
        places._storage, int(places._offset), (1,), places._dtype.code, skip_nan)
    return served


def _median(name: str, skip_nan: bool) -> None:
    def of_all(out: Any, self: Any) -> None:
        if numel(self) == 0 or not _medians(dense(self), 1, out, fresh((1,), int64), skip_nan):
            copy_same_device(out, median_all(self, skip_nan))

    def by_dim(outs: tuple[Any, Any], self: Any, dim: int, keepdim: bool) -> None:
        rows = numel(outs[0])
        last = len(self._shape) == 0 or wrap_dim(dim, len(self._shape)) == len(self._shape) - 1
        if rows == 0 or numel(self) == 0 or not last or not _medians(dense(self), rows, *outs, skip_nan):
            for out, found in zip(outs, median_dim(self, dim, keepdim, skip_nan)):
                copy_same_device(out, found)

    cpu(name, into(of_all, calls_ops=True))
    cpu(f"{name}.dim", into(by_dim, calls_ops=True))


_median("median", False)
_median("nanmedian", True)


# Places of so many elements are no longer counted by NumPy.
_MOST_SORTED = (1 << 63) // 8 - 1


def _mode(outs: tuple[Any, Any], self: Any, dim: int, keepdim: bool) -> None:
    """The commonest value, the smallest of several; its place is the last of its occurrences."""
    if self._shape and numel(self) and all(is_contiguous(o) for o in outs):
        rows = dense(self.movedim(dim, -1))
        n = rows._shape[-1]
        if _native.mode(rows._storage, int(rows._offset), (n, 1), rows._dtype.code, (numel(rows) // n, n),
                        outs[0]._storage, int(outs[0]._offset), (1,), outs[0]._dtype.code,
                        outs[1]._storage, int(outs[1]._offset), (1,), outs[1]._dtype.code):
            return
    import numpy as np

    x = np_view(self)
    if x.ndim == 0:
        np_view(outs[0])[...] = x
        np_view(outs[1])[...] = 0
        return
    d = wrap_dim(dim, x.ndim)
    if x.size > _MOST_SORTED:
        raise RuntimeError(f"can't allocate memory: you tried to sort {x.size} elements")
    lanes = np.moveaxis(x, d, -1).reshape((-1, x.shape[d]))
    order = np.argsort(lanes, axis=1, kind="stable")
    ranked = np.take_along_axis(lanes, order, axis=1)
    values = np.empty(len(lanes), x.dtype)
    places = np.empty(len(lanes), np.int64)
    for i, row in enumerate(ranked):
        ends = np.append(np.flatnonzero(row[1:] != row[:-1]), len(row) - 1)
        longest = int(np.argmax(np.diff(ends, prepend=-1)))
        values[i] = row[ends[longest]]
        places[i] = order[i, ends[longest]]
    np_view(outs[0])[...] = values.reshape(outs[0]._shape)
    np_view(outs[1])[...] = places.reshape(outs[1]._shape)


cpu("mode", into(_mode, calls_ops=True))
