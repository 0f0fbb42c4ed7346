"""Quantization that is simulated: values are rounded to the numbers that a few bits could hold, and stay floats.

Invariant: the gradient passes where a value was not clamped, as PyTorch estimates it; nothing here makes a quantized
tensor.
"""

from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import bfloat16, float32, int32
from .._dtype import bool as bool_
from .rules.base import like, wrap_dim
from .table import composite, op

_WHERE = registry.get("where")


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def _both(self: Any) -> list[Spec]:
    return [like(self), like(self, None, bool_)]


def _rounded(self: Any, scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    """The nearest numbers that can be held, and where a value was between the first and the last of them."""
    wide = self.to(float32) if self._dtype.itemsize < 4 else self
    if isinstance(scale, float):
        scale = self.new_tensor(scale, dtype=float32)
    number = (wide * (1 / scale)).round() + zero
    held = number.clamp(low, high)
    return ((held - zero).to(float32) * scale).to(self._dtype), (number >= low).logical_and(number <= high)


def _passed(g: Any, mask: Any) -> Any:
    return g * mask


# -- one scale ----------------------------------------------------------------------------------------------------
def _tensor_meta(self: Any, scale: Any, zero_point: Any, *rest: Any) -> list[Spec]:
    _check_range(*rest[-2:])
    if isinstance(zero_point, int) and not rest[0] <= zero_point <= rest[1]:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _both(self)


_RANGE = "int quant_min, int quant_max"
_BOTH = "-> (Tensor output, Tensor mask)"
MASKED: Op = op(
    f"fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, {_RANGE}) {_BOTH}",
    meta=_tensor_meta,
    kernel=_rounded,
    function=False,
    method=False,
    nondiff=("mask",),
    grad=dict(self=_passed),
)


def _when_enabled(self: Any, scale: Any, zero_point: Any, fake_quant_enabled: Any, low: int, high: int) -> Any:
    if not bool(fake_quant_enabled):
        return self.clone(), self.new_ones(self._shape, dtype=bool_)
    return _rounded(self, scale.reshape(()).to(float32), zero_point.reshape(()).to(float32), low, high)


SWITCHED: Op = op(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor "
    "zero_point, "
    f"Tensor fake_quant_enabled, {_RANGE}) {_BOTH}",
    meta=_tensor_meta,
    kernel=_when_enabled,
    method=False,
    nondiff=("mask",),
    grad=dict(self=_passed),
)
composite(
    f"fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, {_RANGE}) -> Tensor",
    lambda *args: MASKED.call(args)[0],
    method=False,
)
composite(
    f"fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, {_RANGE}) -> Tensor",
    lambda self, scale, zero_point, low, high: SWITCHED.call(
        (self, scale, zero_point, scale.new_ones((1,)), low, high)
    )[0],
    method=False,
)


# -- a scale for each channel -------------------------------------------------------------------------------------
def _channel_meta(self: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> list[Spec]:
    if scale._dtype not in (float32, bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale._dtype.scalar_name}")
    if zero_point._dtype is not int32 and not zero_point._dtype.is_floating_point:
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point._dtype.scalar_name}")
    for name, t in (("scale", scale), ("zero point", zero_point)):
        if t.dim() != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
    if scale._shape != zero_point._shape:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if not 0 <= axis <= len(self._shape):
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if axis == len(self._shape):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(axis, 1)}, {max(axis, 1) - 1}], but got {axis})"
        )
    if scale._shape[0] != self._shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check_range(low, high)
    return _both(self)


def _along(values: Any, self: Any, axis: int) -> Any:
    axis = wrap_dim(axis, len(self._shape))
    return values.to(float32).reshape(tuple(-1 if d == axis else 1 for d in range(len(self._shape))))


