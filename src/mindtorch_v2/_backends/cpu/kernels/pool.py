"""Launches of pooling: every kind is a list of windows for each dimension.

Invariant: windows are clipped to the plane here; the native kernels only walk over them. Planes are read and written in
the order of the input's memory: each by itself, or channels last.
"""
from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dtype import int64
from ...._ops.pool import sent, sliding
from ...._tensor_base import TensorBase, numel
from .dense import deliver, dense_as, fresh_last, is_last, last_as, operand, target, target_last, triple, wide_dtype

Ints = tuple[int, ...]
_pool_max: Final[Any] = _native.pool_max
_pool_max_last: Final[Any] = _native.pool_max_last
_pool_max_backward_last: Final[Any] = _native.pool_max_backward_last
_pool_mean: Final[Any] = _native.pool_mean
_pool_mean_last: Final[Any] = _native.pool_mean_last
_pool_mean_backward: Final[Any] = _native.pool_mean_backward
_pool_mean_backward_last: Final[Any] = _native.pool_mean_backward_last
_MOST: Final = 512
_ONES: Final = (1,)


@final
class Walk:
    """Starts, ends and counts of elements of windows, one dimension after the other, leading ones for missing
    dimensions; how many planes there are, and the sizes of one before and after pooling."""

    def __init__(self, shape: Ints, pooled: Ints, rank: int, starts: list[int], ends: list[int], counts: list[int],
                 dilation: Ints) -> None:
        missing = 3 - rank
        planes = 1
        for n in shape[:len(shape) - rank]:
            planes *= n
        self.starts: Final = tuple([0] * missing + starts)
        self.ends: Final = tuple([1] * missing + ends)
        self.counts: Final = tuple([1] * missing + counts)
        self.dilation: Final = triple(dilation, 1)
        self.planes: Final = planes
        self.sizes: Final = triple(shape[-rank:], 1)
        self.places: Final = triple(pooled[-rank:], 1)


def _slide(shape: Ints, pooled: Ints, rank: int, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
           include_padding: bool) -> Walk:
    starts: list[int] = []
    ends: list[int] = []
    counts: list[int] = []
    for i in range(rank):
        n, k, s, p, d = shape[i - rank], kernel[i], stride[i], padding[i], dilation[i]
        for place in range(pooled[i - rank]):
            first = place * s - p
            last = min(first + (k - 1) * d + 1, n + p)
            start, end = first, min(last, n)
            if start < 0:
                start += (-start + d - 1) // d * d
            starts.append(start)
            ends.append(end)
            counts.append(last - first if include_padding else max(end - start, 1))
    return Walk(shape, pooled, rank, starts, ends, counts, dilation)


def _adapt(shape: Ints, pooled: Ints, rank: int) -> Walk:
    starts: list[int] = []
    ends: list[int] = []
    counts: list[int] = []
    for i in range(rank):
        n, count = shape[i - rank], pooled[i - rank]
        for place in range(count):
            start, end = place * n // count, -(-(place + 1) * n // count)
            starts.append(start)
            ends.append(end)
            counts.append(end - start)
    return Walk(shape, pooled, rank, starts, ends, counts, (1,) * rank)


def _in_last(x: TensorBase, rank: int) -> bool:
    return len(x._shape) == rank + 2 and is_last(x)


def _largest(outs: Any, x: TensorBase, rank: int, w: Walk) -> None:
    first: TensorBase = outs[0]
    second: TensorBase = outs[1]
    dt = wide_dtype(x._dtype)
    if _in_last(x, rank):
        y, at = target_last(first, dt), target_last(second, second._dtype)
        _pool_max_last(*operand(last_as(x, dt)), *operand(y), *operand(at), x._shape[0], x._shape[1],
                       w.sizes, w.places, w.starts, w.ends, w.dilation)
    else:
        y, at = target(first, dt), target(second, second._dtype)
        x = dense_as(x, dt)
        _pool_max(
            x._storage, int(x._offset), x._dtype.code,
            y._storage, int(y._offset), y._dtype.code,
            at._storage, int(at._offset), at._dtype.code,
            w.planes, w.sizes, w.places, w.starts, w.ends, w.dilation)
    deliver(first, y)
    deliver(second, at)


def _mean(out: TensorBase, x: TensorBase, rank: int, w: Walk, divisor: int) -> None:
    dt = wide_dtype(x._dtype)
    if _in_last(x, rank):
        y = target_last(out, dt)
        _pool_mean_last(*operand(last_as(x, dt)), *operand(y), x._shape[0], x._shape[1], w.sizes, w.places, w.starts,
                        w.ends, w.counts, divisor)
    else:
        y = target(out, dt)
        x = dense_as(x, dt)
        _pool_mean(
            x._storage, int(x._offset), x._dtype.code,
            y._storage, int(y._offset), y._dtype.code,
            w.planes, w.sizes, w.places, w.starts, w.ends, w.counts, divisor)
    deliver(out, y)


