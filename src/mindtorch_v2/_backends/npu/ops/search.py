"""NPU lines of distinct values, searching and counting.

Invariant: sizes that depend on data come from the vendor's dynamic functions, or are asked of the device once.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dtype import float32, float64, int64
from ...._ops.rules.base import wrap_dim
from ...._strides import contiguous_strides
from ...._tensor_base import alias, numel
from .. import creation, launch
from ..lines import accepts_dtype, call, fused, helper, into, npu, parts

_stack = registry.get("stack")


# -- distinct values ------------------------------------------------------------------------------------------------
def _shrunk(t: Any, shape: tuple[int, ...]) -> Any:
    """The front of a tensor that the vendor filled as one of another shape."""
    return t if t._shape == shape else creation.compact(alias(t, shape, contiguous_strides(shape), 0))


def _unique2(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    n = numel(self)
    values, inverse, counts = self.new_empty((n,)), self.new_empty(self._shape, dtype=int64), self.new_empty(
        (n,), dtype=int64)
    found = launch.launch_dynamic(launch.resolve("aclnnUnique2"), [self, True, True, True, values, inverse, counts],
                                  "_unique2")
    return _shrunk(values, found[0]), inverse, _shrunk(counts, found[2])


def _along(function: str, self: Any, dim: int, flags: tuple[bool, ...], op: str) -> Any:
    """Distinct slices; as in PyTorch they lie one behind the other in memory."""
    d = wrap_dim(dim, len(self._shape))
    values = self.new_empty(self._shape)
    inverse, counts = (self.new_empty((self._shape[d],), dtype=int64) for _ in range(2))
    found = launch.launch_dynamic(launch.resolve(function), [self, *flags, d, values, inverse, counts], op)
    made = _shrunk(values, found[0])
    return made.movedim(d, 0).contiguous().movedim(0, d), inverse, _shrunk(counts, found[2])


# The number of a dimension that means none of them.
_FLAT = 1000


def _consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    if dim is not None:
        return _along("aclnnUniqueConsecutive", self, dim, (True, True), "unique_consecutive")
    n = numel(self)
    values, inverse, counts = self.new_empty((n,)), self.new_empty(self._shape, dtype=int64), self.new_empty(
        (n,), dtype=int64)
    found = launch.launch_dynamic(launch.resolve("aclnnUniqueConsecutive"),
                                  [self, True, True, _FLAT, values, inverse, counts], "unique_consecutive")
    return _shrunk(values, found[0]), inverse, _shrunk(counts, found[2])


npu("_unique2", fused(("aclnnUnique2",), lambda self, *flags: accepts_dtype("aclnnUnique2", self) and numel(self) > 0
                      and 0 < len(self._shape) <= 8, _unique2))
npu("unique_dim", fused(("aclnnUniqueDim",), lambda self, dim, *flags: accepts_dtype("aclnnUniqueDim", self) and
                        numel(self) > 0 and -len(self._shape) <= dim < len(self._shape) <= 8,
                        lambda self, dim, *flags: _along("aclnnUniqueDim", self, dim, (True, True), "unique_dim")))
npu("_unique_consecutive", fused(
    ("aclnnUniqueConsecutive",), lambda self, inverse, counts, dim: accepts_dtype("aclnnUniqueConsecutive", self) and
    numel(self) > 0 and len(self._shape) <= 8 and (dim is None or -len(self._shape) <= dim < len(self._shape)),
    _consecutive))


# -- membership and counts --------------------------------------------------------------------------------------------
def _counted(self: Any, weights: Any, minlength: int) -> bool:
    return (accepts_dtype("aclnnBincount", self) and len(self._shape) == 1 and numel(self) > 0 and minlength >= 0
            and (weights is None or (weights._shape == self._shape and accepts_dtype("aclnnBincount", weights, 1))))


def _bincount(self: Any, weights: Any, minlength: int) -> Any:
    low, high = self.aminmax()
    least, most = _stack.call(((low.to(int64), high.to(int64)), 0)).tolist()
    if least < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    dt = int64 if weights is None else float32 if weights._dtype is float32 else float64
    out = self.new_empty((max(minlength, most + 1),), dtype=dt)
    call("aclnnBincount", "bincount", self, weights, minlength, out)
    return out


npu("bincount", fused(("aclnnBincount",), _counted, _bincount))


@helper
def to_the_right(right: bool, side: Any) -> bool:
    return right or side == "right"


npu("searchsorted", "aclnnSearchSorted(sorted_sequence, self, out_int32, to_the_right(right, side), sorter, out)",
    numbers=dict(self="aclnnSearchSorteds(sorted_sequence, self, out_int32, to_the_right(right, side), sorter, out)"))


def _histc(self: Any, bins: int, min: Any, max: Any) -> Any:
    flat = self.reshape((-1,))
    low, high = float(min), float(max)
    if low == high and numel(flat):
        low, high = (float(t.item()) for t in flat.aminmax())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    inside = (flat >= low).logical_and(flat <= high)
    at = ((flat - low) / (high - low) * bins).to(int64).clamp(0, bins - 1)
    return self.new_zeros((bins,)).index_add(0, at, inside.to(self._dtype))


npu("histc", "aclnnHistc(self, bins, min, max, out)", empty=0, otherwise=parts(_histc))


# -- bins of any width ----------------------------------------------------------------------------------------------
def _into_bins(outs: Any, x: Any, edges: Any, weight: Any, density: bool) -> None:
    """What lies on the last edge is in the last bin."""
    bins = edges._shape[0] - 1
    flat = x.reshape((-1,))
    at = registry.get("searchsorted").call((edges, flat, False, True, None, None)) - 1
    first, last = edges.narrow(0, 0, 1), edges.narrow(0, bins, 1)
    inside = (flat >= first).logical_and(flat <= last)
    counted = inside.to(x._dtype) if weight is None else weight.reshape((-1,)).masked_fill(inside.logical_not(), 0)
    hist = x.new_zeros((bins,)).index_add(0, at.clamp(0, max(bins - 1, 0)), counted) if bins else x.new_zeros((0,))
    if density:
        hist = hist / ((edges.narrow(0, 1, bins) - edges.narrow(0, 0, bins)) * hist.sum())
    outs[0].copy_(hist)
    outs[1].copy_(edges)


def _histogram(outs: Any, self: Any, bins: int, range: Any, weight: Any, density: bool) -> None:
    from .... import arange

    if range is not None or not numel(self):
        low, high = (self.new_full((), v) for v in (range or (0.0, 1.0)))
    else:
        low, high = self.aminmax()
    alone = (low == high).to(self._dtype) * 0.5
    low, high = low - alone, high + alone
    # From both ends towards the middle, as linspace has them.
    up = arange(bins + 1, dtype=self._dtype, device=self._device)
    step = (high - low) / bins
    edges = registry.get("where").call((up < (bins + 1) // 2, up * step + low, high - (bins - up) * step))
    _into_bins(outs, self, edges, weight, density)


npu("histogram.bins_tensor", into(lambda outs, self, bins, weight, density: _into_bins(
    outs, self, bins, weight, density)))
npu("histogram.bin_ct", into(_histogram))
