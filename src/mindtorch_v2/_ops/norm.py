"""Softmax, layer norm, RMS norm, dropout.

Invariant: what a network calls once per layer is one row with one backward row, both differentiable again.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import bool as bool_
from .._dtype import float32
from .._finfo import finfo
from .composites import norm as composed
from .composites.rows import ROWS
from .rules import norm as rules
from .rules.base import like
from .table import composite, op

# -- softmax ------------------------------------------------------------------------------------------------------
SOFTMAX_BACKWARD: Op = op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    meta=rules.SoftmaxBackward(), method=False,
    grad=dict(grad_output=lambda g, output, dim, input_dtype: SOFTMAX_BACKWARD.call((g, output, dim, input_dtype)),
              output=lambda g, grad_output, output, dim: _softmax_double_backward(g, grad_output, output, dim)))
LOG_SOFTMAX_BACKWARD: Op = op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    meta=rules.SoftmaxBackward(), method=False,
    grad=dict(grad_output=lambda g, output, dim: g - (g * output.exp()).sum((dim,), True),
              output=lambda g, grad_output, output, dim: grad_output.sum((dim,), True).neg() * output.exp() * g))


def _softmax_double_backward(g: Any, grad_output: Any, output: Any, dim: int) -> Any:
    return grad_output * g - (output * g).sum((dim,), True) * grad_output - g * (output * grad_output).sum((dim,), True)


ROWS.softmax = op(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", meta=rules.Softmax(), out=True, method=False,
    grad=dict(self=lambda g, result, dim, self_dtype: SOFTMAX_BACKWARD.call((g, result, dim, self_dtype))))
ROWS.log_softmax = op(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", meta=rules.Softmax(), out=True, method=False,
    grad=dict(self=lambda g, result, dim, self_dtype: LOG_SOFTMAX_BACKWARD.call((g, result, dim, self_dtype))))
ROWS.to_copy = registry.get("to_copy")
composite("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", composed.SoftmaxOf(False), out=True)
composite("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", composed.SoftmaxOf(True), out=True)


# -- layer norm ---------------------------------------------------------------------------------------------------
def _layer_norm_double_backward(grads: Any, needs: Any, grad_out: Any, input: Any, normalized_shape: Any, mean: Any,
                                rstd: Any, weight: Any, output_mask: Any) -> Any:
    """Gradients of the backward pass with respect to grad_out, input and weight, over rows of the normalized size."""
    size = 1
    for s in normalized_shape:
        size *= s
    x, g = input.reshape((-1, size)), grad_out.reshape((-1, size))
    r = rstd.reshape((-1, 1))
    centred = x - mean.reshape((-1, 1))
    hat = centred * r
    w = None if weight is None else weight.reshape((1, size))
    gw = g if w is None else g * w

    def row_sum(t: Any) -> Any:
        return t.sum((1,), True)

    def first(t: Any) -> Any:
        """The Jacobian of the normalization, applied to t."""
        return r / size * (t * size - row_sum(t) - hat * row_sum(t * hat))

    into_grad: Any = None
    into_input: Any = None
    into_weight: Any = None
    if output_mask[0]:
        d = grads[0].reshape((-1, size))
        into_grad = first(d) if w is None else first(d) * w
        if needs[1]:
            ds, gs = row_sum(d), row_sum(gw)
            dh, gh = row_sum(d * hat), row_sum(gw * hat)
            inner = ds * gs / size - row_sum(d * gw) + dh * gh * (3.0 / size)
            into_input = (hat * inner + dh * (gs / size - gw) + gh * (ds / size - d)) * (r * r / size)
        if needs[2] and w is not None:
            into_weight = (g * first(d)).sum((0,)).reshape(weight._shape)
    if output_mask[1] and w is not None:
        d = grads[1].reshape((1, size))
        part = d * hat
        into_grad = part if into_grad is None else into_grad + part
        if needs[1]:
            part = first(g * d)
            into_input = part if into_input is None else into_input + part
    if output_mask[2]:
        part = grads[2].reshape((1, size)).expand(g._shape)
        into_grad = part if into_grad is None else into_grad + part
    shape = input._shape
    return (None if into_grad is None else into_grad.reshape(shape),
            None if into_input is None else into_input.reshape(shape), into_weight)


LAYER_NORM_BACKWARD: Op = op(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    meta=rules.LayerNormBackward(), function=False, method=False,
    grad={("grad_out", "input", "weight"): _layer_norm_double_backward})


def _layer_norm_backward(g: Any, needs: Any, input: Any, normalized_shape: Any, weight: Any, bias: Any, result1: Any,
                         result2: Any) -> Any:
    return LAYER_NORM_BACKWARD.call((g, input, normalized_shape, result1, result2, weight, bias, needs))


ROWS.layer_norm = op(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor result0, Tensor result1, Tensor result2)", meta=rules.LayerNorm(False), nondiff=("result1", "result2"),
    grad={("input", "weight", "bias"): _layer_norm_backward})
# Where nothing is recorded the mean and the deviation are not wanted.
ROWS.plain_layer_norm = op(
    "_layer_norm_output(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> Tensor",
    meta=rules.LayerNorm(True), function=False, method=False, nondifferentiable=True,
    kernel=lambda *args: ROWS.layer_norm.call(args)[0])
composite("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
          "bool cudnn_enable=True) -> Tensor", composed.LayerNormOf())


def _rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    fits = weight is None or weight._shape == tuple(normalized_shape)
    if fits and len(input._shape) < len(normalized_shape):
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but got "
                         f"{len(input._shape)}")
    axis = rules.check_normalized("rms_norm", input, normalized_shape, weight, None)
    dims = tuple(range(axis, len(input._shape)))
    if eps is None:
        eps = finfo(input._dtype).eps
    # Two bytes hold too little for a mean of squares.
    wide = input.to(float32) if input._dtype.is_floating_point and input._dtype.itemsize == 2 else input
    out = wide * (wide * wide).mean(dims, True).add(eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out.to(input._dtype).contiguous()


composite("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", _rms_norm)


# -- dropout ------------------------------------------------------------------------------------------------------
_EMPTY_LIKE = registry.get("empty_like")


def _kept(input: Any, p: float, train: bool) -> Any:
    """The factors of dropout: 0, or what keeps the expectation. None: everything passes."""
    if p < 0 or p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or 0 in input._shape:
        return None
    if p == 1:
        return input.detach().new_zeros(())
    noise = _EMPTY_LIKE.call((input.detach(), None, None, None, None, None))
    return noise.bernoulli_(1 - p).div_(1 - p)


def _dropout(input: Any, p: float, train: bool) -> Any:
    kept = _kept(input, p, train)
    return input if kept is None else input * kept


def _dropout_(self: Any, p: float, train: bool) -> Any:
    kept = _kept(self, p, train)
    return self if kept is None else self.mul_(kept)


composite("dropout(Tensor input, float p, bool train) -> Tensor", _dropout)
composite("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", _dropout_, method=False)


def _native_dropout_meta(input: Any, p: float, train: Any) -> list[Spec]:
    return [like(input), like(input, None, bool_)]


def _native_dropout(input: Any, p: float, train: Any) -> Any:
    if train is False:
        return input.clone(), input.new_ones(input._shape, dtype=bool_)
    if p == 1:
        return input.new_zeros(input._shape), input.new_zeros(input._shape, dtype=bool_)
    mask = input.new_empty(input._shape, dtype=bool_).bernoulli_(1 - p)
    return input * mask * (1 / (1 - p)), mask


DROPOUT_BACKWARD: Op = op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    meta=lambda grad_output, mask, scale: like(grad_output), function=False, method=False,
    kernel=lambda grad_output, mask, scale: grad_output * mask * scale,
    grad=dict(grad_output=lambda g, mask, scale: DROPOUT_BACKWARD.call((g, mask, scale))))


def _native_dropout_grad(g: Any, result1: Any, p: float, train: Any) -> Any:
    scale = 1.0 if train is False else 0.0 if p == 1 else 1 / (1 - p)
    return DROPOUT_BACKWARD.call((g, result1, scale))


op("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", meta=_native_dropout_meta,
   kernel=_native_dropout, grad=dict(input=_native_dropout_grad))
