"""Special functions, and the pointwise operators that few programs use.

Invariant: formulas are those of PyTorch's derivatives.yaml; what PyTorch computes but does not differentiate refuses
the same way.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import DEFAULTS, int32, int64
from .._tensor_base import TensorBase
from .composites.formulas import narrow, times, wide, zeros_like
from .pointwise import Formula, function, is_tensor, no_formula, only
from .rules.base import KeptRule, like
from .rules.dtype_checks import FLOATS, INTS, WIDE_FLOATS
from .rules.layout import ordered_strides, preserved_strides
from .rules.out import Target
from .table import composite, op, pointwise

_where = registry.get("where")
_pow = registry.get("pow")
_SQRT_2 = math.sqrt(2)


# -- whole numbers ------------------------------------------------------------------------------------------------
GCD: Op = op("gcd(Tensor self, Tensor other) -> Tensor", meta=only(INTS, "gcd_cpu"), inplace="function", out=True,
             nondifferentiable=True)


def _lcm(self: Any, other: Any) -> Any:
    divisor = GCD.call((self, other))
    safe = divisor.masked_fill(divisor == 0, 1)
    return (self.div(safe, rounding_mode="trunc") * other).abs()


op("lcm(Tensor self, Tensor other) -> Tensor", meta=only(INTS, "lcm_cpu"), inplace="function", out=True,
   nondifferentiable=True, kernel=_lcm)


# -- steps and bits -----------------------------------------------------------------------------------------------
def _heaviside_meta(self: Any, values: Any) -> Any:
    if self.is_complex() or values.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self._dtype is not values._dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return registry.get("mul").infer((self, values))


op("heaviside(Tensor self, Tensor values) -> Tensor", meta=KeptRule(_heaviside_meta), inplace=True,
   node="NotImplemented", grad=dict(self=no_formula("heaviside"), values=no_formula("heaviside")),
   out=Target("same", "heaviside is not yet implemented for tensors with different dtypes.",
              on_complex="heaviside is not yet implemented for complex tensors."),
   kernel=lambda self, values: _where.call((self == 0, values, (self > 0).to(self._dtype))))
op("nextafter(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "nextafter_cpu"), inplace=True, out=True,
   grad=dict(self=lambda g, self, other: g.masked_fill(self == other, 0), other=lambda g: zeros_like(g)))


def _ldexp_meta(self: Any, other: Any) -> Spec:
    plain: Spec = _ldexp_rule.infer((self, other))
    if self._dtype.is_floating_point and not other._dtype.is_inexact:
        if other._dtype.is_bool and self._device.type == "cpu":
            raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
        return plain
    if plain.dtype.itemsize in (2, 8) and not plain.dtype.is_complex:
        return plain
    # The layout is that of a product with the powers of two, which have a layout of their own.
    powers = _pow.call((2.0, other.detach().to("meta")))
    return Spec(plain.shape, ordered_strides(plain.shape, [self, powers]), plain.dtype, plain.dtype, plain.device)


_ldexp_rule = pointwise(kind="float").bind(registry.get("mul"))
# A third of the largest exponents, so that no power of two on the way overflows.
_STEPS = {2: 126, 4: 126, 8: 1022}


def ldexp(self: Any, other: Any) -> Any:
    if not self._dtype.is_floating_point or other._dtype.is_inexact:
        return self * _pow.call((2.0, other))
    x = wide(self)
    step = _STEPS[self._dtype.itemsize]
    left = other.to(int64).clamp(-3 * step, 3 * step)
    for share in (3, 2, 1):
        part = left.div(share, rounding_mode="trunc")
        x = x * _pow.call((2.0, part.to(x._dtype)))
        left = left - part
    return x.to(self._dtype)


op("ldexp(Tensor self, Tensor other) -> Tensor", meta=_ldexp_meta, inplace="function", kernel=ldexp,
   out=Target("cast", "ldexp can't be cast to the desired output type {got}"),
   grad=dict(self=lambda g, other: times(g, _pow.call((2.0, other))),
             other=lambda g, result: times(g, result) * math.log(2)))


def _frexp_meta(self: Any) -> list[Spec]:
    if not self._dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    stride = preserved_strides(self)
    return [Spec(self._shape, stride, self._dtype, self._dtype, self._device),
            Spec(self._shape, stride, int32, int32, self._device)]


op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", meta=KeptRule(_frexp_meta), nondiff=("exponent",),
   out=(Target("same", "torch.frexp() expects mantissa to have dtype {c_want} but got {c_got}"),
        Target("same", "torch.frexp() expects exponent to have int dtype but got {c_got}")),
   grad=dict(self=lambda g, exponent: g / exponent.exp2()))


# -- logistic and entropy -----------------------------------------------------------------------------------------
def _logit(self: Any, eps: float | None) -> Any:
    x = wide(self if self._dtype.is_inexact else self.to(DEFAULTS.dtype))
    if eps is not None:
        x = x.clamp(eps, 1 - eps)
    return narrow((x / (1 - x)).log(), self) if self._dtype.is_inexact else (x / (1 - x)).log()


def _logit_grad(g: Any, self: Any, eps: float | None) -> Any:
    slope = g / (self * (1 - self))
    if eps is None:
        return _where.call(((self < 0).logical_or(self > 1), math.nan, slope))
    return _where.call(((self < eps).logical_or(self > 1 - eps), 0.0, slope))


op("logit(Tensor self, float? eps=None) -> Tensor", meta=only(FLOATS, "logit_cpu", kind="float"), inplace="function",
   out=True, kernel=_logit, grad=dict(self=_logit_grad))


def _special(name: str, grad: Formula, kernel: Formula | None = None, accepts: int = FLOATS) -> Op:
    return op(f"special_{name}(Tensor self) -> Tensor", meta=only(accepts, f"{name}_cpu", kind="float"), out=True,
              grad=dict(self=grad), kernel=kernel, function=False, method=False)


def _as_float(self: Any) -> Any:
    return self if self._dtype.is_inexact else self.to(DEFAULTS.dtype)


def _entr(self: Any) -> Any:
    x = wide(_as_float(self))
    value = _where.call((x > 0, -x * x.log(), _where.call((x == 0, 0.0, -math.inf))))
    value = _where.call((x.isnan(), x, value))
    return narrow(value, self) if self._dtype.is_inexact else value


_special("entr", lambda g, self: g * (-self.log() - 1), _entr)


# -- the normal distribution --------------------------------------------------------------------------------------
def _ndtr(self: Any) -> Any:
    return ((_as_float(self) / _SQRT_2).erf() + 1) * 0.5


composite("special_ndtr(Tensor self) -> Tensor", _ndtr, out=True, function=False, method=False)
ERFCX: Op = _special("erfcx", lambda g, self, result: g * (2.0 * self * result - 2 / math.sqrt(math.pi)),
                     accepts=WIDE_FLOATS)
_special("log_ndtr", lambda g, self: g / ERFCX.call((self * -math.sqrt(0.5),)) * math.sqrt(2 / math.pi),
         accepts=WIDE_FLOATS)
_special("ndtri", lambda g, result: g * math.sqrt(2 * math.pi) * (result * result / 2).exp(), accepts=WIDE_FLOATS)


# -- Bessel functions ---------------------------------------------------------------------------------------------
I0: Op = function("i0", "i0_vml_cpu", lambda g, self: g * I1.call((self,)), FLOATS)
I0E: Op = _special("i0e", lambda g, self, result: g * (I1E.call((self,)) - self.sgn() * result))


def _near_zero(self: Any) -> tuple[Any, Any]:
    """Where a quotient by self is replaced by its limit, and self without those places."""
    small = self.abs() <= (2.0 ** -52 if self._dtype.itemsize == 8 else 2.0 ** -23)
    return small, self.masked_fill(small, 1.0)


def _i1_grad(g: Any, self: Any, result: Any) -> Any:
    small, x = _near_zero(self)
    return g * _where.call((small, 0.5, I0.call((x,)) - result / x))


def _i1e_grad(g: Any, self: Any, result: Any) -> Any:
    small, x = _near_zero(self)
    return g * _where.call((small, 0.5, I0E.call((x,)) - result * (x.sgn() + 1 / x)))


I1: Op = _special("i1", _i1_grad)
I1E: Op = _special("i1e", _i1e_grad)

PLAIN = ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
         "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
         "spherical_bessel_j0")
for _name in PLAIN:
    op(f"special_{_name}(Tensor self) -> Tensor", meta=only(WIDE_FLOATS, f"{_name}_cpu", kind="float"), out=True,
       nondifferentiable=True, function=False, method=False)

POLYNOMIALS = tuple(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw") + (
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")
for _name in POLYNOMIALS:
    op(f"special_{_name}(Tensor x, Tensor n) -> Tensor", out=True,
       meta=only(WIDE_FLOATS, f"{_name}_cpu", kind="float", pair="n"), numbers=("x", "n"),
       nondifferentiable=True, function=False, method=False)


# -- gamma functions ----------------------------------------------------------------------------------------------
def _igamma_slope(g: Any, self: Any, other: Any) -> Any:
    return g * ((self - 1) * other.log() - other - self.lgamma()).exp()


def _no_input(name: str, argument: str) -> Formula:
    def formula(g: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{argument}' is not implemented.")

    return formula


op("igamma(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "igamma_cpu"), inplace=True, out=True,
   grad=dict(self=_no_input("igamma", "igamma: input"), other=_igamma_slope))
op("igammac(Tensor self, Tensor other) -> Tensor", meta=only(FLOATS, "igammac_cpu"), inplace=True, out=True,
   grad=dict(self=_no_input("igammac", "igammac: input"),
             other=lambda g, self, other: -_igamma_slope(g, self, other)))


def _mvlgamma_meta(self: Any, p: int) -> Any:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if self.is_complex():
        raise NotImplementedError(f"\"mvlgamma_cpu\" not implemented for '{self._dtype.scalar_name}'")
    return like(self, None, None if self._dtype.is_inexact else DEFAULTS.dtype)


def _shifted(self: Any, p: int) -> Any:
    """self, self - 1/2, ..., self - (p - 1)/2 along a new last dimension."""
    from .. import arange

    x = _as_float(self)
    return arange(-p * 0.5 + 0.5, 0.5, 0.5, dtype=x._dtype, device=x._device) + x.unsqueeze(-1)


op("mvlgamma(Tensor self, int p) -> Tensor", meta=_mvlgamma_meta, inplace=True,
   out=Target("cast", "mvlgamma: result type {want} can't be cast to the desired output type {want}"),
   kernel=lambda self, p: _shifted(self, p).lgamma().sum(-1) + p * (p - 1) / 4.0 * math.log(math.pi),
   grad=dict(self=lambda g, self, p: g * _shifted(self, p).digamma().sum(-1)))


# -- two operands -------------------------------------------------------------------------------------------------
def _xlog1py_self(g: Any, self: Any, other: Any) -> Any:
    grad = XLOG1PY.call((g, other))
    if is_tensor(other):
        return grad.masked_fill((self == 0).logical_and(other <= -1), 0)
    return grad if other > -1 else grad.masked_fill(self == 0, 0)


def _numbered(base: str, order: tuple[int, int, int] = (0, 1, 2)) -> Any:
    """PyTorch numbers the nodes: two tensors, a number first, a number second."""
    def node(self: Any, other: Any) -> str:
        if not isinstance(self, TensorBase):
            return f"{base}Backward{order[1]}"
        return f"{base}Backward{order[0] if isinstance(other, TensorBase) else order[2]}"

    return node


def _xlog1py(self: Any, other: Any) -> Any:
    x, y = (wide(_as_float(v)) if is_tensor(v) else v for v in (self, other))
    x = x if is_tensor(x) else y.new_full(y._shape, x)
    y = y if is_tensor(y) else x.new_full(x._shape, y)
    value = _where.call((y.isnan(), math.nan, _where.call((x == 0, 0.0, x * y.log1p()))))
    dt = XLOG1PY.infer((self, other)).dtype
    return value.to(dt)


XLOG1PY: Op = op(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor", out=True,
    meta=only(FLOATS, "xlog1py_cpu", kind="float", pair="other"), numbers=("self", "other"), function=False,
    method=False, kernel=_xlog1py, node=_numbered("SpecialXlog1Py"),
    grad=dict(self=_xlog1py_self, other=lambda g, self, other: g * self / (other + 1)))
ZETA: Op = op(
    "special_zeta(Tensor self, Tensor other) -> Tensor", out=True,
    meta=only(WIDE_FLOATS, "zeta_cpu", kind="float", pair="other"), numbers=("self", "other"), function=False,
    method=False, node=_numbered("SpecialZeta"),
    grad=dict(self=_no_input("zeta", "zeta: self"),
              other=lambda g, self, other: times(g, -self * ZETA.call((self + 1.0, other)))))
