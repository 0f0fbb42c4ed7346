"""Activation functions that are loaded when first used: gated, shrinking and leaky ones.

Invariant: as in `activation.py`: a backward operator is a row with a derivative of its own, and half types are computed
in float32.
"""
from __future__ import annotations

import math
import sys
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Rule, Spec
from .._dtype import float64
from .._strides import contiguous_strides
from .._tensor_base import alias, is_contiguous
from .activation import hidden
from .composites.formulas import narrow, pair, wide, zeros_like
from .pointwise import only
from .rules.base import KeptRule, PyRule, like, spec, wrap_dim
from .rules.dtype_checks import FLOATS, LARGEST
from .rules.layout import preserved_strides
from .table import PointwiseRule, composite, grad_when_written, op

_where = registry.get("where")
_cat = registry.get("cat")


# -- shrinking --------------------------------------------------------------------------------------------------------
def _hardshrink_backward(grad_out: Any, self: Any, lambd: Any) -> Any:
    g, x = pair(grad_out, self)
    return narrow(_where.call(((x >= -lambd).logical_and(x <= lambd), 0, g)), grad_out, self)


_hard_backward: Op = hidden(
    "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    meta=only(FLOATS, "shrink_backward_cpu", "grad_out", "self"), kernel=_hardshrink_backward, out=True,
    grad=dict(grad_out=lambda g, self, lambd: _hard_backward.call((g, self, lambd)), self=lambda g: zeros_like(g)))
op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", meta=only(FLOATS, "hardshrink_cpu", "self"), out=True,
   kernel=lambda self, lambd: _where.call(((self >= -lambd).logical_and(self <= lambd), 0, self)),
   grad=dict(self=lambda g, self, lambd: _hard_backward.call((g, self, lambd))))


class SoftRule(PointwiseRule):
    """The threshold is a number that the input's dtype holds, and not negative."""

    def __init__(self) -> None:
        super().__init__(("self",), "default")

    def bind(self, op: Op) -> Rule:
        inner = only(FLOATS, "softshrink_check", "self").bind(op)

        def rule(self: Any, lambd: Any) -> Any:
            made = inner.infer((self, lambd))
            largest = LARGEST.get(self._dtype.name, sys.float_info.max)
            if not 0 <= lambd <= largest:
                raise RuntimeError(f"lambda must be in range [0, {largest:g}] for input dtype "
                                   f"{self._dtype.scalar_name}, but found {lambd:g}")
            return made

        return PyRule(rule)


def _softshrink(self: Any, lambd: Any) -> Any:
    x = wide(self)
    return narrow(_where.call((x > lambd, x - lambd, _where.call((x < -lambd, x + lambd, x * 0)))), self)


_soft_backward: Op = hidden(
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    meta=only(FLOATS, "shrink_backward_cpu", "grad_output", "self"), kernel=_hardshrink_backward, out=True,
    grad=dict(grad_output=lambda g, self, lambd: _soft_backward.call((g, self, lambd)), self=lambda g: zeros_like(g)))
hidden("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", meta=SoftRule(), out=True,
       kernel=_softshrink, grad=dict(self=lambda g, self, lambd: _soft_backward.call((g, self, lambd))))


# -- gated ------------------------------------------------------------------------------------------------------------
def _half(self: Any, dim: int) -> tuple[int, int]:
    if len(self._shape) == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    d = wrap_dim(dim, len(self._shape))
    if self._shape[d] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {self._shape[d]}")
    return d, self._shape[d] // 2


@KeptRule
def _glu_meta(self: Any, dim: int) -> Spec:
    d, half = _half(self, dim)
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{self._dtype.scalar_name}'")
    shape = (*self._shape[:d], half, *self._shape[d + 1:])
    half_view = alias(self, shape, self._stride, 0)
    stride = contiguous_strides(shape) if is_contiguous(half_view) else preserved_strides(half_view)
    return spec(shape, self._dtype, self._device, stride)


