"""Rows of activation functions and of their backward operators.

Invariant: a backward operator is a row like any other, with a derivative of its own, so that every activation can be
differentiated twice. What has no native kernel is written in terms of other rows, computed in float32 for half types.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Rule
from .composites.formulas import conj, narrow, pair, wide, zeros_like
from .pointwise import REAL, function, only
from .rules.base import PyRule, like
from .rules.dtype_checks import COMPLEX, FLOATS, Choose, check_number
from .table import PointwiseRule, composite, grad_when_written, op

_where = registry.get("where")
_clamp = registry.get("clamp")


def hidden(schema: str, **row: Any) -> Op:
    """A row that is neither a function of `torch` nor a method."""
    return op(schema, function=False, method=False, **row)


def activation(name: str, refuses: str, arguments: str = "", mask: int = FLOATS, **row: Any) -> Op:
    """A row that is called through `torch.nn.functional`."""
    return hidden(f"{name}(Tensor self{arguments}) -> Tensor", meta=only(mask, refuses, "self"), inplace=True, out=True,
                  **row)


class FromResultRule(PointwiseRule):
    """A backward that may be given the result for the input: a negative slope has lost the input's sign."""

    def __init__(self, position: int, slope: int, inner: PointwiseRule, name: str, advice: str = "") -> None:
        super().__init__((), "default")
        self.position, self.slope, self.inner = position, slope, inner
        self.text = (f"In-place {name} backward calculation is triggered with a negative slope which is not supported. "
                     "This is caused by calling in-place forward function with a negative slope, please call "
                     f"out-of-place version instead.{advice}")

    def bind(self, op: Op) -> Rule:
        inner = self.inner.bind(op)

        def from_result(*args: Any) -> Any:
            if not args[self.slope] >= 0:
                raise RuntimeError(self.text)
            return inner.infer(args)

        return Choose(self.position, {False: inner, True: PyRule(from_result)}, "")


# -- sigmoid and tanh -------------------------------------------------------------------------------------------------
def _sigmoid_output(g: Any, grad_output: Any, output: Any) -> Any:
    return conj(g) * grad_output * (1 - conj(output) * 2)


_sigmoid_backward: Op = hidden(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    meta=only(FLOATS | COMPLEX, "sigmoid_backward_cpu"), out=True,
    grad=dict(grad_output=lambda g, output: _sigmoid_backward.call((g, conj(output))), output=_sigmoid_output))
_tanh_backward: Op = hidden(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor", meta=only(FLOATS | COMPLEX, "tanh_backward_cpu"),
    out=True, grad=dict(grad_output=lambda g, output: _tanh_backward.call((g, conj(output))),
              output=lambda g, grad_output, output: conj(g) * (conj(output) * grad_output * -2)))
function("sigmoid", "sigmoid_cpu_reduced_float", lambda g, result: _sigmoid_backward.call((g, result)))
function("tanh", "tanh_vml_cpu", lambda g, result: _tanh_backward.call((g, result)))


# -- rectifiers -------------------------------------------------------------------------------------------------------
_threshold_backward: Op = hidden(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    meta=only(REAL, "threshold_cpu", "self", "grad_output"), out=True,
    grad=dict(grad_output=lambda g, self, threshold: _threshold_backward.call((g, self, threshold)),
              self=lambda g: zeros_like(g)))
op("relu(Tensor self) -> Tensor",
   meta=only(REAL, "clamp_min_scalar_cpu", on_bool=(RuntimeError, "Boolean inputs not supported for relu"),
             on_complex=(NotImplementedError, "clamp is not supported for complex types")),
   inplace="function", grad=dict(self=lambda g, result: _threshold_backward.call((g, result, 0))))
_threshold: Op = op(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", meta=only(REAL, "threshold_cpu", "self"),
    inplace="function", out=True, method=False,
    kernel=lambda self, threshold, value: threshold_parts(self, threshold, value),
    grad=dict(self=lambda g, self, threshold: _threshold_backward.call((g, self, threshold))))
grad_when_written(_threshold, self=lambda g, self, threshold: _threshold_backward.call((g, self, threshold)))


def threshold_parts(self: Any, threshold: Any, value: Any) -> Any:
    return _where.call((self <= _whole(self, threshold), _whole(self, value), self))


def _whole(self: Any, number: Any) -> Any:
    """A bound as the tensor's dtype holds it."""
    dt = self._dtype
    check_number(number, dt)
    return number if dt.is_inexact else int(number)


def _leaky_relu_backward(grad_output: Any, self: Any, negative_slope: float, self_is_result: bool) -> Any:
    g, x = pair(grad_output, self)
    return narrow(_where.call((x > 0, g, g * negative_slope)), grad_output, self)


