"""NPU lines of columns of windows (unfold and fold).

Invariant: what the vendor does not move or add is picked by the places of the windows, as in pooling.
"""
from __future__ import annotations

import math
from typing import Any

from ..._dispatch import registry
from ..._ops.pool import Sliding
from ..._ops.vision import window_of
from .lines import choose, line, npu, parts
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