def glu_in_parts(self: Any, dim: int) -> Any:
    d, half = _half(self, dim)
    x = wide(self)
    return narrow(x.narrow(d, 0, half) * x.narrow(d, half, half).sigmoid(), self)


def _glu_gradient(grad_output: Any, self: Any, dim: int) -> Any:
    d, half = _half(self, dim)
    g, x = pair(grad_output, self)
    a, s = x.narrow(d, 0, half), x.narrow(d, half, half).sigmoid()
    return narrow(_cat.call(((g * s, g * a * s * (1 - s)), d)), grad_output, self)


def _glu_second(g: Any, grad_output: Any, self: Any, dim: int) -> Any:
    """With respect to the input; g has the input's shape."""
    d, half = _half(self, dim)
    a, s = self.narrow(d, 0, half), self.narrow(d, half, half).sigmoid()
    slope = s * (1 - s)
    first, second = g.narrow(d, 0, half), g.narrow(d, half, half)
    of_gate = grad_output * slope * (first + second * a * (1 - s * 2))
    return _cat.call(((grad_output * second * slope, of_gate), d))


def _glu_grad_second(g: Any, self: Any, dim: int) -> Any:
    d, half = _half(self, dim)
    a, s = self.narrow(d, 0, half), self.narrow(d, half, half).sigmoid()
    return g.narrow(d, 0, half) * s + g.narrow(d, half, half) * a * s * (1 - s)


def _glu_backward_meta(grad_output: Any, self: Any, dim: int) -> Any:
    _half(self, dim)
    if not self._dtype.is_inexact:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {self._dtype.scalar_name}")
    return like(self)


_glu_backward: Op = hidden(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", kernel=_glu_gradient, out=True,
    meta=_glu_backward_meta,
    grad=dict(grad_output=_glu_grad_second, self=_glu_second))
hidden("glu(Tensor self, int dim=-1) -> Tensor", meta=_glu_meta, kernel=glu_in_parts, out=True,
       grad=dict(self=lambda g, self, dim: _glu_backward.call((g, self, dim))))


# -- slopes below zero ------------------------------------------------------------------------------------------------
def _prelu_kernel(self: Any, weight: Any) -> Any:
    x, w = wide(self), wide(weight)
    return narrow(_where.call((x > 0, x, x * w)), self)


def _prelu_backward_meta(grad_output: Any, self: Any, weight: Any) -> list[Any]:
    both = only(FLOATS, "prelu_backward_cpu").bind(_prelu_row)
    spec = both.infer((self, weight))
    return [spec, spec]


def _prelu_gradients(grad_output: Any, self: Any, weight: Any) -> Any:
    g, x = pair(grad_output, self)
    w = wide(weight)
    above = x > 0
    return (narrow(_where.call((above, g, g * w)), grad_output, self),
            narrow((g * x).masked_fill_(above, 0), grad_output, self))


def _prelu_second(grads: Any, needs: Any, grad_output: Any, self: Any, weight: Any) -> Any:
    gx, gw = grads
    above = self > 0
    into: list[Any] = [None, None, None]

    def add(i: int, part: Any) -> None:
        into[i] = part if into[i] is None else into[i] + part

    if gx is not None:
        add(0, _where.call((above, gx, gx * weight)))
        add(2, _where.call((above, gx * 0, gx * grad_output)))
    if gw is not None:
        add(0, _where.call((above, gw * 0, gw * self)))
        add(1, _where.call((above, gw * 0, gw * grad_output)))
    return tuple(into)


_prelu_row: Op = op(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", meta=only(FLOATS, "prelu_cpu"), method=False,
    kernel=_prelu_kernel, grad={("self", "weight"): lambda g, needs, self, weight: _prelu_backward.call(
        (g, self, weight))})
_prelu_backward: Op = op(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    meta=_prelu_backward_meta, function=False, method=False, kernel=_prelu_gradients,
    grad={("grad_output", "self", "weight"): _prelu_second})


