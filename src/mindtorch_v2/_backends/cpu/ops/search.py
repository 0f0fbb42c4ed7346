"""CPU lines of searching and counting."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dtype import bool as bool_
from ...._dtype import dtype, int64
from ...._ops.composites.formulas import common
from ...._ops.create import LINSPACE
from ...._ops.search import bincount, isin, unique, unique_consecutive
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, is_contiguous, make, numel
from ..kernels.dense import dense, fresh
from ..kernels.moves import search
from ..lines import cpu, into, makes
from ..numpy_view import np_view


def _wide(t: Any) -> Any:
    """An array NumPy can compare."""
    x = np_view(t)
    return x.astype("float32") if t._dtype.name == "bfloat16" else x


def _searchsorted(out: Any, sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None,
                  sorter: Any) -> None:
    where: Any = "right" if right or side == "right" else "left"
    if sorter is None and isinstance(self, TensorBase) and search(out, sorted_sequence, self, where == "right"):
        return
    given = (sorted_sequence, self)
    if isinstance(self, TensorBase) and self._dtype is not sorted_sequence._dtype:
        dt = common(sorted_sequence, self)
        given = tuple(t.to(dt) for t in given)
    import numpy as np

    rows = _wide(given[0])
    values = _wide(given[1]) if isinstance(self, TensorBase) else np.asarray(self)
    target = np_view(out)
    if target.size == 0:
        return
    if sorter is not None:
        order = np_view(sorter).copy()  # nobody changes it after the check
        if ((order < 0) | (order >= rows.shape[-1])).any():
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        rows = np.take_along_axis(rows, order, -1)
    if rows.ndim == 1:
        target[...] = np.searchsorted(rows, values, where)
        return
    for at in np.ndindex(rows.shape[:-1]):
        target[at] = np.searchsorted(rows[at], values[at], where)


def _bucketize(out: Any, self: Any, boundaries: Any, out_int32: bool, right: bool) -> None:
    if not isinstance(self, TensorBase) or not search(out, boundaries, self, right):
        _searchsorted(out, boundaries, self, out_int32, right, None, None)


def _bounds(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    if low == high and x.size:
        low, high = x.min(), x.max()
    if low == high:
        low, high = low - 1, high + 1
    return low, high


def _histc(out: Any, self: Any, bins: int, min: Any, max: Any) -> None:
    import numpy as np

    x = _wide(self).ravel()
    low, high = _bounds(x, min, max)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if is_contiguous(out):
        given = dense(self)
        if _native.histc(given._storage, int(given._offset), (1,), given._dtype.code, numel(given),
                         out._storage, int(out._offset), out._stride, out._dtype.code, bins, float(low), float(high)):
            return
    np_view(out)[...] = np.histogram(x, bins, (float(low), float(high)))[0]


def _counted(outs: Any, x: Any, edges: Any, weight: Any, density: bool, np: Any) -> None:
    count = len(edges) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    # Edges that are not sorted are searched as if they were, as PyTorch does.
    place = np.clip(np.searchsorted(edges, x[inside], side="right") - 1, 0, max(count - 1, 0))
    weights = None if weight is None else np_view(weight).ravel()[inside]
    hist = np.bincount(place, weights, max(count, 1))[:count].astype(np_view(outs[0]).dtype)
    if density:
        hist = hist / hist.sum() / np.diff(edges)
    np_view(outs[0])[...] = hist
    np_view(outs[1])[...] = edges


def _histogram_edges(outs: Any, self: Any, bins: Any, weight: Any, density: bool) -> None:
    import numpy as np

    _counted(outs, np_view(self).ravel(), np_view(bins), weight, density, np)


def _histogram(outs: Any, self: Any, bins: int, range: Any, weight: Any, density: bool) -> None:
    import numpy as np

    x = np_view(self).ravel()
    low, high = (range[0], range[1]) if range is not None else (x.min(), x.max()) if x.size else (0, 1)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = LINSPACE.call((float(low), float(high), bins + 1, self._dtype, None, self._device, False))
    _counted(outs, x, np_view(edges), weight, density, np)


def _bincount(self: Any, weights: Any, minlength: int) -> Any:
    if weights is None and minlength >= 0 and len(self._shape) == 1 and numel(self) > 0:
        x = dense(self)
        counted = _native.bincount(x._storage, int(x._offset), x._stride, x._dtype.code, numel(x), minlength)
        if counted is not None:
            return _line(*counted, int64)
    return bincount(self, weights, minlength)


# Longer ones are sorted by several threads, without the places beside the values.
_FEW = 4096


def _unique(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    x = dense(self)
    found = _native.unique(x._storage, int(x._offset), (1,), x._dtype.code, numel(x), return_inverse, return_counts,
                           _FEW)
    if found is None:
        return unique(self, sorted, return_inverse, return_counts)
    return _distinct(self, found, return_inverse, return_counts)


def _consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    found = None
    if dim is None:
        x = dense(self)
        found = _native.unique_consecutive(x._storage, int(x._offset), (1,), x._dtype.code, numel(x), return_inverse,
                                           return_counts)
    if found is None:
        return unique_consecutive(self, return_inverse, return_counts, dim)
    return _distinct(self, found, return_inverse, return_counts)


def _distinct(self: Any, found: Any, with_inverse: bool, with_counts: bool) -> Any:
    values, count, inverse, counts = found
    shape: tuple[int, ...] = self._shape if with_inverse else (0,)
    runs = make(inverse, 0, shape, contiguous_strides(shape), int64, CPU, CPU_KEY)
    return _line(values, count, self._dtype), runs, _line(counts, count if with_counts else 0, int64)


def _isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    if isinstance(elements, TensorBase) and isinstance(test_elements, TensorBase) \
            and elements._dtype is test_elements._dtype:
        x, tests, out = dense(elements), dense(test_elements), fresh(elements._shape, bool_)
        if _native.isin(x._storage, int(x._offset), (1,), x._dtype.code, numel(x),
                        tests._storage, int(tests._offset), (1,), tests._dtype.code, numel(tests),
                        out._storage, 0, (1,), out._dtype.code, invert):
            return out
    return isin(elements, test_elements, assume_unique, invert)


def _line(storage: Any, n: int, dt: dtype) -> TensorBase:
    return make(storage, 0, (n,), (1,), dt, CPU, CPU_KEY)


cpu("bucketize", into(_bucketize))
cpu("searchsorted", into(_searchsorted))
cpu("bincount", makes(_bincount))
cpu("_unique2", makes(_unique))
cpu("_unique_consecutive", makes(_consecutive))
cpu("isin.Tensor_Tensor", makes(_isin))
cpu("histc", into(_histc))
cpu("histogram.bins_tensor", into(_histogram_edges))
cpu("histogram.bin_ct", into(_histogram))
