"""CPU lines of sorting."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dtype import float32, int64
from ...._ops.rules.base import wrap_dim
from ...._ops.sort import median_all
from ...._tensor_base import is_contiguous, numel
from ...common.runtime import copy_same_device
from ..kernels.dense import deliver, dense, dense_as, fresh, target
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


_LARGEST, _FIRST, _SKIPPED = 0, 1, 2  # what the native module makes of NaN


_RANKED = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")


def _check_ranked(name: str, dt: Any) -> None:
    if dt.name not in _RANKED:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")


def _kth(name: str, outs: tuple[Any, Any], self: Any, dim: int, rank: int, nans: int) -> None:
    """One element of each lane, and its place."""
    _check_ranked(name, self._dtype)
    n = len(self._shape)
    dim = wrap_dim(dim, n) if n else 0
    # Without `keepdim` the outputs lack the dimension.
    strides = [o._stride if len(o._shape) == n else (*o._stride[:dim], 0, *o._stride[dim:]) for o in outs]
    values, places = outs
    _native.kth(self._storage, int(self._offset), self._stride, self._dtype.code,
                values._storage, int(values._offset), strides[0], values._dtype.code,
                places._storage, int(places._offset), strides[1], places._dtype.code,
                self._shape, dim, rank, nans)


def _median(name: str, skip_nan: bool) -> None:
    nans = _SKIPPED if skip_nan else _FIRST

    def of_all(out: Any, self: Any) -> None:
        if numel(self) == 0:
            copy_same_device(out, median_all(self, skip_nan))
        else:
            whole, code = dense(self), self._dtype.code
            _check_ranked("median_cpu", self._dtype)
            _native.kth(whole._storage, int(whole._offset), (1,), code, out._storage, int(out._offset), (0,), code,
                        _native.Storage(8), 0, (0,), int64.code, (numel(self),), 0, 0, nans)

    def by_dim(outs: tuple[Any, Any], self: Any, dim: int, keepdim: bool) -> None:
        if numel(outs[0]):
            _kth("median_out", outs, self, dim, 0, nans)

    cpu(name, into(of_all, calls_ops=True))
    cpu(f"{name}.dim", into(by_dim))


_median("median", False)
_median("nanmedian", True)


def _kthvalue(outs: tuple[Any, Any], self: Any, k: int, dim: int, keepdim: bool) -> None:
    if numel(outs[0]):
        _kth("kthvalue_cpu", outs, self, dim, k - 1, _LARGEST)


cpu("kthvalue", into(_kthvalue))


# Places of so many elements are no longer counted by NumPy.
_MOST_SORTED = (1 << 63) // 8 - 1


def _mode(outs: tuple[Any, Any], self: Any, dim: int, keepdim: bool) -> None:
    """The commonest value, the smallest of several; its place is the last of its occurrences."""
    if self._dtype.is_floating_point and self._dtype.itemsize == 2 and numel(self):
        # Widening keeps order and equality.
        found, at = fresh(outs[0]._shape, float32), target(outs[1], int64)
        _mode((found, at), dense_as(self, float32), dim, keepdim)
        deliver(outs[0], found)
        deliver(outs[1], at)
        return
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
