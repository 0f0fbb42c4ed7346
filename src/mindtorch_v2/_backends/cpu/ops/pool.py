"""CPU lines of pooling: every kind is a list of windows for each dimension.

Invariant: windows are clipped to the plane here; the native kernels only walk over them.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from .... import _native
from ...._ops.kept import kept
from ...._ops.pool import Sliding, sliding
from ...._tensor_base import numel
from ..kernels.dense import deliver, dense_as, operand, target, triple, wide_dtype
from ..lines import cpu, into

Ints = tuple[int, ...]
Windows = tuple[Ints, Ints, Ints]


@kept
def _walk(v: Sliding, sizes: Ints, places: Ints, include_padding: bool = False) -> Windows:
    """Starts, ends and counts of elements, one dimension after the other, leading ones for missing dimensions."""
    missing = 3 - len(sizes)
    starts, ends, counts = [0] * missing, [1] * missing, [1] * missing
    for n, count, k, s, p, d in zip(sizes, places, v.kernel, v.stride, v.padding, v.dilation):
        for i in range(count):
            first = i * s - p
            last = min(first + (k - 1) * d + 1, n + p)
            start, end = first, min(last, n)
            if start < 0:
                start += (-start + d - 1) // d * d
            starts.append(start)
            ends.append(end)
            counts.append(last - first if include_padding else max(end - start, 1))
    return tuple(starts), tuple(ends), tuple(counts)


@kept
def _adapt(sizes: Ints, places: Ints) -> Windows:
    missing = 3 - len(sizes)
    starts, ends = [0] * missing, [1] * missing
    for n, count in zip(sizes, places):
        for i in range(count):
            starts.append(i * n // count)
            ends.append(-(-(i + 1) * n // count))
    return tuple(starts), tuple(ends), tuple(e - s for s, e in zip(starts, ends))


class Extent(NamedTuple):
    """How many planes there are, and the sizes of one before and after pooling, with a 1 for each missing dimension."""

    planes: int
    sizes: Ints
    places: Ints


@kept
def _extent(shape: Ints, pooled: Ints, rank: int) -> Extent:
    planes = 1
    for n in shape[:len(shape) - rank]:
        planes *= n
    return Extent(planes, triple(shape[-rank:], 1), triple(pooled[-rank:], 1))


def _largest(outs: Any, x: Any, rank: int, windows: Windows, dilation: Ints) -> None:
    if numel(outs[0]) == 0:
        return
    dt = wide_dtype(x._dtype)
    y, places = target(outs[0], dt), target(outs[1], outs[1]._dtype)
    _native.pool_max(*operand(dense_as(x, dt)), *operand(y), *operand(places), *_extent(x._shape, y._shape, rank),
                     windows[0], windows[1], triple(dilation, 1))
    deliver(outs[0], y)
    deliver(outs[1], places)


def _mean(out: Any, x: Any, rank: int, windows: Windows, divisor: int) -> None:
    if numel(out) == 0:
        return
    dt = wide_dtype(x._dtype)
    y = target(out, dt)
    _native.pool_mean(*operand(dense_as(x, dt)), *operand(y), *_extent(x._shape, y._shape, rank), *windows, divisor)
    deliver(out, y)


def _mean_backward(out: Any, grad: Any, rank: int, windows: Windows, divisor: int) -> None:
    if numel(out) == 0:
        return
    dt = wide_dtype(out._dtype)
    y = target(out, dt)
    _native.pool_mean_backward(*operand(dense_as(grad, dt)), *operand(y), *_extent(out._shape, grad._shape, rank),
                               *windows, divisor)
    deliver(out, y)


def _serve(rank: int) -> None:
    def max_pool(outs: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
                 ceil_mode: bool) -> None:
        v = sliding("max_pool", rank, kernel_size, stride, padding, dilation, ceil_mode)
        _largest(outs, self, rank, _walk(v, self._shape[-rank:], outs[0]._shape[-rank:]), v.dilation)

    def avg_pool(out: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
                 count_include_pad: bool, divisor_override: int | None) -> None:
        v = sliding("avg_pool", rank, kernel_size, stride, padding, (1,), ceil_mode)
        _mean(out, self, rank, _walk(v, self._shape[-rank:], out._shape[-rank:], count_include_pad),
              divisor_override or 0)

    def avg_pool_backward(out: Any, grad_output: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints,
                          ceil_mode: bool, count_include_pad: bool, divisor_override: int | None) -> None:
        v = sliding("avg_pool", rank, kernel_size, stride, padding, (1,), ceil_mode)
        _mean_backward(out, grad_output, rank,
                       _walk(v, self._shape[-rank:], grad_output._shape[-rank:], count_include_pad),
                       divisor_override or 0)

    def adaptive_max(outs: Any, self: Any, output_size: Ints) -> None:
        # There may be many places and no planes.
        if numel(outs[0]):
            _largest(outs, self, rank, _adapt(self._shape[-rank:], outs[0]._shape[-rank:]), (1,) * rank)

    def adaptive_avg(out: Any, self: Any, output_size: Ints) -> None:
        if numel(out):
            _mean(out, self, rank, _adapt(self._shape[-rank:], out._shape[-rank:]), 0)

    def adaptive_avg_backward(out: Any, grad_output: Any, self: Any) -> None:
        if numel(out):
            _mean_backward(out, grad_output, rank, _adapt(self._shape[-rank:], grad_output._shape[-rank:]), 0)

    cpu(f"max_pool{rank}d_with_indices", into(max_pool))
    cpu(f"avg_pool{rank}d", into(avg_pool))
    cpu(f"avg_pool{rank}d_backward", into(avg_pool_backward))
    cpu(f"adaptive_max_pool{rank}d", into(adaptive_max))
    cpu(f"_adaptive_avg_pool{rank}d", into(adaptive_avg))
    cpu(f"_adaptive_avg_pool{rank}d_backward", into(adaptive_avg_backward))


_serve(2)
_serve(3)