def _prelu(self: Any, weight: Any) -> Any:
    if self._dtype is not weight._dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {self._dtype.scalar_name} and "
                           f"{weight._dtype.scalar_name}")
    count = weight.numel()
    if count != 1:
        n = len(self._shape)
        if n == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self._shape[1] if n > 1 else 1
        if channels != count:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{count} and channel size = {channels}.")
    if len(weight._shape) > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{len(weight._shape)}")
    n = len(self._shape)
    if n > 0 and len(weight._shape) != n:
        weight = weight.reshape((1, count) + (1,) * (n - 2) if n > 1 else (count,))
    elif n == 0 and len(weight._shape) == 1:
        weight = weight.reshape(())
    return _prelu_row.call((self, weight))


composite("prelu(Tensor self, Tensor weight) -> Tensor", _prelu)


# -- random slopes ----------------------------------------------------------------------------------------------------
def _check_slopes(lower: Any, upper: Any) -> None:
    if isinstance(lower, complex) or isinstance(upper, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")


def _slopes(x: Any, lower: float, upper: float, generator: Any) -> Any:
    """A random slope for each element that is not positive, one for the others."""
    below = x <= 0
    if x._device.type != "cpu":
        slope = x.new_empty(x._shape).uniform_(lower, upper, generator=generator)
        return _where.call((below, slope, slope.new_ones(()))).to(x._dtype)
    # PyTorch's CPU draws only those it needs, one after the other, in double between bounds of the input's dtype.
    low, high = x.new_tensor([lower, upper]).tolist()
    drawn = x.new_empty((int(below.sum()),), dtype=float64).uniform_(generator=generator) * (high - low) + low
    slope = x.new_ones(x._shape)
    slope[below] = drawn.to(x._dtype)
    return slope


def _noise(self: Any, lower: float, upper: float, training: bool, generator: Any) -> Any:
    """What the slopes are kept in; without training there is nothing random."""
    if not training and not self._dtype.is_floating_point:
        registry.get("leaky_relu").infer((self, lower))  # which refuses it
    return _slopes(self.detach(), lower, upper, generator) if training else self.new_empty((0,))


def _noised_backward(g: Any, x: Any, noise: Any, lower: float, upper: float, training: bool, written: bool) -> Any:
    if training and upper - lower > 1e-6:
        return g * noise
    return registry.get("leaky_relu_backward").call((g, x, (lower + upper) / 2, written))


# PyTorch's `rrelu_with_noise`, after the noise is drawn.
_noised: Op = hidden(
    "_rrelu_noised(Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training) -> Tensor",
    meta=only(FLOATS, "rrelu_with_noise_out_cpu", "self"), inplace=True, node="RreluWithNoiseBackward0",
    kernel=lambda self, noise, lower, upper, training: (
        self * noise if training else registry.get("leaky_relu").call((self, (lower + upper) / 2))),
    grad=dict(self=lambda g, self, noise, lower, upper, training: _noised_backward(
        g, self, noise, lower, upper, training, False)))
grad_when_written(_noised, self=lambda g, result, noise, lower, upper, training: _noised_backward(
    g, result, noise, lower, upper, training, True))


def _rrelu(self: Any, lower: float, upper: float, training: bool, generator: Any) -> Any:
    # In place, PyTorch does not ask this.
    for side, bound in (("lower", lower), ("upper", upper)):
        if not isinstance(bound, complex) and not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {side} bound must be finite, got {bound:g}")
    _check_slopes(lower, upper)
    return _noised.call((self, _noise(self, lower, upper, training, generator), lower, upper, training))


def _rrelu_(self: Any, lower: float, upper: float, training: bool, generator: Any) -> Any:
    _check_slopes(lower, upper)
    noise = _noise(self, lower, upper, training, generator)
    return registry.get("_rrelu_noised_").call((self, noise, lower, upper, training))


_SLOPES = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"
composite(f"rrelu(Tensor self, {_SLOPES}) -> Tensor", _rrelu, method=False)
composite(f"rrelu_(Tensor(a!) self, {_SLOPES}) -> Tensor(a!)", _rrelu_, method=False)
