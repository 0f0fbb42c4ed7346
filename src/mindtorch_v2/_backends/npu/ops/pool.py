"""NPU lines of pooling.

Invariant: places are counted in int64 for the user, and in int32, which holds every place of a plane, for a vendor
function that takes no more.
What the vendor does not pool is composed: windows are picked by their places, which are known from shapes alone.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dispatch.op import Kernel
from ...._dtype import int32, int64
from ...._finfo import iinfo
from ...._ops.pool import Sliding, sliding
from ...._strides import contiguous_strides
from ...._tensor_base import numel
from ...common.runtime import empty
from .. import creation, quirks, table
from ..lines import call, choose, helper, into, line, npu, parts, with_fallback

Ints = tuple[int, ...]
_index = registry.get("index")


# -- windows by their places ----------------------------------------------------------------------------------------
class Windows:
    """For each result the places of its window in the flat plane, which of them lie in it, and how many are counted."""

    def __init__(self, x: Any, rank: int, results: Ints, starts: list[Any], widths: list[Any], taps: Ints, steps: Ints,
                 counts: list[Any]) -> None:
        from .... import arange

        dev, sizes = x._device, x._shape[-rank:]
        self.rank, self.results, self.lead = rank, results, tuple(x._shape[:len(x._shape) - rank])
        plane = contiguous_strides(tuple(sizes))
        places: Any = None
        inside: Any = None
        count: Any = None
        for d in range(rank):
            tap = arange(taps[d], device=dev)
            at = starts[d].unsqueeze(1) + tap * steps[d]
            here = (at >= 0).logical_and(at < sizes[d]).logical_and(tap < widths[d].unsqueeze(1))
            at = at.clamp(0, sizes[d] - 1) * plane[d]
            places = at if places is None else _outer(places, at, lambda a, b: a + b)
            inside = here if inside is None else _outer(inside, here, lambda a, b: a.logical_and(b))
            count = counts[d] if count is None else (count.unsqueeze(1) * counts[d]).reshape((-1,))
        self.places, self.inside, self.count = places, inside, count

    def picked(self, x: Any, outside: Any) -> Any:
        """Every window's elements, last."""
        flat = x.reshape((*self.lead, math.prod(x._shape[-self.rank:])))
        got = _index.call((flat, (*(None for _ in self.lead), self.places)))
        return got.masked_fill(self.inside.logical_not(), outside)

    def shaped(self, t: Any) -> Any:
        return t.reshape((*self.lead, *self.results))


def _outer(a: Any, b: Any, join: Any) -> Any:
    """(m, p) and (n, q) as (m * n, p * q)."""
    both = join(a.unsqueeze(1).unsqueeze(3), b.unsqueeze(0).unsqueeze(2))
    return both.reshape((a._shape[0] * b._shape[0], a._shape[1] * b._shape[1]))


def sliding_windows(x: Any, rank: int, v: Sliding, include_padding: bool = False) -> Windows:
    from .... import arange

    sizes = x._shape[-rank:]
    results = v.places(sizes)
    starts, widths, counts = [], [], []
    for n, m, k, s, p, d in zip(sizes, results, v.kernel, v.stride, v.padding, v.dilation):
        start = arange(m, device=x._device) * s - p
        end = (start + (k - 1) * d + 1).clamp(max=n + p)
        starts.append(start)
        widths.append(start * 0 + k)
        counts.append(end - start if include_padding else end.clamp(max=n) - start.clamp(min=0))
    return Windows(x, rank, results, starts, widths, v.kernel, v.dilation, counts)


