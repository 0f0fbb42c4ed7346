"""Layer norm and RMS norm.

Invariant: what a network calls once per layer is one row with one backward row, both differentiable again.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Op
from .._dtype import float32
from .._dtype_names import cpp_name
from .._finfo import finfo
from .._warn import warn_once
from .composites import norm as composed
from .composites.rows import ROWS
from .rules import norm as rules
from .table import composite, op


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
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    meta=rules.LayerNormBackward(), function=False, method=False,
    grad={("grad_out", "input", "weight"): _layer_norm_double_backward})


def _layer_norm_backward(g: Any, needs: Any, input: Any, normalized_shape: Any, weight: Any, bias: Any, result1: Any,
                         result2: Any) -> Any:
    return LAYER_NORM_BACKWARD.call((g, input, normalized_shape, result1, result2, weight, bias, needs))


ROWS.layer_norm = op(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor result0, Tensor result1, Tensor result2)", meta=rules.LayerNorm(False), nondiff=("result1", "result2"),
    grad={("input", "weight", "bias"): _layer_norm_backward})
# Where nothing is recorded the mean and the deviation are not wanted.
ROWS.plain_layer_norm = op(
    "_layer_norm_output(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> Tensor",
    meta=rules.LayerNorm(True), function=False, method=False, nondifferentiable=True,
    kernel=lambda *args: ROWS.layer_norm.call(args)[0])
composite("layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
          "float eps=1e-05, bool cudnn_enable=True) -> Tensor", composed.LayerNormOf())


def rms_eps(dt: Any) -> float:
    """What is added to the mean of squares unless given: that of the dtype which computes it."""
    return finfo(dt if dt.itemsize > 2 else float32).eps


def _rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    fits = weight is None or weight._shape == tuple(normalized_shape)
    if fits and len(input._shape) < len(normalized_shape):
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but got "
                         f"{len(input._shape)}")
    axis = rules.check_normalized("rms_norm", input, normalized_shape, weight, None)
    dims = tuple(range(axis, len(input._shape)))
    if eps is None:
        eps = rms_eps(input._dtype)
    if weight is not None and weight._dtype is not input._dtype:
        warn_once(f"Mismatch dtype between input and weight: input dtype = {cpp_name(input._dtype)}, weight dtype = "
                  f"{cpp_name(weight._dtype)}, Cannot dispatch to fused implementation.", subject="rms_norm")
    # Two bytes hold too little for a mean of squares.
    wide = input.to(float32) if input._dtype.is_floating_point and input._dtype.itemsize == 2 else input
    out = wide * (wide * wide).mean(dims, True).add(eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out.to(input._dtype).contiguous()


composite("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
          _rms_norm)
