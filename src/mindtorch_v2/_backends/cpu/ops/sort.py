"""CPU lines of sorting."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._ops.rules.base import wrap_dim
from ..kernels.sort import Sort
from ..lines import cpu, into
from ..numpy_view import np_view

cpu("sort", Sort())

# From this many elements on, picking the k largest first and sorting only those is quicker than sorting all.
_PARTITION = 256


def _topk(outs: tuple[Any, Any], self: Any, k: int, dim: int, largest: bool, sorted: bool) -> None:
    import numpy as np

    values, indices = np_view(outs[0]), np_view(outs[1])
    x = np_view(self)
    if x.ndim == 0:
        values[...] = x
        indices[...] = 0
        return
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    if values.size == 0:
        return
    if self._dtype.name == "bfloat16":
        x = x.astype(np.float32)
    if n >= _PARTITION and 4 * k <= n:
        part = np.argpartition(x, n - k if largest else k - 1, axis=d)
        chosen = np.take(part, range(n - k, n) if largest else range(k), axis=d)
    else:
        chosen = _all_sorted(self, d, largest, k, np)
        indices[...] = chosen
        values[...] = np.take_along_axis(np_view(self), chosen, axis=d)
        return
    picked = np.take_along_axis(x, chosen, axis=d)
    order = np.argsort(picked, axis=d, kind="stable")
    if largest:
        order = np.flip(order, axis=d)
    chosen = np.take_along_axis(chosen, order, axis=d)
    indices[...] = chosen
    values[...] = np.take_along_axis(np_view(self), chosen, axis=d)


def _all_sorted(self: Any, dim: int, largest: bool, k: int, np: Any) -> Any:
    shape = self._shape
    stride: list[int] = [0] * len(shape)
    step = 1
    for i in range(len(shape) - 1, -1, -1):
        stride[i] = step
        step *= shape[i]
    _, where = _native.sort(self._storage, int(self._offset), self._stride, self._dtype.code, None, 0, tuple(stride),
                            self._dtype.code, None, 0, tuple(stride), 4, shape, dim, largest)
    order = np.ndarray(shape, np.int64, where)
    return np.take(order, range(k), axis=dim)


cpu("topk", into(_topk))


def _mode(outs: tuple[Any, Any], self: Any, dim: int, keepdim: bool) -> None:
    """The commonest value, the smallest of several; its place is the last of its occurrences."""
    import numpy as np

    x = np_view(self)
    if x.ndim == 0:
        np_view(outs[0])[...] = x
        np_view(outs[1])[...] = 0
        return
    d = wrap_dim(dim, x.ndim)
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


cpu("mode", into(_mode))