def _adapted_windows(x: Any, rank: int, results: Ints) -> Windows:
    from .... import arange

    starts, widths, taps = [], [], []
    for n, m in zip(x._shape[-rank:], results):
        i = arange(m, device=x._device)
        start = (i * n).floor_divide(m)
        starts.append(start)
        widths.append(((i + 1) * n + (m - 1)).floor_divide(m) - start)
        taps.append(max(-(-(i + 1) * n // m) - i * n // m for i in range(m)))
    return Windows(x, rank, results, starts, widths, tuple(taps), (1,) * rank, widths)


def _lowest(dt: Any) -> Any:
    return -math.inf if dt.is_floating_point else iinfo(dt).min


def _largest(x: Any, w: Windows) -> tuple[Any, Any]:
    value, tap = w.picked(x, _lowest(x._dtype)).max(-1, True)
    places = w.places.expand((*value._shape[:-1], w.places._shape[1])).gather(-1, tap)
    return w.shaped(value), w.shaped(places)


def _mean(x: Any, w: Windows, divisor: int | None) -> Any:
    total = w.picked(x, 0).sum(-1)
    by = w.count if divisor is None else divisor
    return w.shaped(total / by if x._dtype.is_floating_point else total.div(by, rounding_mode="trunc"))


def _mean_backward(grad: Any, x: Any, w: Windows, divisor: int | None) -> Any:
    share = grad.reshape((*w.lead, math.prod(w.results))) / (w.count if divisor is None else divisor)
    spread = (share.unsqueeze(-1) * w.inside).flatten(-2)
    flat = x.new_zeros((*w.lead, math.prod(x._shape[-w.rank:])))
    return flat.index_add(-1, w.places.reshape((-1,)), spread).reshape(x._shape)


# -- lines ----------------------------------------------------------------------------------------------------------
@helper
def each(values: Any, rank: int) -> Ints:
    """One number for each dimension."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


@helper
def steps(stride: Any, kernel_size: Any, rank: int) -> Ints:
    chosen: Ints = stride or kernel_size
    return tuple(chosen) * rank if len(chosen) == 1 else tuple(chosen)


@helper
def divisor(divisor_override: int | None) -> int:
    """0 lets the vendor count."""
    return divisor_override or 0


@helper
def narrowed(indices: Any) -> Any:
    """Places as the vendor's gradients take them on every chip: in 32 bits."""
    return indices.to(int32)


def _negative(*args: Any) -> bool:
    """Whether the last argument, the divisor, is."""
    return args[-1] is not None and args[-1] < 0


def _located(function: str, op: str, windows: Any, given: Any) -> Kernel:
    """Largest elements with their places."""
    sig = table.signature(function)
    takes, counts = sig.params[0].mask, sig.params[-1].mask
    dt = int32 if counts >> int(int32.code) & 1 else int64

    def kernel(outs: Any, self: Any, *args: Any) -> None:
        value, places = outs
        if numel(value) == 0:
            return
        if takes >> int(self._dtype.code) & 1 and not quirks.lacks(function):
            found = empty(places._shape, contiguous_strides(places._shape), dt, places._device)
            call(function, op, self, *given(*args), value, found)
            creation.copy(places, found)
            return
        for out, made in zip(outs, _largest(self, windows(self, *args))):
            creation.copy(out, made)

    return into(kernel)


def _serve(rank: int, largest: str) -> None:
    def of_max(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Windows:
        v = sliding("max_pool", rank, kernel_size, stride, padding, dilation, ceil_mode)
        return sliding_windows(self, rank, v)

    def of_mean(self: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
                count_include_pad: bool) -> Windows:
        v = sliding("avg_pool", rank, kernel_size, stride, padding, (1,), ceil_mode)
        return sliding_windows(self, rank, v, count_include_pad)

    numbers = (f"each(kernel_size, {rank}), steps(stride, kernel_size, {rank}), each(padding, {rank}), ceil_mode, "
               "count_include_pad, divisor(divisor_override), " + ("cube_of_convolution(), " if rank == 2 else ""))
    npu(f"max_pool{rank}d_with_indices", _located(
        largest, f"max_pool{rank}d_with_indices", of_max,
        lambda kernel_size, stride, padding, dilation, ceil_mode: (
            each(kernel_size, rank), steps(stride, kernel_size, rank), each(padding, rank), each(dilation, rank),
            ceil_mode)))
    sizes = (f"each(kernel_size, {rank}), steps(stride, kernel_size, {rank}), each(padding, {rank}), "
             f"each(dilation, {rank}), ceil_mode")
    with_fallback(f"max_pool{rank}d_with_indices_backward",
           f"{largest}Backward(grad_output, self, narrowed(indices), {sizes}, out)", cast=("grad_output", "self"))
    mean = parts(lambda self, *args: _mean(self, of_mean(self, *args[:5]), args[5]))
    mean_backward = parts(
        lambda grad_output, self, *args: _mean_backward(grad_output, self, of_mean(self, *args[:5]), args[5]))
    # The vendor's divisors are positive.
    npu(f"avg_pool{rank}d", choose(_negative, {
        False: line(f"aclnnAvgPool{rank}d(self, {numbers}out)", cast=("self",), absent=mean), True: mean}))
    npu(f"avg_pool{rank}d_backward", choose(_negative, {
        False: line(f"aclnnAvgPool{rank}dBackward(grad_output, self, {numbers}out)", cast=("grad_output", "self"),
                    absent=mean_backward), True: mean_backward}))
    npu(f"adaptive_max_pool{rank}d", _located(
        f"aclnnAdaptiveMaxPool{rank}d", f"adaptive_max_pool{rank}d",
        lambda self, output_size: _adapted_windows(self, rank, each(output_size, rank)),
        lambda output_size: (each(output_size, rank),)))
    with_fallback(f"adaptive_max_pool{rank}d_backward",
           f"aclnnAdaptiveMaxPool{rank}dBackward(grad_output, self, narrowed(indices), out)",
           cast=("grad_output", "self"))
    more = ", stride, padding" if rank == 3 else ""
    with_fallback(f"max_unpool{rank}d", f"aclnnMaxUnpool{rank}d(self, indices, output_size{more}, out)", cast=("self",))
    npu(f"_adaptive_avg_pool{rank}d", f"aclnnAdaptiveAvgPool{rank}d(self, each(output_size, {rank}), out)",
        cast=("self",), absent=parts(
            lambda self, output_size: _mean(self, _adapted_windows(self, rank, each(output_size, rank)), None)))
    npu(f"_adaptive_avg_pool{rank}d_backward", f"aclnnAdaptiveAvgPool{rank}dBackward(grad_output, self, out)",
        cast=("grad_output", "self"), empty=0, absent=parts(
            lambda grad_output, self: _mean_backward(
                grad_output, self, _adapted_windows(self, rank, tuple(grad_output._shape[-rank:])), None)))


_serve(2, "aclnnMaxPool2dWithIndices")
_serve(3, "aclnnMaxPool3dWithArgmax")
