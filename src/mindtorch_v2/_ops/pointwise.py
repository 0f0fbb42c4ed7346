"""Rows of pointwise operators: arithmetic, elementary functions, comparison, logic, selection.

Invariant: a row's formulas are those of PyTorch's derivatives.yaml, complex conjugates included, and save what those
save.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._autograd.inplace import InplaceDerivative
from .._autograd.record import Formulas
from .._backends.common import lazy
from .._backends.common.overlap import REPEATS
from .._core_operators import CORE
from .._dispatch import registry
from .._dispatch.op import Op, Rule, Spec
from .._dtype import DEFAULTS, float64
from .._dtype import bool as bool_
from .._strides import contiguous_strides
from .._tensor_base import TensorBase
from .composites.alias import Renamed
from .composites.formulas import conj, narrow, over, pair, times, wide, zeros_like
from .rules import dtype_checks
from .rules.base import KeptRule, PyRule
from .rules.dtype_checks import BOOL, COMPLEX, COMPLEX_HALF, EXPONENTS, FLOAT8, FLOATS, INTS, UNSIGNED
from .table import PointwiseRule, Row, composite, op, pointwise

REAL = INTS | FLOATS
ALL = INTS | FLOATS | COMPLEX | BOOL | FLOAT8 | UNSIGNED
EVERY = ALL | EXPONENTS | COMPLEX_HALF
Formula = Callable[..., Any]
Refusal = tuple[type[Exception], str]


# -- the vocabulary of this file --------------------------------------------------------------------------------------
class Accepting(PointwiseRule):
    """`only(dtypes, kernel)` before it is bound to a schema."""

    def __init__(self, names: Sequence[str], kind: str, mask: int, kernel: str, texts: Mapping[int, Refusal],
                 real: bool, pair: str) -> None:
        super().__init__(names, kind)
        self.mask, self.kernel, self.texts, self.real, self.pair = mask, kernel, texts, real, pair

    def bind(self, op: Op) -> Rule:
        numbers = tuple(i for i, a in enumerate(op.schema.args) if a.kind == "Scalar")
        return dtype_checks.Accept(super().bind(op), self.mask, self.kernel, dict(self.texts), self.real, self.pair,
                                   op.title(), numbers)


def only(mask: int, kernel: str, *names: str, kind: str = "default", on_bool: Refusal | None = None,
         on_complex: Refusal | None = None, real: bool = False, pair: str = "") -> Accepting:
    """The pointwise rule for the dtypes in `mask`; others are refused by `kernel`'s name, or by the given errors."""
    texts = {c: t for c, t in ((0, on_bool), (3, on_complex)) if t is not None}
    return Accepting(names, kind, mask, kernel, texts, real, pair)


class Wrapping(PointwiseRule):
    """A pointwise rule inside one of `rules.dtype_checks`."""

    def __init__(self, make: Callable[[Rule], Rule], names: Sequence[str] = (), kind: str = "default") -> None:
        super().__init__(names, kind)
        self.make = make

    def bind(self, op: Op) -> Rule:
        return self.make(super().bind(op))


def function(name: str, kernel: str, grad: Formula, mask: int = FLOATS | COMPLEX, kind: str = "float",
             inplace: bool | str = "function", **more: Any) -> Op:
    """A row of one operand."""
    return op(f"{name}(Tensor self) -> Tensor", meta=only(mask, kernel, kind=kind, **more), grad=dict(self=grad),
              inplace=inplace, out=True)


def alias(new: str, old: str, overloads: bool = True, inplace: bool | str = "function") -> None:
    """Another name for every form of an operator; the call, and so its node in the graph, is the old one's. With
    inplace=True the in-place form is no function even if the old one's is."""
    for target in [o for o in registry.overloads(old) if overloads or o.name == old]:
        numbers = [a.name for i, a in enumerate(target.schema.args) if target.numbers >> i & 1]
        o = composite(new + target.schema_text.removeprefix(old), Renamed(target), numbers=numbers,
                      function=target.row.function, method=target.row.method)
        o.row.out_op = target.row.out_op
        inner = target.row.inplace_op
        if inner is not None:
            p = registry.declare(Op(inner.name.replace(old + "_", new + "_", 1),
                                    new + inner.schema_text.removeprefix(old)))
            p.functional, p.mutates, p.numbers, p.derivative = inner.functional, True, inner.numbers, inner.derivative
            p.row = Row("inplace", p, inner.row.function and inplace == "function", inner.row.method)
            o.row.inplace_op = p