def _mean_backward(out: TensorBase, grad: TensorBase, rank: int, w: Walk, divisor: int) -> None:
    dt = wide_dtype(out._dtype)
    if _in_last(out, rank):
        y = target_last(out, dt)
        _pool_mean_backward_last(*operand(last_as(grad, dt)), *operand(y), out._shape[0], out._shape[1], w.sizes,
                                 w.places, w.starts, w.ends, w.counts, divisor)
    else:
        y = target(out, dt)
        _pool_mean_backward(*operand(dense_as(grad, dt)), *operand(y), w.planes, w.sizes, w.places, w.starts, w.ends,
                            w.counts, divisor)
    deliver(out, y)


def _largest_backward(grad: TensorBase, x: TensorBase, indices: TensorBase, rank: int) -> Any:
    dt = wide_dtype(x._dtype)
    if not _in_last(x, rank) or numel(grad) == 0 or not dt.is_floating_point:
        return sent(grad, x, indices, rank)
    y = fresh_last(x._shape, dt)
    _pool_max_backward_last(*operand(last_as(grad, dt)), *operand(last_as(indices, int64)), *operand(y),
                            x._shape[0], x._shape[1], triple(x._shape[-rank:], 1), triple(grad._shape[-rank:], 1))
    return last_as(y, x._dtype)


@final
class Pool:
    """The kernels of one rank, and the windows of the last shapes: layers ask for the same again and again."""

    def __init__(self, rank: int) -> None:
        self.rank: Final = rank
        self.walks: Final[dict[Any, Walk]] = {}
        # What was asked last, which most often is asked again, and the answer behind it.
        self.last: tuple[Any, ...] = ()

    def keep(self, key: Any, walk: Walk) -> Walk:
        if len(self.walks) >= _MOST:
            self.walks.clear()
        self.walks[key] = walk
        return walk

    def sliding(self, name: str, shape: Ints, pooled: Ints, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                include_padding: bool) -> Walk:
        last = self.last
        if (
            len(last) == 8
            and shape is last[0]
            and pooled is last[1]
            and kernel_size is last[2]
            and stride is last[3]
            and padding is last[4]
            and dilation is last[5]
            and include_padding is last[6]
        ):
            kept: Walk = last[7]
            return kept
        key = (shape, pooled, kernel_size, stride, padding, dilation, include_padding)
        found = self.walks.get(key)
        if found is None:
            v = sliding(name, self.rank, kernel_size, stride, padding, dilation, False)
            found = self.keep(key, _slide(shape, pooled, self.rank, v.kernel, v.stride, v.padding, v.dilation,
                                          include_padding))
        self.last = (*key, found)
        return found

    def adapted(self, shape: Ints, pooled: Ints) -> Walk:
        key = (shape, pooled)
        found = self.walks.get(key)
        return self.keep(key, _adapt(shape, pooled, self.rank)) if found is None else found

    def largest(self, outs: Any, x: TensorBase, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                ceil_mode: Any) -> None:
        first: TensorBase = outs[0]
        if numel(first) > 0:
            walk = self.sliding("max_pool", x._shape, first._shape, kernel_size, stride, padding, dilation, False)
            _largest(outs, x, self.rank, walk)

    def mean(self, out: TensorBase, x: TensorBase, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any,
             count_include_pad: bool, divisor_override: Any) -> None:
        if numel(out) > 0:
            walk = self.sliding("avg_pool", x._shape, out._shape, kernel_size, stride, padding, _ONES,
                                count_include_pad)
            _mean(out, x, self.rank, walk, divisor_override or 0)

    def mean_backward(self, out: TensorBase, grad: TensorBase, x: TensorBase, kernel_size: Any, stride: Any,
                      padding: Any, ceil_mode: Any, count_include_pad: bool, divisor_override: Any) -> None:
        if numel(out) > 0:
            walk = self.sliding("avg_pool", x._shape, grad._shape, kernel_size, stride, padding, _ONES,
                                count_include_pad)
            _mean_backward(out, grad, self.rank, walk, divisor_override or 0)

    def adaptive_largest(self, outs: Any, x: TensorBase, output_size: Any) -> None:
        first: TensorBase = outs[0]
        if numel(first) > 0:  # there may be many places and no planes
            _largest(outs, x, self.rank, self.adapted(x._shape, first._shape))

    def adaptive_mean(self, out: TensorBase, x: TensorBase, output_size: Any) -> None:
        if numel(out) > 0:
            _mean(out, x, self.rank, self.adapted(x._shape, out._shape), 0)

    def adaptive_mean_backward(self, out: TensorBase, grad: TensorBase, x: TensorBase) -> None:
        if numel(out) > 0:
            _mean_backward(out, grad, self.rank, self.adapted(x._shape, grad._shape), 0)

    def largest_backward(self, grad: TensorBase, x: TensorBase, kernel_size: Any, stride: Any, padding: Any,
                         dilation: Any, ceil_mode: Any, indices: TensorBase) -> Any:
        return _largest_backward(grad, x, indices, self.rank)

    def adaptive_largest_backward(self, grad: TensorBase, x: TensorBase, indices: TensorBase) -> Any:
        return _largest_backward(grad, x, indices, self.rank)