_leaky_backward: Op = hidden(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    meta=FromResultRule(
        3, 2, only(FLOATS, "leaky_relu_backward_cpu", "self", "grad_output"), "leakyReLu",
        " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu backward "
        "calculation with negative slope"), out=True, kernel=_leaky_relu_backward,
    grad=dict(grad_output=lambda g, self, negative_slope: _leaky_backward.call((g, self, negative_slope, False)),
              self=lambda g: zeros_like(g)))
_leaky_relu: Op = activation(
    "leaky_relu", "leaky_relu_cpu", ", Scalar negative_slope=0.01",
    kernel=lambda self, negative_slope: _where.call((self > 0, self, self * negative_slope)),
    grad=dict(self=lambda g, self, negative_slope: _leaky_backward.call((g, self, negative_slope, False))))
grad_when_written(
    _leaky_relu, self=lambda g, result, negative_slope: _leaky_backward.call((g, result, negative_slope, True)))


def _hardtanh_backward(grad_output: Any, self: Any, min_val: Any, max_val: Any) -> Any:
    g, x = pair(grad_output, self)
    return narrow(_where.call(((x <= min_val).logical_or(x >= max_val), 0, g)), grad_output, self)


class HardtanhRule(PointwiseRule):
    """Unsigned tensors take no negative bounds."""

    def __init__(self) -> None:
        super().__init__(("self",), "default")

    def bind(self, op: Op) -> Rule:
        inner = only(REAL, "clamp_scalar_cpu", "self", on_bool=(RuntimeError, "Bool inputs not supported for hardtanh"),
                     on_complex=(NotImplementedError, "clamp is not supported for complex types")).bind(op)

        def rule(self: Any, min_val: Any, max_val: Any) -> Any:
            if self._dtype.name == "uint8" and (min_val < 0 or max_val < 0):
                raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
            return inner.infer((self, min_val, max_val))

        return PyRule(rule)


_hard_backward: Op = hidden(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    meta=only(FLOATS, "hardshrink_backward_cpu"), out=True, kernel=_hardtanh_backward,
    grad=dict(grad_output=lambda g, self, min_val, max_val: _hard_backward.call((g, self, min_val, max_val)),
              self=lambda g: zeros_like(g)))
_hardtanh: Op = hidden(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", meta=HardtanhRule(), inplace=True, out=True,
    kernel=lambda self, min_val, max_val: _clamp.call((self, _whole(self, min_val), _whole(self, max_val))),
    grad=dict(self=lambda g, self, min_val, max_val: _hard_backward.call((g, self, min_val, max_val))))
composite("relu6(Tensor self) -> Tensor", lambda self: _hardtanh.call((self, 0, 6)), function=False, method=False)
composite("relu6_(Tensor(a!) self) -> Tensor(a!)", lambda self: _hardtanh.row.inplace_op.call((self, 0, 6)),
          function=False, method=False)


# -- gelu -------------------------------------------------------------------------------------------------------------
class GeluRule(PointwiseRule):
    def __init__(self, position: int, kernel: str) -> None:
        super().__init__((), "default")
        self.position, self.kernel = position, kernel

    def bind(self, op: Op) -> Rule:
        rule = only(FLOATS, self.kernel).bind(op)
        return Choose(self.position, {"none": rule, "tanh": rule}, "approximate argument must be either none or tanh.")


_SQRT_2_OVER_PI = 0.7978845608028654
_KAPPA = 0.044715


def _gelu_double_backward(g: Any, grad_output: Any, self: Any, approximate: str) -> Any:
    if approximate == "none":
        density = (self * self * -0.5).exp() * (_SQRT_2_OVER_PI * 0.5)
        return g * grad_output * density * (2 - self * self)
    square = self * self
    inner = (self + self * square * _KAPPA) * _SQRT_2_OVER_PI
    t = inner.tanh()
    slope = (square * (3 * _KAPPA) + 1) * _SQRT_2_OVER_PI
    sech = 1 - t * t
    return g * grad_output * sech * (slope + self * (self * (3 * _KAPPA * _SQRT_2_OVER_PI) - t * slope * slope))


_gelu_backward: Op = hidden(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    meta=GeluRule(2, "GeluBackwardKernelImpl"), out=True,
    grad=dict(grad_output=lambda g, self, approximate: _gelu_backward.call((g, self, approximate)),
              self=_gelu_double_backward))
hidden("gelu(Tensor self, *, str approximate='none') -> Tensor", meta=GeluRule(1, "GeluKernelImpl"), inplace=True,
       out=True, grad=dict(self=lambda g, self, approximate: _gelu_backward.call((g, self, approximate))))