def zero_when_written(o: Op) -> None:
    """Comparisons have no gradient, but written in place they cut the target's history: its gradient is zero."""
    form = o.row.inplace_op
    grads = dict(self=lambda g: zeros_like(g), other=lambda g: zeros_like(g))
    form.derivative = InplaceDerivative(Formulas(o.name, o.schema, grads, None, ()))


def no_formula(name: str) -> Formula:
    """For what PyTorch computes but does not differentiate."""

    def formula(g: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def is_tensor(x: Any) -> bool:
    return isinstance(x, TensorBase)


def by_operand(position: int, tensor: str, number: str) -> Callable[..., str]:
    """PyTorch numbers the nodes of its tensor and number overloads separately."""
    return lambda *args: tensor if isinstance(args[position], TensorBase) else number


# -- arithmetic -------------------------------------------------------------------------------------------------------
op("add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.Additive(rule, False)), inplace=True, out=True, numbers=("self", "other"),
   grad=dict(self=lambda g: g, other=lambda g, alpha: g if alpha == 1 else times(g, alpha)))
op("sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.Additive(rule, True)), inplace=True, out=True, numbers=("self", "other"),
   grad=dict(self=lambda g: g, other=lambda g, alpha: -g if alpha == 1 else times(-g, alpha)))
op("rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.Additive(rule, True), ("other", "self")), numbers=("other",), method=False,
   node=by_operand(1, "RsubBackward0", "RsubBackward1"),
   grad=dict(self=lambda g, alpha: -g if alpha == 1 else times(-g, alpha), other=lambda g: g))
op("mul(Tensor self, Tensor other) -> Tensor",
   meta=pointwise(), inplace=True, out=True, numbers=("self", "other"),
   grad=dict(self=lambda g, other: times(g, other), other=lambda g, self: times(g, self)))


def _div_other(g: Any, self: Any, other: Any) -> Any:
    return times(-g, self / other / other)


op("div(Tensor self, Tensor other) -> Tensor",
   meta=only(FLOATS | COMPLEX, "div_cpu", kind="float"), inplace=True, out=True, numbers=("self", "other"),
   grad=dict(self=lambda g, other: over(g, other), other=_div_other))


class ByMode(PointwiseRule):
    """True division makes floats, rounded division keeps integers."""

    def __init__(self) -> None:
        super().__init__((), "default")

    def bind(self, op: Op) -> Rule:
        return dtype_checks.Choose(2, {
            None: only(FLOATS | COMPLEX, "div_cpu", kind="float").bind(op),
            "trunc": only(REAL, "div_trunc_cpu").bind(op),
            "floor": only(REAL, "div_floor_cpu").bind(op),
        }, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'")


op("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
   meta=ByMode(), inplace=True, out=True, numbers=("self", "other"), node="DivBackward2",
   grad=dict(self=lambda g, other, rounding_mode: over(g, other) if rounding_mode is None else zeros_like(g),
             other=lambda g, self, other, rounding_mode: (_div_other(g, self, other) if rounding_mode is None
                                                          else zeros_like(g))))
_no_floor_divide = no_formula("floor_divide")
op("floor_divide(Tensor self, Tensor other) -> Tensor",
   meta=only(REAL, "div_floor_cpu"), inplace=True, out=True, numbers=("self", "other"), node="NotImplemented",
   grad=dict(self=_no_floor_divide, other=_no_floor_divide))


def _remainder_other(g: Any, self: Any, other: Any) -> Any:
    if not is_tensor(self):
        raise RuntimeError("derivative for aten::remainder is not implemented")
    return -g * self.div(other, rounding_mode="floor")


def _remainder_node(self: Any, other: Any) -> str:
    if not is_tensor(self):
        return "NotImplemented"
    return "RemainderBackward1" if is_tensor(other) else "RemainderBackward0"


op("remainder(Tensor self, Tensor other) -> Tensor",
   meta=only(REAL, "remainder_cpu", pair="other"), inplace=True, out=True, numbers=("self", "other"),
   node=_remainder_node, grad=dict(self=lambda g: g, other=_remainder_other))
op("fmod(Tensor self, Tensor other) -> Tensor",
   meta=only(REAL, "fmod_cpu"), inplace=True, out=True, numbers=("other",),
   node=by_operand(1, "FmodBackward1", "FmodBackward0"),
   grad=dict(self=lambda g: g, other=lambda g, self, other: -g * self.div(other, rounding_mode="trunc")))
alias("true_divide", "div", overloads=False)
alias("divide", "div")
alias("multiply", "mul")
alias("subtract", "sub")


def _pow_self(g: Any, self: Any, exponent: Any) -> Any:
    if is_tensor(exponent):
        return _where.call((exponent == 0, 0, times(g, exponent * self ** (exponent - 1))))
    return zeros_like(g) if exponent == 0 else times(g, exponent * self ** (exponent - 1))


def _log(x: Any) -> Any:
    """The logarithm of a number as C gives it: no errors at 0 and below."""
    if isinstance(x, complex):
        import cmath

        return cmath.log(x) if x else complex(-math.inf, 0)
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _not_negative(exponent: Any) -> Any:
    return (exponent.imag == 0).logical_and(exponent.real >= 0) if exponent.is_complex() else exponent >= 0


def _pow_exponent(g: Any, self: Any, exponent: Any, result: Any) -> Any:
    if is_tensor(self):
        base = self.to(result.dtype) if self.dtype != result.dtype else self
        zero = (self == 0).logical_and(_not_negative(exponent))
        return g * _where.call((zero, 0, conj(result * base.log())))
    slope = conj(result * _log(complex(self) if exponent.is_complex() else self))
    return g * (_where.call((_not_negative(exponent), 0, slope)) if self == 0 else slope)


def _pow_node(self: Any, exponent: Any) -> str:
    if not is_tensor(self):
        return "PowBackward2"
    return "PowBackward1" if is_tensor(exponent) else "PowBackward0"


op("pow(Tensor self, Tensor exponent) -> Tensor",
   meta=Wrapping(dtype_checks.Power), inplace=True, out=True, numbers=("self", "exponent"), node=_pow_node,
   grad=dict(self=_pow_self, exponent=_pow_exponent))
op("square(Tensor self) -> Tensor",
   meta=only(REAL | COMPLEX, "pow", kind="long"), inplace="function", out=True, node="PowBackward0",
   grad=dict(self=lambda g, self: times(g, self * 2)))


def _float_dtype(*operands: Any) -> Any:
    complex_ = any(x.is_complex() if is_tensor(x) else isinstance(x, complex) for x in operands)
    return float64.to_complex() if complex_ else float64


def _float_power(self: Any, exponent: Any) -> Any:
    if not is_tensor(self) and not is_tensor(exponent):
        raise dtype_checks.no_tensor("float_power", (self, exponent), "exponent")
    dt = _float_dtype(self, exponent)
    return CORE.pow.call((self.to(dt) if is_tensor(self) else self,
                         exponent.to(dt) if is_tensor(exponent) else exponent))


def _float_power_(self: Any, exponent: Any) -> Any:
    dt = _float_dtype(self, exponent)
    if self.dtype != dt:
        raise RuntimeError(f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the operation's "
                           f"result requires dtype {dt.scalar_name}")
    return CORE.pow_.call((self, exponent.to(dt) if is_tensor(exponent) else exponent))


composite("float_power(Tensor self, Tensor exponent) -> Tensor", _float_power, numbers=("self", "exponent"), out=True)
composite("float_power_(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", _float_power_, numbers=("exponent",),
          function=False)

op("neg(Tensor self) -> Tensor",
   meta=only(REAL | COMPLEX | COMPLEX_HALF, "neg_cpu", on_bool=(
       RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
       "mask, use the `~` or `logical_not()` operator instead.")),
   inplace="function", out=True, grad=dict(self=lambda g: -g))
alias("negative", "neg")
_abs = op("abs(Tensor self) -> Tensor",
          meta=only(REAL | COMPLEX | COMPLEX_HALF | FLOAT8, "abs_cpu", kind="real"), inplace="function", out=True,
          grad=dict(self=lambda g, self: g * self.sgn()))
# In place there is no room for another dtype.
_abs.row.inplace_op.functional = op(
    "_abs_real(Tensor self) -> Tensor", function=False, method=False, grad=dict(self=lambda g, self: g * self.sgn()),
    meta=only(REAL | FLOAT8, "abs_cpu",
              on_complex=(RuntimeError, "In-place abs is not supported for complex tensors.")))
alias("absolute", "abs", inplace=True)
function("sign", "sign_cpu", lambda g: zeros_like(g), REAL | BOOL, "default", inplace=True, on_complex=(
    NotImplementedError, "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn "
    "instead."))


def _sgn(g: Any, self: Any, result: Any) -> Any:
    if not g.is_complex():
        return zeros_like(g)
    size = self.abs()
    return (g / size - (g / result).real * result / size).masked_fill(size == 0, 0)


function("sgn", "sign_cpu", _sgn, REAL | COMPLEX | COMPLEX_HALF | BOOL, "default", inplace=True)


def _positive(self: Any) -> Any:
    if self.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


composite("positive(Tensor(a) self) -> Tensor(a)", _positive)
function("reciprocal", "reciprocal_cpu", lambda g, result: times(-g, result * result))
function("sqrt", "sqrt_vml_cpu", lambda g, result: over(g, result * 2))
function("rsqrt", "rsqrt_cpu", lambda g, result: times(g * -0.5, result ** 3))


# -- exponentials, logarithms, trigonometry ---------------------------------------------------------------------------
function("exp", "exp_vml_cpu", lambda g, result: times(g, result))
function("exp2", "exp2", lambda g, result: times(g, result) * math.log(2))
function("expm1", "expm1_vml_cpu", lambda g, result: g * (conj(result) + 1))
function("log", "log_vml_cpu", lambda g, self: over(g, self))
function("log2", "log2_vml_cpu", lambda g, self: g / (conj(self) * 0.6931471805599453))
function("log10", "log10_vml_cpu", lambda g, self: g / (conj(self) * 2.3025850929940456))
function("log1p", "log1p_vml_cpu", lambda g, self: over(g, self + 1))
function("sin", "sin_vml_cpu", lambda g, self: times(g, self.cos()))
function("cos", "cos_vml_cpu", lambda g, self: times(-g, self.sin()))
function("tan", "tan_vml_cpu", lambda g, result: times(g, result * result + 1))
function("asin", "asin_vml_cpu", lambda g, self: times(g, (1 - self * self).rsqrt()))
function("acos", "acos_vml_cpu", lambda g, self: times(-g, (1 - self * self).rsqrt()))
function("atan", "atan_vml_cpu", lambda g, self: over(g, self * self + 1))
function("sinh", "sinh_cpu", lambda g, self: times(g, self.cosh()))
function("cosh", "cosh_cpu", lambda g, self: times(g, self.sinh()))
function("asinh", "asinh_cpu", lambda g, self: times(g, (self * self + 1).rsqrt()))
function("acosh", "acosh_cpu", lambda g, self: (
    times(g, (self + 1).rsqrt() * (self - 1).rsqrt()) if self.is_complex() else g * (self * self - 1).rsqrt()))
function("atanh", "atanh_cpu", lambda g, self: over(g, 1 - self * self))
for _new, _old in (("arcsin", "asin"), ("arccos", "acos"), ("arctan", "atan"), ("arcsinh", "asinh"),
                   ("arccosh", "acosh"), ("arctanh", "atanh")):
    alias(_new, _old)


def _sinc(g: Any, self: Any) -> Any:
    x = self * math.pi
    square = self * x
    return _where.call((square == 0, 0, times(g, (x * x.cos() - x.sin()) / square)))


function("sinc", "sinc_cpu", _sinc)
function("erf", "erf_vml_cpu", lambda g, self: g * (-self * self).exp() * (2 / math.sqrt(math.pi)), FLOATS)
function("erfc", "erfc_vml_cpu", lambda g, self: g * (-self * self).exp() * (-2 / math.sqrt(math.pi)), FLOATS)
function("erfinv", "erfinv_vml_cpu", lambda g, result: g * (result * result).exp() * (0.5 * math.sqrt(math.pi)), FLOATS,
         inplace=True)
function("lgamma", "lgamma_vml_cpu", lambda g, self: g * self.digamma(), FLOATS, inplace=True)
function("digamma", "digamma", lambda g, self: g * _polygamma.call((1, self)), FLOATS, inplace=True)


def _polygamma_meta(n: int, self: Any) -> Any:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma_rules[min(n, 2)].infer((self,))


_polygamma_rules = [only(FLOATS, _name, kind="float").bind(registry.get("digamma"))
                    for _name in ("digamma", "trigamma", "polygamma")]
_polygamma: Op = op("polygamma(int n, Tensor self) -> Tensor", meta=_polygamma_meta, out=True,
                    grad=dict(self=lambda g, n, self: g * _polygamma.call((n + 1, self))))
op("polygamma.method(Tensor self, int n) -> Tensor", meta=lambda self, n: _polygamma_meta(n, self), inplace=True,
   kernel=lambda self, n: _polygamma.call((n, self)), function=False, node="PolygammaBackward0",
   grad=dict(self=lambda g, self, n: g * _polygamma.call((n + 1, self))))
def _per_square(self: Any, other: Any) -> Any:
    """One over the square of the distance from the origin, where PyTorch's derivative is zero."""
    square = self * self + other * other
    return square.reciprocal().masked_fill(square == 0, 0)


op("atan2(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "atan2_cpu", kind="float"), inplace=True, out=True,
   grad=dict(self=lambda g, self, other: g * other * _per_square(self, other),
             other=lambda g, self, other: -g * self * _per_square(self, other)))
alias("arctan2", "atan2")
op("hypot(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "hypot_cpu"), inplace=True, out=True,
   grad=dict(self=lambda g, self, result: g * (self / result), other=lambda g, other, result: g * (other / result)))


def _xlogy_self(g: Any, self: Any, other: Any) -> Any:
    grad = _xlogy.call((g, other))
    if is_tensor(other):
        return grad.masked_fill((self == 0).logical_and(other <= 0), 0)
    return grad if other > 0 else grad.masked_fill(self == 0, 0)


def _xlogy_node(self: Any, other: Any) -> str:
    if not is_tensor(self):
        return "XlogyBackward1"
    return "XlogyBackward0" if is_tensor(other) else "XlogyBackward2"


_xlogy: Op = op(
    "xlogy(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "xlogy_cpu", kind="float", pair="other"),
    inplace="function", out=True, numbers=("self", "other"), node=_xlogy_node,
    grad=dict(self=_xlogy_self, other=lambda g, self, other: g * self / other))


def logaddexp_parts(self: Any, other: Any) -> Any:
    a, b = pair(self, other)
    if a.is_complex() or b.is_complex():
        up = a.real >= b.real
        larger, smaller = _where.call((up, a, b)), _where.call((up, b, a))
        # Where both are infinite, angles alone decide.
        least = smaller.real
        alone = least.isfinite().logical_not().logical_and(least == larger.real)
        both = _where.call((least < 0, b, (a.exp() + b.exp()).log()))
        found = _where.call((alone, both, larger + (smaller - larger).exp().log1p()))
        return _where.call((a.isnan().logical_or(b.isnan()), found.new_full((), complex(math.nan, math.nan)), found))
    return narrow(_where.call((a == b, a + math.log(2), a.maximum(b) + (-(a - b).abs()).exp().log1p())), self, other)


def _logaddexp2(self: Any, other: Any) -> Any:
    a, b = pair(self, other)
    grown = a.maximum(b) + (-(a - b).abs()).exp2().log1p() * (1 / math.log(2))
    return narrow(_where.call((a == b, a + 1, grown)), self, other)


op("logaddexp(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS | COMPLEX, "logaddexp_cpu"), out=True,
   kernel=logaddexp_parts,
   grad=dict(self=lambda g, self, other: over(g, (other - self).exp() + 1),
             other=lambda g, self, other: over(g, (self - other).exp() + 1)))
op("logaddexp2(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "logaddexp2_cpu"), out=True,
   kernel=_logaddexp2, grad=dict(self=lambda g, self, other: g / ((other - self).exp2() + 1),
             other=lambda g, self, other: g / ((self - other).exp2() + 1)))
op("deg2rad(Tensor self) -> Tensor",
   meta=only(FLOATS, "mul_cpu_reduced_float", kind="float",
             on_complex=(RuntimeError, "deg2rad is not supported for complex tensors.")),
   inplace="function", out=True, node="Deg2RadBackward0", kernel=lambda self: self * (math.pi / 180),
   grad=dict(self=lambda g: g * (math.pi / 180)))
op("rad2deg(Tensor self) -> Tensor",
   meta=only(FLOATS, "mul_cpu_reduced_float", kind="float",
             on_complex=(RuntimeError, "rad2deg is not supported for complex tensors.")),
   inplace="function", out=True, node="Rad2DegBackward0", kernel=lambda self: self * (180 / math.pi),
   grad=dict(self=lambda g: g * (180 / math.pi)))


# -- rounding ---------------------------------------------------------------------------------------------------------
for _name in ("ceil", "floor", "trunc"):
    function(_name, _name + "_vml_cpu", lambda g: zeros_like(g), REAL | UNSIGNED, "default",
             on_complex=(NotImplementedError, f"{_name} is not supported for complex inputs"))
alias("fix", "trunc")
function("round", "round_vml_cpu", lambda g: zeros_like(g), REAL | UNSIGNED, "default")


def _round_decimals(self: Any, decimals: int) -> Any:
    x = wide(self)
    # Where the power is infinite so are the products, and their quotients are NaN.
    power = 10.0 ** abs(decimals) if abs(decimals) <= 308 else math.inf
    if decimals >= 0:
        return narrow((x * power).round() / power, self)
    return narrow((x / power).round() * power, self)


op("round.decimals(Tensor self, *, int decimals) -> Tensor", meta=only(FLOATS, "round_cpu"), inplace="function",
   out=True, node="RoundBackward1", kernel=_round_decimals, grad=dict(self=lambda g: zeros_like(g)))
function("frac", "frac_cpu", lambda g: g, FLOATS, "default")


# -- bounds and blends ------------------------------------------------------------------------------------------------
def _halved(name: str) -> tuple[type[Exception], str]:
    return RuntimeError, f"{name} not implemented for complex tensors."


def _shared(g: Any, self: Any, other: Any, loses: Any) -> Any:
    """Equal operands share the gradient; the one that loses gets none."""
    return _where.call((self == other, g / 2, g)).masked_fill(loses, 0)


op("maximum(Tensor self, Tensor other) -> Tensor", meta=only(REAL | BOOL, "maximum_cpu", on_complex=_halved("maximum")),
   out=True, grad=dict(self=lambda g, self, other: _shared(g, self, other, self < other),
                       other=lambda g, self, other: _shared(g, self, other, self > other)))
op("minimum(Tensor self, Tensor other) -> Tensor", meta=only(REAL | BOOL, "minimum_cpu", on_complex=_halved("minimum")),
   out=True, grad=dict(self=lambda g, self, other: _shared(g, self, other, self > other),
                       other=lambda g, self, other: _shared(g, self, other, self < other)))
op("fmax(Tensor self, Tensor other) -> Tensor", meta=only(REAL | BOOL, "fmax_cpu", on_complex=_halved("fmax")),
   out=True,
   grad=dict(self=lambda g, self, other: g.masked_fill((self >= other).logical_or(other.isnan()).logical_not(), 0),
             other=lambda g, self, other: g.masked_fill((self >= other).logical_or(other.isnan()), 0)))
op("fmin(Tensor self, Tensor other) -> Tensor", meta=only(REAL | BOOL, "fmin_cpu", on_complex=_halved("fmin")),
   out=True,
   grad=dict(self=lambda g, self, other: g.masked_fill((self <= other).logical_or(other.isnan()).logical_not(), 0),
             other=lambda g, self, other: g.masked_fill((self <= other).logical_or(other.isnan()), 0)))


def _clamp_self(g: Any, self: Any, min: Any, max: Any) -> Any:
    inside = self >= min if min is not None else self <= max
    if min is not None and max is not None:
        inside = inside.logical_and(self <= max)
    return _where.call((inside, g, 0))


def _clamp_bounds(g: Any, self: Any, min: Any, max: Any, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    if min is None:
        return None, _where.call((self > max, g, 0))
    if max is None:
        return _where.call((self < min, g, 0)), None
    low = _where.call(((self < min).logical_and(min < max), g, 0)) if needs[0] else None
    high = _where.call(((self > max).logical_or(max <= min), g, 0)) if needs[1] else None
    return low, high


def _clamp_node(self: Any, min: Any, max: Any) -> str:
    return "ClampBackward0" if is_tensor(min) or is_tensor(max) else "ClampBackward1"


op("clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.Clamp(rule, "clamp", 1, 2)), inplace="function", out=True,
   numbers=("min", "max"), node=_clamp_node, grad={"self": _clamp_self, ("min", "max"): _clamp_bounds})
alias("clip", "clamp")
op("clamp_min(Tensor self, Tensor min) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.Clamp(rule, "clamp_min", 1, -1)),
   inplace="function", out=True, numbers=("min",), node=by_operand(1, "ClampMinBackward1", "ClampMinBackward0"),
   grad=dict(self=lambda g, self, min: _where.call((self >= min, g, 0)),
             min=lambda g, self, min: _where.call((self < min, g, 0))))
op("clamp_max(Tensor self, Tensor max) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.Clamp(rule, "clamp_max", -1, 1)),
   inplace="function", out=True, numbers=("max",), node=by_operand(1, "ClampMaxBackward1", "ClampMaxBackward0"),
   grad=dict(self=lambda g, self, max: _where.call((self <= max, g, 0)),
             max=lambda g, self, max: _where.call((self > max, g, 0))))
op("lerp(Tensor self, Tensor end, Tensor weight) -> Tensor", meta=Wrapping(dtype_checks.Lerp), inplace=True, out=True,
   numbers=("weight",), node=by_operand(2, "LerpBackward1", "LerpBackward0"),
   grad=dict(self=lambda g, weight: times(g, 1 - weight), end=lambda g, weight: times(g, weight),
             weight=lambda g, self, end: times(g, end - self)))
op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.AddScaled(rule, False)), inplace=True, out=True,
   grad=dict(self=lambda g: g, tensor1=lambda g, tensor2, value: times(g, tensor2 * value),
             tensor2=lambda g, tensor1, value: times(g, tensor1 * value)))
op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   meta=Wrapping(lambda rule: dtype_checks.AddScaled(rule, True)), inplace=True, out=True,
   grad=dict(self=lambda g: g, tensor1=lambda g, tensor2, value: times(g, value / tensor2),
             tensor2=lambda g, tensor1, tensor2, value: times(-g, tensor1 * value / (tensor2 * tensor2))))
