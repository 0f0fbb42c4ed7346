"""CPU lines of unfold and fold (im2col, col2im), of shuffles, which are one copy each, and of reading images at the
places of a grid."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import AUTOGRAD, CPU
from ...._dispatch.op import FnKernel
from ...._dtype import bool as bool_
from ...._dtype import int64, uint8
from ...._ops.vision import blocks, check_grid, window_of
from ...._tensor_base import numel
from ...recorded import Whole, recorder
from ..kernels.dense import deliver, dense_as, fresh, operand, target, triple, wide_dtype
from ..kernels.moves import channel_shuffle, pixel_shuffle, pixel_unshuffle
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
    # Bits that meet are or-ed: summed as numbers and asked whether they are not zero.
    dt = int64 if self._dtype is bool_ else wide_dtype(self._dtype)
    y = target(out, dt)
    images = 1 if len(self._shape) == 2 else self._shape[0]
    _native.col2im(*operand(dense_as(self, dt)), *operand(y), images, out._shape[-3],
                   *_window(tuple(output_size), kernel_size, dilation, padding, stride))
    deliver(out, y)


cpu("pixel_shuffle", into(pixel_shuffle))
cpu("pixel_unshuffle", into(pixel_unshuffle))
cpu("channel_shuffle", into(channel_shuffle))
cpu("im2col", into(_im2col))
cpu("col2im", into(_col2im))


# -- sampling at places -----------------------------------------------------------------------------------------------
def _grid_fits(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> bool:
    plain = input._dtype.name in ("float32", "float64") and input._shape and numel(input) > 0 and numel(grid) > 0
    return bool(plain) and numel(input) < 1 << 31 and max(input._shape) <= 1 << 23


def _grid_numbers(input: Any, grid: Any, mode: int, padding: int, align: bool) -> tuple[Any, ...]:
    images, channels, *sizes = input._shape
    return images, channels, triple(tuple(sizes), 1), triple(grid._shape[1:-1], 1), len(sizes), mode, padding, align


def _grid_backward(grad: Any, needs: Any, args: Any, kept: Any) -> tuple[Any, ...]:
    input, grid = args[0], args[1]
    dt = input._dtype
    dx = fresh(input._shape, dt) if needs[0] else None
    dgrid = fresh(grid._shape, dt) if needs[1] else None
    missing = (None, 0, dt.code)
    _native.grid_sample_backward(
        *operand(dense_as(grad, dt)), *operand(dense_as(input, dt)), *operand(dense_as(grid, dt)),
        *(missing if dx is None else operand(dx)), *(missing if dgrid is None else operand(dgrid)),
        *_grid_numbers(*args))
    return dx, dgrid, None, None, None


def _sampled(name: str, rank: int | None) -> None:
    def run(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
        check_grid(input, grid, rank, interpolation_mode, padding_mode)
        dt = input._dtype
        out = fresh((*input._shape[:2], *grid._shape[1:-1]), dt)
        _native.grid_sample(*operand(dense_as(input, dt)), *operand(dense_as(grid, dt)), *operand(out),
                            *_grid_numbers(input, grid, interpolation_mode, padding_mode, align_corners))
        return out, ()

    whole = Whole(registry.get(name), int(CPU), _grid_fits, run, _grid_backward)
    cpu(name, FnKernel(whole))
    registry.get(name).kernels[int(CPU | AUTOGRAD)] = FnKernel(recorder(whole))


_sampled("grid_sampler", None)
_sampled("grid_sampler_2d", 2)
_sampled("grid_sampler_3d", 3)
