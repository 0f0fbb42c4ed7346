"""NPU lines of unfold and fold (im2col, col2im), of shuffles, and of sampling at given places.

Invariant: what the vendor does not move or add is picked by the places of the windows, as in pooling.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._ops.pool import Sliding
from ...._ops.vision import window_of
from ...._tensor_base import numel
from ..lines import accepts_dtype, call, choose, fused, line, npu, parts
from .pool import Ints, Windows, sliding_windows


def _windows(image: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Windows:
    kernel, gaps, pads, steps = window_of(kernel_size, dilation, padding, stride)
    return sliding_windows(image, 2, Sliding(kernel, steps, pads, gaps, False))


def _im2col(self: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    w = _windows(self, kernel_size, dilation, padding, stride)
    return w.picked(self, 0).transpose(-1, -2).flatten(-3, -2).contiguous()


def _col2im(self: Any, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    taps = math.prod(window_of(kernel_size, dilation, padding, stride)[0])
    columns = self.unflatten(-2, (self._shape[-2] // taps, taps)).transpose(-1, -2)
    image = self.new_zeros((*columns._shape[:-2], *output_size))
    w = _windows(image, kernel_size, dilation, padding, stride)
    added = image.flatten(-2).index_add(-1, w.places.reshape((-1,)), (columns * w.inside).flatten(-2))
    return added.reshape(image._shape)


# Elements only move: bfloat16, which the vendor's input does not have, goes as float32.
npu("channel_shuffle", choose(lambda self, groups: len(self._shape) > 7, {
    False: line("aclnnChannelShuffle(self, groups, out)", cast=("self",)),
    True: registry.get("channel_shuffle").row.fallback}))
npu("im2col", "aclnnIm2col(self, each(kernel_size, 2), each(dilation, 2), each(padding, 2), each(stride, 2), out)",
    cast=("self",), absent=parts(_im2col))
npu("col2im", "aclnnIm2colBackward(self, output_size, each(kernel_size, 2), each(dilation, 2), each(padding, 2), "
    "each(stride, 2), out)", cast=("self",), absent=parts(_col2im))


# -- sampling at places ---------------------------------------------------------------------------------------------
def _samples(rank: int | None) -> Any:
    def fits(input: Any, grid: Any, mode: int, padding: int, align: bool) -> bool:
        n = len(input._shape) - 2 if rank is None else rank
        return (n in (2, 3) and len(input._shape) == len(grid._shape) == n + 2 and input._dtype is grid._dtype
                and accepts_dtype("aclnnGridSampler2D", input) and input._device == grid._device
                and input._shape[0] == grid._shape[0] and grid._shape[-1] == n and padding in (0, 1, 2)
                and mode in ((0, 1, 2) if n == 2 else (0, 1)) and numel(input) > 0 and numel(grid) > 0)

    return fits


def _sampled(input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    out = input.new_empty((*input._shape[:2], *grid._shape[1:-1]))
    call(f"aclnnGridSampler{len(out._shape) - 2}D", "grid_sampler", input, grid, mode, padding, align, out)
    return out, ()


def _sampled_back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    input, grid, mode, padding, align = args
    of_input, of_grid = input.new_empty(input._shape), grid.new_empty(grid._shape)
    tensors = [grad, input, of_input]
    if len(input._shape) == 5:
        # The vendor wants one format for all, and that of a grid has its numbers last.
        tensors = [t.movedim(1, -1) for t in tensors]
    call(f"aclnnGridSampler{len(input._shape) - 2}DBackward", "grid_sampler_backward", *tensors[:2], grid, mode,
         padding, align, needs[:2], tensors[2], of_grid)
    return of_input if needs[0] else None, of_grid if needs[1] else None, None, None, None


_PLANE = ("aclnnGridSampler2D", "aclnnGridSampler2DBackward")
_SPACE = ("aclnnGridSampler3D", "aclnnGridSampler3DBackward")
npu("grid_sampler", fused((*_PLANE, *_SPACE), _samples(None), _sampled, _sampled_back))
npu("grid_sampler_2d", fused(_PLANE, _samples(2), _sampled, _sampled_back))
npu("grid_sampler_3d", fused(_SPACE, _samples(3), _sampled, _sampled_back))


def _affine_fits(theta: Any, size: Any, align_corners: bool) -> bool:
    n = len(size) - 2
    return (n in (2, 3) and tuple(theta._shape) == (size[0], n, n + 1) and all(s > 0 for s in size)
            and accepts_dtype("aclnnAffineGrid", theta))


def _affine(theta: Any, size: Any, align_corners: bool) -> Any:
    out = theta.new_empty((size[0], *size[2:], len(size) - 2))
    call("aclnnAffineGrid", "affine_grid_generator", theta, tuple(size), align_corners, out)
    return out


npu("affine_grid_generator", fused(("aclnnAffineGrid",), _affine_fits, _affine))