def _by_channel(self: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> Any:
    whole = zero_point._dtype is int32 and zero_point.numel() > 0
    if whole and not low <= int(zero_point.min()) <= int(zero_point.max()) <= high:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _rounded(self, _along(scale, self, axis), _along(zero_point, self, axis), low, high)


CHANNELS: Op = op(
    f"fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, {_RANGE}) "
    f"{_BOTH}",
    meta=_channel_meta,
    function=False,
    method=False,
    nondiff=("mask",),
    grad=dict(self=_passed),
    kernel=_by_channel,
)
composite(
    f"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, {_RANGE}) -> Tensor",
    lambda *args: CHANNELS.call(args)[0],
    method=False,
)


# -- scales that are learned --------------------------------------------------------------------------------------
def _learned(self: Any, scale: Any, zero: Any, low: int, high: int, factor: float) -> Any:
    """The gradients of scale and zero point, which PyTorch has formulas for, as a composition."""
    fixed_zero = (zero.detach() + 0.5).clamp(low, high).floor()
    out, mask = _rounded(self.detach(), scale.detach(), fixed_zero, low, high)
    number = (self.detach() * (1 / scale.detach())).round() + fixed_zero
    edge = _WHERE.call((number < low, low - fixed_zero, high - fixed_zero))
    by_scale = _WHERE.call((mask, (out - self.detach()) / scale.detach(), edge)) * factor
    by_zero = _WHERE.call((mask, mask.new_zeros((), dtype=self._dtype), -scale.detach().expand(self._shape))) * factor
    # Zero in value, and linear in what is learned: only their derivatives remain.
    return out + (self - self.detach()) * mask + (scale - scale.detach()) * by_scale + (zero - zero.detach()) * by_zero


def _learned_tensor(self: Any, scale: Any, zero_point: Any, low: int, high: int, grad_factor: float) -> Any:
    return _learned(self, scale.reshape(()), zero_point.reshape(()), low, high, grad_factor)


def _learned_channels(
    self: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int, grad_factor: float
) -> Any:
    _channel_meta(self, scale, zero_point, axis, low, high)
    return _learned(self, _along(scale, self, axis), _along(zero_point, self, axis), low, high, grad_factor)


composite(
    f"_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, {_RANGE}, float "
    "grad_factor=1.) -> Tensor",
    _learned_tensor,
    method=False,
)
composite(
    "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
    f"{_RANGE}, float grad_factor=1.) -> Tensor",
    _learned_channels,
    method=False,
)


# -- scales from what was seen ------------------------------------------------------------------------------------
def chosen(least: float, most: float, low: int, high: int, symmetric: bool) -> tuple[float, int]:
    """Scale and zero point with which numbers from low to high hold values from least to most, zero among them."""
    if not least <= most:
        raise RuntimeError("In ChooseQuantizationParams, min should be less than or equal to max")
    both = least < 0 < most and symmetric
    if both:
        half = (high - low) // 2
        step = max(abs(least / -(half + 1)), abs(most / half))
        least, most = step * -(half + 1), step * half
    least, most = min(least, 0.0), max(most, 0.0)
    scale = (most - least) / (high - low) if high != low else math.inf
    if scale == 0 or math.isinf(1 / scale):
        scale = 0.1
    from_least, from_most = low - least / scale, high - most / scale
    nearer = abs(low) - abs(least / scale) < abs(high) - abs(most / scale)
    zero = (low + high) / 2 if both else from_least if nearer else from_most
    # An infinite range has no zero point: PyTorch answers what a CPU makes of NaN as an int32.
    return scale, -(2**31) if math.isnan(zero) else round(min(max(zero, low), high))


def _choose(self: Any, reduce_range: bool) -> tuple[float, int]:
    high = 127 if reduce_range else 255
    return chosen(float(self.min()), float(self.max()), 0, high, False)


composite("_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)", _choose, method=False)


def _observe(self: Any, running_min: Any, running_max: Any, factor: float, dims: tuple[int, ...]) -> None:
    for running, seen in ((running_min, self.amin(dims)), (running_max, self.amax(dims))):
        if running.numel() != seen.numel():
            running.resize_(seen._shape).fill_(math.inf if running is running_min else -math.inf)
        first = running.isinf()
        running.copy_(
            _WHERE.call(
                (first, seen.reshape(running._shape), running + factor * (seen.reshape(running._shape) - running))
            )
        )


def _moving(
    self: Any,
    observer_on: Any,
    fake_quant_on: Any,
    running_min: Any,
    running_max: Any,
    scale: Any,
    zero_point: Any,
    averaging_const: float,
    low: int,
    high: int,
    ch_axis: int,
    per_row_fake_quant: bool,
    symmetric_quant: bool,
) -> Any:
    if ch_axis >= self.dim():
        raise RuntimeError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
    values = self.detach()
    dims = tuple(d for d in range(self.dim()) if d != ch_axis or not per_row_fake_quant)
    if bool(observer_on):
        _observe(values, running_min, running_max, averaging_const, dims)
    if not bool(fake_quant_on):
        return self.clone(), self.new_ones(self._shape, dtype=bool_)
    if bool(observer_on):
        pairs = [
            chosen(least, most, low, high, symmetric_quant)
            for least, most in zip(running_min.reshape((-1,)).tolist(), running_max.reshape((-1,)).tolist())
        ]
        for kept, found in ((scale, [s for s, _ in pairs]), (zero_point, [z for _, z in pairs])):
            if kept.numel() != len(found):
                kept.resize_((len(found),))
            kept.copy_(kept.new_tensor(found).reshape(kept._shape))
    if per_row_fake_quant:
        return CHANNELS.call((self, scale, zero_point.to(int32), ch_axis, low, high))
    return SWITCHED.call((self, scale, zero_point, fake_quant_on, low, high))


_OBSERVED = (
    "Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, "
    "Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int "
    "ch_axis, "
    "bool per_row_fake_quant=False, bool symmetric_quant=False"
)
composite(f"_fused_moving_avg_obs_fq_helper({_OBSERVED}) {_BOTH}", _moving, method=False)
composite(f"fused_moving_avg_obs_fake_quant({_OBSERVED}) -> Tensor", lambda *args: _moving(*args)[0], method=False)


def _dequantized(self: Any) -> Any:
    return self.to(float32)


composite("dequantize.self(Tensor self) -> Tensor", _dequantized)
