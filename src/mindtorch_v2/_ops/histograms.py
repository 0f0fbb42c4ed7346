"""Histograms over several dimensions.

Invariant: a point counts where every coordinate lies between the first and the last edge of its dimension; edges belong
to the bin on their right, the last one to the last bin. Edges that are not sorted are searched as if they were.
"""
from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from .._dispatch import registry
from .._dtype import int64
from .._dtype_names import cpp_name
from .._tensor_base import numel
from .table import composite

_where = registry.get("where")
_arange = registry.get("arange")
_search = registry.get("searchsorted")


def _check(self: Any, weight: Any) -> Any:
    if self.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if weight is None:
        return None
    if weight._dtype is not self._dtype:
        left, right = (cpp_name(t._dtype) for t in (self, weight))
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
                           f"have the same dtype, but got input({left}), and weight({right})")
    if weight._shape != self._shape[:-1]:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
                           f"tensor excluding its innermost dimension, but got input with shape {list(self._shape)} "
                           f"and weight with shape {list(weight._shape)}")
    return weight.detach()


def _numbers(t: Any, count: int) -> Any:
    return _arange.call((0, count, 1, int64, None, t._device, None))


def _even_edges(low: Any, high: Any, bins: int) -> Any:
    """bins + 1 edges from low to high, counted from the nearer end as `linspace` does."""
    i = _numbers(low, bins + 1).to(low._dtype)
    step = (high - low) / bins
    return _where.call((i < (bins + 1) // 2, low + step * i, high - step * (bins - i)))


def _edges(self: Any, bins: Sequence[int], range: Sequence[float] | None) -> list[Any]:
    """Edges of each dimension: over the range given, or from the smallest to the largest coordinate."""
    n = self._shape[-1]
    if len(bins) != n:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    for d, count in enumerate(bins):
        if count <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}")
    if range is not None:
        if len(range) != 2 * n:
            raise RuntimeError(f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} "
                               f"elements, but got {len(range)}")
        for d in builtins.range(n):
            if range[2 * d] > range[2 * d + 1]:
                raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {range[2 * d]:g} max "
                                   f"{range[2 * d + 1]:g} for dimension {d}")
            if not (math.isfinite(range[2 * d]) and math.isfinite(range[2 * d + 1])):
                raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{range[2 * d]:g}, {range[2 * d + 1]:g}] "
                                   "is not finite")
        lows, highs = (self.new_tensor([range[2 * d + k] for d in builtins.range(n)]) for k in (0, 1))
    elif numel(self):
        points = self.reshape((-1, n))
        lows, highs = points.amin((0,)), points.amax((0,))
        if self._device.type != "meta":
            for d, (low, high) in enumerate(zip(lows.tolist(), highs.tolist())):
                if not (math.isfinite(low) and math.isfinite(high)):
                    raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
    else:
        lows, highs = self.new_zeros((n,)), self.new_ones((n,))
    half = (lows == highs).to(self._dtype) * 0.5
    lows, highs = lows - half, highs + half
    return [_even_edges(lows.select(0, d), highs.select(0, d), count) for d, count in enumerate(bins)]


def _bin(values: Any, edges: Any) -> Any:
    """The place before the first edge that is larger, which is searched by halving."""
    count = edges._shape[0]
    first = _search.call((edges.contiguous(), values.contiguous(), False, True, None, None))
    return (first - 1).clamp(min=0, max=max(count - 2, 0))


def _count(self: Any, edges: Sequence[Any], weight: Any, density: bool) -> Any:
    if not self._dtype.is_floating_point or self._dtype.itemsize < 4:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{self._dtype.scalar_name}'")
    shape = tuple(e._shape[0] - 1 for e in edges)
    if not edges:
        return self.new_zeros(())
    points = self.reshape((math.prod(self._shape[:-1]), self._shape[-1]))
    place = points.new_zeros((points._shape[0],), dtype=int64)
    inside = None
    for d, e in enumerate(edges):
        x = points.select(1, d)
        here = (x >= e[0]) & (x <= e[-1])
        inside = here if inside is None else inside & here
        place = place * shape[d] + _bin(x, e)
    ones = points.new_ones((points._shape[0],)) if weight is None else weight.reshape((-1,))
    ones = _where.call((inside, ones, ones.new_zeros(())))
    hist = points.new_zeros((math.prod(shape),))
    if numel(hist):
        hist = hist.index_add(0, place, ones)
    hist = hist.view(shape)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            hist = hist / (e[1:] - e[:-1]).view(tuple(-1 if k == d else 1 for k in builtins.range(len(shape))))
    return hist


def _histogramdd(self: Any, bins: Sequence[int], range: Sequence[float] | None, weight: Any,
                 density: bool) -> tuple[Any, tuple[Any, ...]]:
    weight, self = _check(self, weight), self.detach()
    edges = _edges(self, bins, range)
    return _count(self, edges, weight, density), tuple(edges)


def _with_edges(self: Any, bins: Sequence[Any], range: Sequence[float] | None, weight: Any,
                density: bool) -> tuple[Any, tuple[Any, ...]]:
    weight, self = _check(self, weight), self.detach()
    n = self._shape[-1]
    if len(bins) != n:
        raise RuntimeError(f"torch.histogramdd: expected {n} sequences of bin edges for a {n}-dimensional histogram "
                           f"but got {len(bins)}")
    for d, e in enumerate(bins):
        if e._dtype is not self._dtype:
            left, right = (cpp_name(t._dtype) for t in (self, e))
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
                               f"input with dtype {left} and bins for dimension {d} with dtype {right}")
        if e.dim() != 1:
            raise RuntimeError("torch.histogramdd: bins tensor should have one dimension, but got "
                               f"{e.dim()} dimensions in the bins tensor for dimension {d}")
        if not numel(e):
            raise RuntimeError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
                               f"the bins tensor for dimension {d}")
    return _count(self, [e.detach() for e in bins], weight, density), tuple(bins)


_REST = "float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)"
composite(f"histogramdd(Tensor self, int[] bins, {_REST}", _histogramdd, method=False)
composite(f"histogramdd.int_bins(Tensor self, int bins, {_REST}",
          lambda self, bins, range, weight, density: _histogramdd(
              self, (bins,) * (self._shape[-1] if self.dim() else 0), range, weight, density), method=False)
composite(f"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, {_REST}", _with_edges, method=False)
