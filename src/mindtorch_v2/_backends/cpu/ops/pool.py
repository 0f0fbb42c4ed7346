"""CPU lines of pooling: every kind is a list of windows for each dimension.

Invariant: windows are clipped to the plane here; the native kernels only walk over them. Planes are read and written in
the order of the input's memory: each by itself, or channels last.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import CPU
from ...._dispatch.op import FnKernel, PartsKernel
from ...._dtype import int64
from ...._ops.kept import kept
from ...._ops.pool import Sliding, check_max_1d, sent, sliding
from ...._tensor_base import numel
from ...recorded import Whole
from ..kernels.dense import (
    deliver,
    dense_as,
    fresh,
    fresh_last,
    is_last,
    last_as,
    operand,
    target,
    target_last,
    triple,
    wide_dtype,
)
from ..lines import cpu, into

Ints = tuple[int, ...]
Windows = tuple[Ints, Ints, Ints]
_pool_max_last: Any = _native.pool_max_last
_pool_max_backward_last: Any = _native.pool_max_backward_last
_pool_mean_last: Any = _native.pool_mean_last
_pool_mean_backward_last: Any = _native.pool_mean_backward_last


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


def _in_last(x: Any, rank: int) -> bool:
    return len(x._shape) == rank + 2 and is_last(x)


def _largest(outs: Any, x: Any, rank: int, windows: Windows, dilation: Ints) -> None:
    if numel(outs[0]) == 0:
        return
    dt = wide_dtype(x._dtype)
    extent = _extent(x._shape, outs[0]._shape, rank)
    walk = (windows[0], windows[1], triple(dilation, 1))
    if _in_last(x, rank):
        y, places = target_last(outs[0], dt), target_last(outs[1], outs[1]._dtype)
        _pool_max_last(*operand(last_as(x, dt)), *operand(y), *operand(places), *x._shape[:2], *extent[1:],
                              *walk)
    else:
        y, places = target(outs[0], dt), target(outs[1], outs[1]._dtype)
        _native.pool_max(*operand(dense_as(x, dt)), *operand(y), *operand(places), *extent, *walk)
    deliver(outs[0], y)
    deliver(outs[1], places)


def _mean(out: Any, x: Any, rank: int, windows: Windows, divisor: int) -> None:
    if numel(out) == 0:
        return
    dt = wide_dtype(x._dtype)
    extent = _extent(x._shape, out._shape, rank)
    if _in_last(x, rank):
        y = target_last(out, dt)
        _pool_mean_last(*operand(last_as(x, dt)), *operand(y), *x._shape[:2], *extent[1:], *windows, divisor)
    else:
        y = target(out, dt)
        _native.pool_mean(*operand(dense_as(x, dt)), *operand(y), *extent, *windows, divisor)
    deliver(out, y)


def _mean_backward(out: Any, grad: Any, rank: int, windows: Windows, divisor: int) -> None:
    if numel(out) == 0:
        return
    dt = wide_dtype(out._dtype)
    extent = _extent(out._shape, grad._shape, rank)
    if _in_last(out, rank):
        y = target_last(out, dt)
        _pool_mean_backward_last(*operand(last_as(grad, dt)), *operand(y), *out._shape[:2], *extent[1:],
                                        *windows, divisor)
    else:
        y = target(out, dt)
        _native.pool_mean_backward(*operand(dense_as(grad, dt)), *operand(y), *extent, *windows, divisor)
    deliver(out, y)


def _largest_backward(grad: Any, x: Any, indices: Any, rank: int) -> Any:
    dt = wide_dtype(x._dtype)
    if not _in_last(x, rank) or numel(grad) == 0 or not dt.is_floating_point:
        return sent(grad, x, indices, rank)
    y = fresh_last(x._shape, dt)
    _pool_max_backward_last(*operand(last_as(grad, dt)), *operand(last_as(indices, int64)), *operand(y),
                                   *x._shape[:2], *_extent(x._shape, grad._shape, rank)[1:])
    return last_as(y, x._dtype)


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

    def max_pool_backward(grad_output: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
                          ceil_mode: bool, indices: Any) -> Any:
        return _largest_backward(grad_output, self, indices, rank)

    def adaptive_max_backward(grad_output: Any, self: Any, indices: Any) -> Any:
        return _largest_backward(grad_output, self, indices, rank)

    cpu(f"max_pool{rank}d_with_indices", into(max_pool))
    cpu(f"max_pool{rank}d_with_indices_backward", PartsKernel(max_pool_backward))
    cpu(f"avg_pool{rank}d", into(avg_pool))
    cpu(f"avg_pool{rank}d_backward", into(avg_pool_backward))
    cpu(f"adaptive_max_pool{rank}d", into(adaptive_max))
    cpu(f"adaptive_max_pool{rank}d_backward", PartsKernel(adaptive_max_backward))
    cpu(f"_adaptive_avg_pool{rank}d", into(adaptive_avg))
    cpu(f"_adaptive_avg_pool{rank}d_backward", into(adaptive_avg_backward))


_serve(2)
_serve(3)


# Nobody asks for the places of the largest where no gradient is wanted.
def _line_fits(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> bool:
    return self._dtype.name in ("float32", "float64")


def _max_line(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    check_max_1d(self, kernel_size, stride, padding, dilation, ceil_mode)
    v = Sliding(tuple(kernel_size), tuple(stride or kernel_size), tuple(padding), tuple(dilation), ceil_mode)
    shape = self._shape
    out = fresh((*shape[:-1], *v.places(shape[-1:])), self._dtype)
    if numel(out):
        _native.pool_line(*operand(dense_as(self, self._dtype)), *operand(out), numel(out) // out._shape[-1], shape[-1],
                          out._shape[-1], v.kernel[0], v.stride[0], v.padding[0], v.dilation[0])
    return out


cpu("max_pool1d", FnKernel(Whole(registry.get("max_pool1d"), int(CPU), _line_fits, _max_line, None)))