# -- silu and mish ----------------------------------------------------------------------------------------------------
def _silu_grad(g: Any, self: Any) -> Any:
    """By operators: for complex numbers, which the kernel does not have."""
    s = self.sigmoid()
    return g * s * (self * (1 - s) + 1)


def _silu_double_backward(g: Any, grad_output: Any, self: Any) -> Any:
    s = self.sigmoid()
    return g * grad_output * s * (1 - s) * (self * (1 - s * 2) + 2)


_silu_backward: Op = hidden(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor", meta=only(FLOATS | COMPLEX, "silu_backward_cpu"),
    out=True, grad=dict(grad_output=lambda g, self: _silu_backward.call((g, self)), self=_silu_double_backward))
activation("silu", "silu_cpu", mask=FLOATS | COMPLEX,
           grad=dict(self=lambda g, self: _silu_grad(g, self) if self.is_complex() else _silu_backward.call((g, self))))


def _mish(self: Any) -> Any:
    x = wide(self)
    return narrow(x * x.exp().log1p().tanh(), self)


def _mish_slopes(self: Any) -> tuple[Any, Any]:
    return self.sigmoid(), _softplus.call((self, 1, 20)).tanh()


def _mish_backward(grad_output: Any, self: Any) -> Any:
    g, x = pair(grad_output, self)
    s, t = _mish_slopes(x)
    return narrow(g * (t + x * s * (1 - t * t)), grad_output, self)


def _mish_double_backward(g: Any, grad_output: Any, self: Any) -> Any:
    s, t = _mish_slopes(self)
    slope = s * (1 - t * t)
    return g * grad_output * slope * (self * ((1 - s) - t * s * 2) + 2)


_mish_back: Op = hidden(
    "mish_backward(Tensor grad_output, Tensor self) -> Tensor", meta=only(FLOATS, "mish_backward_cpu"),
    kernel=_mish_backward,
    grad=dict(grad_output=lambda g, self: _mish_back.call((g, self)), self=_mish_double_backward))
activation("mish", "mish_cpu", kernel=_mish, grad=dict(self=lambda g, self: _mish_back.call((g, self))))


# -- exponential units ------------------------------------------------------------------------------------------------
def _elu(self: Any, alpha: float, scale: float, input_scale: float) -> Any:
    x = wide(self)
    return narrow(_where.call((x <= 0, (x * input_scale).expm1() * (alpha * scale), x * scale)), self)


def _elu_backward(grad_output: Any, alpha: float, scale: float, input_scale: float, is_result: bool, value: Any) -> Any:
    g, x = pair(grad_output, value)
    if is_result:
        below = g * input_scale * (x + alpha * scale)
    else:
        below = g * (input_scale * alpha * scale) * (x * input_scale).exp()
    return narrow(_where.call((x <= 0, below, g * scale)), grad_output, value)


def _elu_double_backward(g: Any, grad_output: Any, alpha: float, scale: float, input_scale: float, is_result: bool,
                         self_or_result: Any) -> Any:
    both = g * grad_output * input_scale
    if not is_result:
        both = _elu_back.call((both, alpha, scale, input_scale, is_result, self_or_result))
    return _where.call((self_or_result < 0, both, 0))


_elu_back: Op = hidden(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor", meta=FromResultRule(4, 1, only(FLOATS, "elu_backward_cpu"), "elu"), out=True,
    kernel=_elu_backward,
    grad=dict(grad_output=lambda g, alpha, scale, input_scale, is_result, self_or_result: _elu_back.call(
        (g, alpha, scale, input_scale, is_result, self_or_result)), self_or_result=_elu_double_backward))
_elu_row: Op = activation(
    "elu", "elu_cpu", ", Scalar alpha=1, Scalar scale=1, Scalar input_scale=1", kernel=_elu,
    grad=dict(self=lambda g, self, alpha, scale, input_scale: _elu_back.call(
        (g, alpha, scale, input_scale, False, self))))
grad_when_written(_elu_row, self=lambda g, result, alpha, scale, input_scale: _elu_back.call(
    (g, alpha, scale, input_scale, True, result)))
_SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)
composite("selu(Tensor self) -> Tensor", lambda self: _elu_row.call((self, *_SELU)), method=False)
composite("selu_(Tensor(a!) self) -> Tensor(a!)", lambda self: _elu_row.row.inplace_op.call((self, *_SELU)),
          method=False)


def _celu(self: Any, alpha: float) -> Any:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu_row.call((self, alpha, 1, 1 / alpha))


_celu_row: Op = op(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor", meta=only(FLOATS, "elu_cpu", "self"), inplace="function",
    method=False, kernel=_celu,
    grad=dict(self=lambda g, self, alpha: _elu_back.call((g, alpha, 1, 1 / alpha, False, self))))
