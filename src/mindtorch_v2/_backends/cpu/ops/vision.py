"""CPU lines of unfold and fold (im2col, col2im), of shuffles, which are one copy each, and of reading images at the
places of a grid."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import CPU
from ...._dispatch.op import FnKernel
from ...._dtype import bool as bool_
from ...._dtype import uint8
from ...._ops.vision import blocks, check_grid, window_of
from ...._tensor_base import numel
from ...recorded import Whole
from ..kernels.dense import deliver, dense_as, fresh, operand, target, triple, wide_dtype
from ..lines import cpu, into

Ints = tuple[int, ...]


def _window(size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> tuple[Ints, ...]:
    kernel, gaps, pads, steps = window_of(kernel_size, dilation, padding, stride)
    places = blocks(size, kernel, gaps, pads, steps)
    return (triple(size, 1), triple(places, 1), triple(kernel, 1), triple(steps, 1), triple(pads, 0), triple(gaps, 1))


def _im2col(out: Any, self: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    if numel(out) == 0:
        return
    # Bits are moved as bytes.
    dt = uint8 if self._dtype is bool_ else wide_dtype(self._dtype)
    y = target(out, dt)
    images = 1 if len(self._shape) == 3 else self._shape[0]
    _native.im2col(*operand(dense_as(self, dt)), *operand(y), images, self._shape[-3],
                   *_window(self._shape[-2:], kernel_size, dilation, padding, stride))
    deliver(out, y)


def _col2im(out: Any, self: Any, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints,
            stride: Ints) -> None:
    if numel(out) == 0:
        return
    dt = wide_dtype(self._dtype)
    y = target(out, dt)
    images = 1 if len(self._shape) == 2 else self._shape[0]
    _native.col2im(*operand(dense_as(self, dt)), *operand(y), images, out._shape[-3],
                   *_window(tuple(output_size), kernel_size, dilation, padding, stride))
    deliver(out, y)


def _interleave(inner: Any, outer: Any, r: int, into_inner: bool) -> None:
    """Copy between (.., c * r * r, h, w) and (.., c, h * r, w * r)."""
    n = len(inner._shape) - 3
    c, h, w = outer._shape[n], inner._shape[n + 1], inner._shape[n + 2]
    by_channel, by_row, by_column = inner._stride[n:]
    front = inner._stride[:n]
    one = (*front, by_channel * r * r, by_row, by_channel * r, by_column, by_channel)
    by_channel, by_row, by_column = outer._stride[n:]
    front = outer._stride[:n]
    other = (*front, by_channel, by_row * r, by_row, by_column * r, by_column)
    pair = ((inner, one), (outer, other)) if into_inner else ((outer, other), (inner, one))
    (to, steps), (source, strides) = pair
    _native.copy(
        to._storage, int(to._offset), steps, to._dtype.code,
        source._storage, int(source._offset), strides, source._dtype.code,
        (*inner._shape[:n], c, h, r, w, r))


def _pixel_shuffle(out: Any, self: Any, upscale_factor: int) -> None:
    if numel(out) > 0:
        _interleave(self, out, upscale_factor, False)


def _pixel_unshuffle(out: Any, self: Any, downscale_factor: int) -> None:
    if numel(out) > 0:
        _interleave(out, self, downscale_factor, True)


def _channel_shuffle(out: Any, self: Any, groups: int) -> None:
    if numel(out) == 0:
        return
    n, c, *places = self._shape
    each = c // groups
    (x, by_channel, *rest), (y, channels, *steps) = self._stride, out._stride
    _native.copy(
        out._storage, int(out._offset), (y, channels * groups, channels, *steps), out._dtype.code,
        self._storage, int(self._offset), (x, by_channel, by_channel * each, *rest), self._dtype.code,
        (n, each, groups, *places))


cpu("pixel_shuffle", into(_pixel_shuffle))
cpu("pixel_unshuffle", into(_pixel_unshuffle))
cpu("channel_shuffle", into(_channel_shuffle))
cpu("im2col", into(_im2col))
cpu("col2im", into(_col2im))


# -- sampling at places -----------------------------------------------------------------------------------------------
def _sampled(name: str, rank: int | None) -> None:
    def fits(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> bool:
        plain = input._dtype.name in ("float32", "float64") and input._shape and 0 not in (*input._shape, *grid._shape)
        return bool(plain) and numel(input) < 1 << 31 and max(input._shape) <= 1 << 23

    def run(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
        check_grid(input, grid, rank, interpolation_mode, padding_mode)
        dt, n = input._dtype, len(input._shape) - 2
        out = fresh((*input._shape[:2], *grid._shape[1:-1]), dt)
        images, channels = input._shape[0], input._shape[1]
        _native.grid_sample(*operand(dense_as(input, dt)), *operand(dense_as(grid, dt)), *operand(out),
                            images, channels, triple(input._shape[2:], 1), triple(out._shape[2:], 1), n,
                            interpolation_mode, padding_mode, align_corners)
        return out

    cpu(name, FnKernel(Whole(registry.get(name), int(CPU), fits, run, None)))


_sampled("grid_sampler", None)
_sampled("grid_sampler_2d", 2)
_sampled("grid_sampler_3d", 3)