op("copysign(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "copysign_cpu", kind="float"), inplace=True,
   out=True, numbers=("other",), node=by_operand(1, "CopysignBackward0", "CopysignBackward1"),
   grad=dict(self=lambda g, self, result: g * (result / self).masked_fill(self == 0, 0), other=lambda g: zeros_like(g)))


# -- comparison -------------------------------------------------------------------------------------------------------
for _name, _mask in (("eq", EVERY), ("ne", EVERY), ("lt", REAL | BOOL), ("le", REAL | BOOL), ("gt", REAL | BOOL),
                     ("ge", REAL | BOOL)):
    zero_when_written(op(f"{_name}(Tensor self, Tensor other) -> Tensor", meta=only(_mask, _name + "_cpu", kind="bool"),
                         inplace=True, out=True, numbers=("other",), nondifferentiable=True))
for _new, _old in (("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
                   ("greater_equal", "ge")):
    alias(_new, _old)


def predicate(name: str, mask: int, out: bool = False, kernel: Formula | None = None, **more: Any) -> None:
    """A row that answers yes or no about each element."""
    op(f"{name}(Tensor self) -> Tensor", meta=only(mask, more.pop("refuses", name), kind="bool", **more), out=out,
       nondifferentiable=True, kernel=kernel)


# Of the types with eight bits one has infinities.
_FINITE8 = FLOAT8 & ~(1 << 13)
predicate("isnan", EVERY)
predicate("isinf", EVERY & ~_FINITE8 & ~EXPONENTS)
predicate("isfinite", EVERY & ~_FINITE8)
predicate("isposinf", ALL & ~FLOAT8 & ~COMPLEX, True, lambda self: self == math.inf, refuses="isposinf_cpu",
          on_complex=(RuntimeError, "isposinf does not support complex inputs."))
predicate("isneginf", ALL & ~FLOAT8 & ~COMPLEX, True, lambda self: self == -math.inf, refuses="isneginf_cpu",
          on_complex=(RuntimeError, "isneginf does not support complex inputs."))
predicate("signbit", ALL & ~FLOAT8 & ~COMPLEX, True, refuses="signbit_cpu",
          on_complex=(NotImplementedError, "signbit is not implemented for complex tensors."))
composite("isreal(Tensor self) -> Tensor", lambda self: (
    self.imag == 0 if self.is_complex() else registry.get("ones_like").call((self, bool_, None, None, None, None))))


def _isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{self.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    close = self == other
    if equal_nan and self.dtype.is_inexact:
        close = close | (self.isnan() & other.isnan())
    if rtol == 0 and atol == 0:
        return close
    if not self.dtype.is_inexact:
        self, other = self.to(DEFAULTS.dtype), other.to(DEFAULTS.dtype)
    error = (self - other).abs()
    return close | (error.isfinite() & (error <= (other * rtol).abs() + atol))


composite("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
          _isclose)
composite("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
          lambda self, other, rtol, atol, equal_nan: bool(_isclose(self, other, rtol, atol, equal_nan).all()))
def equal(self: Any, other: Any) -> bool:
    return self.shape == other.shape and bool(self.eq(other).all())


composite("equal(Tensor self, Tensor other) -> bool", equal)


# -- logic ------------------------------------------------------------------------------------------------------------
for _name in ("logical_and", "logical_or", "logical_xor"):
    op(f"{_name}(Tensor self, Tensor other) -> Tensor", meta=only(REAL | COMPLEX | BOOL, _name + "_cpu", kind="bool"),
       inplace=True, out=True, nondifferentiable=True)
op("logical_not(Tensor self) -> Tensor", meta=only(REAL | COMPLEX | BOOL, "logical_not_cpu", kind="bool"), inplace=True,
   out=True, nondifferentiable=True)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    op(f"{_name}(Tensor self, Tensor other) -> Tensor", meta=only(INTS | BOOL | UNSIGNED, _name + "_cpu", pair="other"),
       inplace=True, out=True, numbers=("self", "other"), nondifferentiable=True)
op("bitwise_not(Tensor self) -> Tensor", meta=only(INTS | BOOL, "bitwise_not_cpu"), inplace=True, out=True,
   nondifferentiable=True)
for _name, _kernel in (("bitwise_left_shift", "lshift_cpu"), ("bitwise_right_shift", "rshift_cpu")):
    op(f"{_name}(Tensor self, Tensor other) -> Tensor", meta=only(INTS, _kernel, pair="other"), inplace=True, out=True,
       numbers=("self", "other"), nondifferentiable=True)
# `<<` and `>>` have rows of their own, as PyTorch's `__lshift__` and `__rshift__` do.
for _name in ("lshift", "rshift"):
    op(f"{_name}(Tensor self, Tensor other) -> Tensor", meta=only(INTS, _name + "_cpu", pair="other"), inplace=True,
       numbers=("self", "other"), nondifferentiable=True, function=False, method=False)


# -- selection --------------------------------------------------------------------------------------------------------
_where: Op = op(
    "where(Tensor condition, Tensor self, Tensor other) -> Tensor", meta=dtype_checks.Where(), out=True,
    numbers=("self", "other"),
    grad=dict(self=lambda g, condition: _where.call((condition, g, 0)),
              other=lambda g, condition: _where.call((condition, 0, g))))
composite("where.nonzero(Tensor condition) -> Tensor[]",
          lambda condition: (condition if condition.ndim else condition.unsqueeze(0)).nonzero().unbind(1))
composite("where.method(Tensor self, Tensor condition, Tensor other) -> Tensor",
          lambda self, condition, other: _where.call((condition, self, other)), numbers=("other",), function=False)
_masked_fill: Op = op(
    "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor", meta=dtype_checks.MaskedFill(), inplace=True,
    overlap=REPEATS, numbers=("value",), node=by_operand(2, "MaskedFillBackward1", "MaskedFillBackward0"),
    grad=dict(self=lambda g, mask: g.masked_fill(mask, 0), value=lambda g, mask: _where.call((mask, g, 0)).sum()))


def nan_to_num_parts(self: Any, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    if not self.dtype.is_inexact or not self.numel():
        return self.clone()
    if self.is_complex():
        from mindtorch_v2 import view_as_complex, view_as_real

        return view_as_complex(nan_to_num_parts(view_as_real(self), nan, posinf, neginf))
    from .._finfo import finfo

    largest = finfo(self.dtype).max
    x = _where.call((self.isnan(), 0 if nan is None else nan, self))
    x = _where.call((self == math.inf, largest if posinf is None else posinf, x))
    return _where.call((self == -math.inf, -largest if neginf is None else neginf, x))


def _nan_to_num_meta(self: Any, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    spec = _nan_to_num_rule.infer((self,))
    # Made like a copy, which keeps the strides of an empty tensor where other operators make new ones.
    return spec if self.numel() else self


_nan_to_num_rule = only(ALL & ~FLOAT8, "nan_to_num").bind(registry.get("neg"))
op("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
   meta=KeptRule(_nan_to_num_meta), inplace="function", out=True, kernel=nan_to_num_parts,
   grad=dict(self=lambda g, self: g * self.isfinite()))


# -- complex numbers --------------------------------------------------------------------------------------------------
_conj_physical = op("_conj_physical(Tensor self) -> Tensor", meta=pointwise(), node="ConjPhysicalBackward0",
                    inplace=True, out=True, grad=dict(self=lambda g: conj(g)))
lazy.PHYSICAL.conjugate, lazy.PHYSICAL.conjugate_ = _conj_physical, _conj_physical.row.inplace_op
lazy.PHYSICAL.negate, lazy.PHYSICAL.negate_ = registry.get("neg"), registry.get("neg_")
composite("conj_physical(Tensor self) -> Tensor",
          lambda self: _conj_physical.call((self,)) if self._dtype.is_complex else self
          ).row.out_op = _conj_physical.row.out_op
composite("conj_physical_(Tensor(a!) self) -> Tensor(a!)", lambda self: _conj_physical.row.inplace_op.call((self,)))


def _angle(g: Any, self: Any) -> Any:
    if not self.is_complex():
        return zeros_like(g)
    size = self.abs()
    return _where.call((self == 0, 0, g * self / (size * size) * 1j))


class AngleRule(PointwiseRule):
    """The angles of complex numbers are row-major whatever the input's strides."""

    def __init__(self) -> None:
        super().__init__((), "float")

    def bind(self, op: Op) -> Rule:
        inner = only(FLOATS | COMPLEX, "angle_cpu", kind="float", real=True).bind(op)

        def rule(self: Any) -> Spec:
            made: Spec = inner.infer((self,))
            if not made.compute.is_complex:
                return made
            return Spec(made.shape, contiguous_strides(made.shape), made.dtype, made.compute, made.device)

        return PyRule(rule)


op("angle(Tensor self) -> Tensor", meta=AngleRule(), out=True,
   grad=dict(self=_angle))
