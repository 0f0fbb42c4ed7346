"""Softmax and its logarithm.

Invariant: each is one row with one backward row, both differentiable again.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op
from .composites import norm as composed
from .composites.rows import ROWS
from .rules import norm as rules
from .table import composite, op

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