grad_when_written(_celu_row, self=lambda g, result, alpha: _elu_back.call((g, alpha, 1, 1 / alpha, True, result)))


def _softplus_forward(self: Any, beta: float, threshold: float) -> Any:
    x = wide(self)
    scaled = x * beta
    return narrow(_where.call((scaled > threshold, x, scaled.exp().log1p() / beta)), self)


def _softplus_backward(grad_output: Any, self: Any, beta: float, threshold: float) -> Any:
    g, x = pair(grad_output, self)
    scaled = x * beta
    return narrow(_where.call((scaled > threshold, g, g * scaled.sigmoid())), grad_output, self)


def _softplus_double_backward(g: Any, grad_output: Any, self: Any, beta: float, threshold: float) -> Any:
    x = self * beta
    return _where.call((x < threshold, _sigmoid_backward.call((g * grad_output, x.sigmoid())) * beta, 0))


_soft_backward: Op = hidden(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    meta=only(FLOATS, "softplus_backward_cpu"), out=True, kernel=_softplus_backward,
    grad=dict(grad_output=lambda g, self, beta, threshold: _soft_backward.call((g, self, beta, threshold)),
              self=_softplus_double_backward))
_softplus: Op = hidden(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", meta=only(FLOATS, "softplus_cpu", "self"),
    out=True, kernel=_softplus_forward,
    grad=dict(self=lambda g, self, beta, threshold: _soft_backward.call((g, self, beta, threshold))))


# -- log_sigmoid ------------------------------------------------------------------------------------------------------
def _log_sigmoid(self: Any) -> Any:
    x = wide(self)
    return narrow(x.clamp_max(0) - (-x.abs()).exp().log1p(), self).contiguous()


def _log_sigmoid_meta(self: Any) -> Any:
    _log_sigmoid_rule.infer((self,))
    return like(self)


def _log_sigmoid_backward(grad_output: Any, self: Any) -> Any:
    g, x = pair(grad_output, self)
    return narrow(g * (-x).sigmoid(), grad_output, self)


_log_sigmoid_back: Op = hidden(
    "_log_sigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", meta=only(FLOATS, "log_sigmoid_backward_cpu"),
    kernel=_log_sigmoid_backward,
    grad=dict(grad_output=lambda g, self: _log_sigmoid_back.call((g, self)),
              self=lambda g, grad_output, self: _sigmoid_backward.call((-g * grad_output, self.sigmoid()))))
# PyTorch's forward also returns a buffer, which its CPU backward wants; the gradient here needs only the input.
_log_sigmoid_rule = only(FLOATS, "log_sigmoid_cpu").bind(registry.get("relu"))
hidden("log_sigmoid(Tensor self) -> Tensor", meta=_log_sigmoid_meta, out=True, kernel=_log_sigmoid,
       grad=dict(self=lambda g, self: _log_sigmoid_back.call((g, self))))


# -- hard versions ----------------------------------------------------------------------------------------------------
def _hardsigmoid(self: Any) -> Any:
    return narrow((wide(self) + 3).clamp(0, 6) / 6, self)


def _hardsigmoid_backward(grad_output: Any, self: Any) -> Any:
    g, x = pair(grad_output, self)
    return narrow(_where.call(((x > -3).logical_and(x < 3), g * (1 / 6), 0)), grad_output, self)


_hardsigmoid_back: Op = hidden(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", meta=only(FLOATS, "hardsigmoid_backward"),
    out=True, kernel=_hardsigmoid_backward,
    grad=dict(grad_output=lambda g, self: _hardsigmoid_back.call((g, self)), self=lambda g: zeros_like(g)))
activation("hardsigmoid", "hardsigmoid_cpu", kernel=_hardsigmoid,
           grad=dict(self=lambda g, self: _hardsigmoid_back.call((g, self))))


def _hardswish(self: Any) -> Any:
    x = wide(self)
    return narrow(x * (x + 3).clamp(0, 6) / 6, self)


def _hardswish_backward(grad_output: Any, self: Any) -> Any:
    g, x = pair(grad_output, self)
    middle = _where.call((x < 3, g * (x / 3 + 0.5), g))
    return narrow(_where.call((x <= -3, 0, middle)), grad_output, self)


_hardswish_back: Op = hidden(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", meta=only(FLOATS, "hardswish_backward_cpu"),
    kernel=_hardswish_backward,
    grad=dict(grad_output=lambda g, self: _hardswish_back.call((g, self)),
              self=lambda g, grad_output, self: _where.call(
                  ((self > -3).logical_and(self < 3), g * grad_output / 3, 0))))
activation("hardswish", "hardswish_cpu", kernel=_hardswish,
           grad=dict(self=lambda g, self: _hardswish_back.call((g, self))))
