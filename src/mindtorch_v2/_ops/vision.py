"""Rearranging and sampling images: shuffles of pixels and channels, im2col and col2im, sampling at given places.

Invariant: what only moves elements has its inverse as derivative; sampling is written in terms of other operators and
is differentiated through them.
"""
from __future__ import annotations

import itertools
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import int64
from .._sizes import LONG_MAX
from .composites.formulas import in_format
from .kept import kept
from .rules.base import KeptRule, like, wrap_dim
from .rules.layout import in_format_of
from .table import composite, op

Ints = tuple[int, ...]
_WHERE = registry.get("where")


# -- shuffles ---------------------------------------------------------------------------------------------------------
def _shuffled(self: Any, upscale_factor: int) -> Spec:
    shape, r = self._shape, upscale_factor
    if len(shape) < 3:
        raise RuntimeError("pixel_shuffle expects input to have at least 3 dimensions, but got input with "
                           f"{len(shape)} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if r * r > LONG_MAX:
        raise ValueError(f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}")
    if shape[-3] % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                           f"upscale_factor, but input.size(-3)={shape[-3]} is not divisible by {r * r}")
    return in_format_of(self, (*shape[:-3], shape[-3] // (r * r), shape[-2] * r, shape[-1] * r))


def _shuffle(self: Any, upscale_factor: int) -> Any:
    r = upscale_factor
    *front, c, h, w = self._shape
    n = len(front)
    out = self.reshape((*front, c // (r * r), r, r, h, w))
    out = out.permute((*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return in_format(out.reshape((*front, c // (r * r), h * r, w * r)), self)


def _unshuffled(self: Any, downscale_factor: int) -> Spec:
    shape, r = self._shape, downscale_factor
    if len(shape) < 3:
        raise RuntimeError("pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
                           f"{len(shape)} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for d, side in ((-2, "height"), (-1, "width")):
        if shape[d] % r:
            raise RuntimeError(f"pixel_unshuffle expects {side} to be divisible by downscale_factor, but "
                               f"input.size({d})={shape[d]} is not divisible by {r}")
    return in_format_of(self, (*shape[:-3], shape[-3] * r * r, shape[-2] // r, shape[-1] // r))


def _unshuffle(self: Any, downscale_factor: int) -> Any:
    r = downscale_factor
    *front, c, h, w = self._shape
    n = len(front)
    out = self.reshape((*front, c, h // r, r, w // r, r))
    out = out.permute((*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return in_format(out.reshape((*front, c * r * r, h // r, w // r)), self)


PIXEL_SHUFFLE: Op = op(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", meta=KeptRule(_shuffled), kernel=_shuffle,
    method=False, grad=dict(self=lambda g, upscale_factor: PIXEL_UNSHUFFLE.call((g, upscale_factor))))
PIXEL_UNSHUFFLE: Op = op(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", meta=KeptRule(_unshuffled), kernel=_unshuffle,
    method=False, grad=dict(self=lambda g, downscale_factor: PIXEL_SHUFFLE.call((g, downscale_factor))))


def _channels_meta(self: Any, groups: int) -> Spec:
    if len(self._shape) < 3:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{list(self._shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if self._shape[1] % groups:
        raise RuntimeError("Number of channels must be divisible by groups. Got "
                           f"{self._shape[1]} channels and {groups} groups.")
    return in_format_of(self, self._shape)


def _channels(self: Any, groups: int) -> Any:
    n, c = self._shape[:2]
    seen = self.reshape((n, groups, c // groups, *self._shape[2:]))
    return in_format(seen.transpose(1, 2).reshape(self._shape), self)


CHANNEL_SHUFFLE: Op = op(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor", meta=KeptRule(_channels_meta), kernel=_channels,
    method=False, grad=dict(self=lambda g, self_shape, groups: CHANNEL_SHUFFLE.call((g, self_shape[1] // groups))))
composite("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", lambda *args: CHANNEL_SHUFFLE.call(args),
          method=False)


# -- unfold and fold (im2col, col2im) ---------------------------------------------------------------------------------
def _two(values: Ints, name: str) -> Ints:
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return tuple(values)


def blocks(size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride))


def _check_window(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    for values, name in ((kernel, "kernel size"), (dilation, "dilation"), (stride, "stride")):
        if any(v <= 0 for v in values):
            side = name.partition(" ")[0]
            raise RuntimeError(f"{name} should be greater than zero, but got {side}_height: {values[0]} {side}_width: "
                               f"{values[1]}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def window_of(kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    given = (_two(kernel_size, "kernel_size"), _two(dilation, "dilation"), _two(padding, "padding"),
             _two(stride, "stride"))
    _check_window(*given)
    return given


def _check_columns(name: str, self: Any) -> None:
    if self._dtype.is_integer and self._device.type == "cpu":
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for '{self._dtype.scalar_name}'")


def _im2col_meta(self: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Spec:
    kernel, gaps, pads, steps = window_of(kernel_size, dilation, padding, stride)
    shape = self._shape
    if len(shape) in (1, 2):  # PyTorch looks at the sizes first
        wrap_dim(len(shape), len(shape))
    if len(shape) not in (3, 4) or 0 in shape[len(shape) - 3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           f"dimensions for input, but got: {list(shape)}")
    _check_columns("im2col", self)
    places = blocks(shape[-2:], kernel, gaps, pads, steps)
    if any(n < 1 for n in places):
        raise RuntimeError(
            f"Given input with spatial size ({shape[-2]}, {shape[-1]}), kernel_size=({kernel[0]}, {kernel[1]}), "
            f"dilation=({gaps[0]}, {gaps[1]}), padding=({pads[0]}, {pads[1]}), calculated shape of the array of "
            f"sliding blocks as ({places[0]}, {places[1]}), but its components must be at least one.")
    return like(self, (*shape[:-3], shape[-3] * kernel[0] * kernel[1], places[0] * places[1]))


def _col2im_meta(self: Any, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Spec:
    if len(output_size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(output_size)}")
    kernel, gaps, pads, steps = window_of(kernel_size, dilation, padding, stride)
    shape = self._shape
    if len(shape) not in (2, 3) or 0 in shape[len(shape) - 2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           f"dimensions for input, but got: {list(shape)}")
    area = kernel[0] * kernel[1]
    if shape[-2] % area:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
                           f"got input.size(1)={shape[-2]} and kernel_size=({kernel[0]}, {kernel[1]}).")
    places = blocks(tuple(output_size), kernel, gaps, pads, steps)
    if shape[-1] != places[0] * places[1] or any(n < 1 for n in places):
        if shape[-1] != places[0] * places[1]:
            wrong = ("expected size of input's dimension 2 to match the calculated number of sliding blocks "
                     f"{places[0]} * {places[1]} = {places[0] * places[1]}, but got input.size(2)={shape[-1]}.")
        else:
            wrong = (f"calculated shape of the array of sliding blocks as ({places[0]}, {places[1]}), which is too "
                     "small (non-positive)")
        raise RuntimeError(
            f"Given output_size=({output_size[0]}, {output_size[1]}), kernel_size=({kernel[0]}, {kernel[1]}), "
            f"dilation=({gaps[0]}, {gaps[1]}), padding=({pads[0]}, {pads[1]}), stride=({steps[0]}, {steps[1]}), "
            f"{wrong}")
    _check_columns("col2im", self)
    return like(self, (*shape[:-2], shape[-2] // area, *output_size))


IM2COL: Op = op(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    meta=KeptRule(_im2col_meta), function=False, method=False, out=True,
    grad=dict(self=lambda g, self_shape, kernel_size, dilation, padding, stride: COL2IM.call(
        (g, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride))))
COL2IM: Op = op(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
    "-> Tensor", meta=KeptRule(_col2im_meta), function=False, method=False, out=True,
    grad=dict(self=lambda g, kernel_size, dilation, padding, stride: IM2COL.call(
        (g, kernel_size, dilation, padding, stride))))


# -- sampling at places -----------------------------------------------------------------------------------------------
_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


def _reflect(at: Any, low: float, high: float) -> Any:
    """Bounce between two edges, given as twice their place."""
    if low == high:
        return at * 0
    span = (high - low) / 2
    distance = (at - low / 2).abs()
    extra = distance.fmod(span)
    flips = (distance / span).floor()
    return _WHERE.call((flips.remainder(2) == 0, extra + low / 2, span - extra + low / 2))


def _place(at: Any, size: int, padding: int, align: bool) -> Any:
    if padding == _REFLECTION:
        at = _reflect(at, 0, 2 * (size - 1)) if align else _reflect(at, -1, 2 * size - 1)
    # What is no number counts as the first place.
    return at if padding == _ZEROS else at.clamp(0, size - 1).nan_to_num(0.0)


def _read(input: Any, places: list[Any], padding: int) -> Any:
    """input[..., places] for each channel; what lies outside is zero."""
    sizes = input._shape[2:]
    flat, fits = None, None
    for at, n in zip(places, sizes):
        within = (at >= 0).logical_and(at <= n - 1)
        fits = within if fits is None else fits.logical_and(within)
        whole = at.clamp(0, n - 1).to(int64).clamp(0, n - 1)  # as a whole number NaN is outside
        flat = whole if flat is None else flat * n + whole
    assert flat is not None and fits is not None
    n, c = input._shape[:2]
    where = flat.reshape((n, 1, -1)).expand((n, c, flat[0].numel()))
    values = input.reshape((n, c, -1)).gather(2, where).reshape((n, c, *flat._shape[1:]))
    return _WHERE.call((fits.unsqueeze(1), values, 0.0)) if padding == _ZEROS else values


def _cubic_weights(t: Any) -> list[Any]:
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def check_grid(input: Any, grid: Any, rank: int | None, mode: int, padding: int) -> None:
    _check_grid(input._shape, grid._shape, input._dtype, grid._dtype, input._device.type, rank, mode, padding)


@kept
def _check_grid(sizes: Ints, places: Ints, dt: Any, grid_dt: Any, device: str, rank: int | None, mode: int,
                padding: int) -> None:
    n = len(sizes)
    if n == 0 or not places:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if sizes[0] != places[0]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                           f"{list(sizes)} and grid with sizes {list(places)}")
    if len(places) > 1 and places[-1] != n - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {n - 2} in last dimension, but got grid with "
                           f"sizes {list(places)}")
    for i in range(2, n):
        if sizes[i] == 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
                               f"sizes {list(sizes)} with dimension {i} being empty")
    wanted = rank + 2 if rank is not None else 4 if n == 4 else 5
    if n != len(places) or n != wanted:
        raise RuntimeError(f"grid_sampler(): expected {wanted}D input and grid with same number of dimensions, but got "
                           f"input with sizes {list(sizes)} and grid with sizes {list(places)}")
    if not dt.is_floating_point and device == "cpu":
        kernel = "grid_sampler_2d_cpu_kernel_impl" if n == 4 else "grid_sampler3d_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")
    if dt is not grid_dt:
        raise RuntimeError(f"expected scalar type {dt.scalar_name} but found {grid_dt.scalar_name}")
    if n == 5 and mode == _BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if mode not in (0, 1, 2) or padding not in (0, 1, 2):
        raise RuntimeError(f"grid_sampler(): unknown mode {mode} or padding {padding}")


def _sample(input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    sizes = input._shape[2:]
    rank = len(sizes)
    places = []
    for d in range(rank):
        n = sizes[d]
        at = grid.select(-1, rank - 1 - d)
        at = (at + 1) / 2 * (n - 1) if align else ((at + 1) * n - 1) / 2
        places.append(at if mode == _BICUBIC else _place(at, n, padding, align))
    if mode == _NEAREST:
        out = _read(input, [p.round() for p in places], padding)
        # The places take part, with gradients of zero.
        return out + (places[0] * 0).unsqueeze(1) if grid.requires_grad else out
    floors = [p.detach().floor() for p in places]
    total: Any = None
    if mode == _BILINEAR:
        weights = [(1 - (p - f), p - f) for p, f in zip(places, floors)]
        for corner in itertools.product((0, 1), repeat=rank):
            values = _read(input, [f + c for f, c in zip(floors, corner)], padding)
            factor = weights[0][corner[0]]
            for d in range(1, rank):
                factor = factor * weights[d][corner[d]]
            if rank == 3 and padding == _ZEROS:
                # In a volume PyTorch leaves corners outside out, infinitely far ones too; in an image it adds them.
                factor = factor.nan_to_num(0.0, 0.0, 0.0)
            part = values * factor.unsqueeze(1)
            total = part if total is None else total + part
        return total
    rows, columns = (_cubic_weights(p - f) for p, f in zip(places, floors))
    for i in range(4):
        line: Any = None
        for j in range(4):
            at = [_place(f + k - 1, n, padding, align) for f, k, n in zip(floors, (i, j), sizes)]
            part = _read(input, at, padding) * columns[j].unsqueeze(1)
            line = part if line is None else line + part
        part = line * rows[i].unsqueeze(1)
        total = part if total is None else total + part
    return total


def _sampler(rank: int | None) -> Any:
    def run(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
        check_grid(input, grid, rank, interpolation_mode, padding_mode)
        if 0 in grid._shape or 0 in input._shape:
            shape = (*input._shape[:2], *grid._shape[1:-1])
            return input.new_zeros(shape) + input.sum() * 0 + grid.sum() * 0
        return _sample(input, grid, interpolation_mode, padding_mode, align_corners).contiguous()

    return run


_GRID = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"
composite(f"grid_sampler{_GRID}", _sampler(None), method=False)
composite(f"grid_sampler_2d{_GRID}", _sampler(2), method=False)
composite(f"grid_sampler_3d{_GRID}", _sampler(3), method=False)


def _steps(theta: Any, n: int, align: bool) -> Any:
    from .. import linspace

    if n <= 1:
        return theta.new_zeros((n,))
    line = linspace(-1, 1, n, dtype=theta._dtype, device=theta._device)
    return line if align else line * ((n - 1) / n)


def _affine(theta: Any, size: Ints, align_corners: bool) -> Any:
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    rank = len(size) - 2
    sizes = tuple(size[2:])
    axes = []
    for k in range(rank):
        d = rank - 1 - k
        line = _steps(theta, sizes[d], align_corners).reshape((-1,) + (1,) * k)
        axes.append(line.expand(sizes))
    axes.append(theta.new_ones(sizes))
    base = registry.get("stack").call((tuple(axes), -1))
    flat = base.reshape((1, -1, rank + 1)).expand((size[0], base[..., 0].numel(), rank + 1))
    return flat.bmm(theta.transpose(1, 2)).reshape((size[0], *sizes, rank))


composite("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", _affine, method=False)
