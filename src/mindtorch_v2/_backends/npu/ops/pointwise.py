"""NPU lines of the pointwise operators.

Invariant: what has no vendor function, or not for every dtype, is composed of operators that run on the device.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dtype import bool as bool_
from ...._dtype import float32, float64
from ...._finfo import finfo
from ...._ops.composites.formulas import common, narrow, pair, wide
from ...._tensor_base import TensorBase, is_contiguous, numel
from ..lines import accepts_dtype, call, choose, fused, helper, line, npu, parts, with_fallback

_where = registry.get("where")
_complex = registry.get("complex")
_xlogy = registry.get("xlogy")

# -- arithmetic -----------------------------------------------------------------------------------------------------
npu("add", "aclnnAdd(self, other, alpha, out)", numbers=dict(other="aclnnAdds(self, other, alpha, out)"))
npu("sub", "aclnnSub(self, other, alpha, out)",
    numbers=dict(other="aclnnSubs(self, other, alpha, out)", self="aclnnRsubs(other, self, alpha, out)"))
npu("rsub", "aclnnRsub(self, other, alpha, out)", numbers=dict(other="aclnnRsubs(self, other, alpha, out)"))
npu("mul", "aclnnMul(self, other, out)",
    numbers=dict(other="aclnnMuls(self, other, out)", self="aclnnMuls(other, self, out)"))
npu("div", "aclnnDiv(self, other, out)", numbers=dict(other="aclnnDivs(self, other, out)"))
npu("div.Tensor_mode", choose("rounding_mode", {
    None: line("aclnnDiv(self, other, out)", numbers=dict(other="aclnnDivs(self, other, out)")),
    "trunc": line("aclnnDivMod(self, other, 1, out)", numbers=dict(other="aclnnDivMods(self, other, 1, out)")),
    "floor": line("aclnnDivMod(self, other, 2, out)", numbers=dict(other="aclnnDivMods(self, other, 2, out)")),
}))
npu("floor_divide", "aclnnDivMod(self, other, 2, out)", numbers=dict(other="aclnnDivMods(self, other, 2, out)"))
npu("remainder", "aclnnRemainderTensorTensor(self, other, out)", numbers=dict(
    other="aclnnRemainderTensorScalar(self, other, out)", self="aclnnRemainderScalarTensor(self, other, out)"))
npu("fmod", "aclnnFmodTensor(self, other, out)", numbers=dict(other="aclnnFmodScalar(self, other, out)"),
    expand=("self",))
npu("pow", "aclnnPowTensorTensor(self, exponent, out)", numbers=dict(
    exponent="aclnnPowTensorScalar(self, exponent, out)", self="aclnnPowScalarTensor(self, exponent, out)"))
npu("square", "aclnnMul(self, self, out)", inplace=False)
npu("neg", "aclnnNeg(self, out)")
npu("abs", "aclnnAbs(self, out)", otherwise=parts(lambda self: self.real.square().add(self.imag.square()).sqrt()))
npu("_abs_real", "aclnnAbs(self, out)")


def _sign(self: Any) -> Any:
    if self.dtype.is_complex:
        size = self.abs()
        return _where.call((size == 0, self, self / size))
    return (self > 0).to(self.dtype) - (self < 0).to(self.dtype) if not self.dtype.is_bool else self.clone()


npu("sign", "aclnnSign(self, out)", absent=parts(_sign))
npu("sgn", "aclnnSign(self, out)", absent=parts(_sign))
npu("addcmul", "aclnnAddcmul(self, tensor1, tensor2, value, out)",
    otherwise=parts(lambda self, tensor1, tensor2, value: self + tensor1 * tensor2 * value))
npu("addcdiv", "aclnnAddcdiv(self, tensor1, tensor2, value, out)",
    otherwise=parts(lambda self, tensor1, tensor2, value: self + tensor1 / tensor2 * value))
npu("lerp", "aclnnLerp(self, end, weight, out)", numbers=dict(weight="aclnnLerps(self, end, weight, out)"),
    cast=("self", "end", "weight"), otherwise=parts(lambda self, end, weight: self + (end - self) * weight))

# -- functions of one operand ---------------------------------------------------------------------------------------
for _name in ("reciprocal", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "erf", "erfc", "lgamma", "digamma", "round"):
    npu(_name, f"aclnn{_name.capitalize()}(self, out)")


# Inverse functions of complex numbers by Kahan's formulas, which are exact about the sides of their cuts.
def _cross(a: Any, b: Any) -> tuple[Any, Any]:
    """Real and imaginary part of the product of conj(a) and b."""
    return a.real * b.real + a.imag * b.imag, a.real * b.imag - a.imag * b.real


def _asin(self: Any) -> Any:
    less, more = (1 - self).sqrt(), (self + 1).sqrt()
    real = self.real.atan2(less.real * more.real - less.imag * more.imag)
    return _complex.call((real, _cross(less, more)[1].asinh()))


def _acos(self: Any) -> Any:
    less, more = (1 - self).sqrt(), (self + 1).sqrt()
    return _complex.call((less.real.atan2(more.real) * 2, _cross(more, less)[1].asinh()))


def _acosh(self: Any) -> Any:
    less, more = (self - 1).sqrt(), (self + 1).sqrt()
    return _complex.call((_cross(less, more)[0].asinh(), less.imag.atan2(more.real) * 2))


def _atanh(self: Any) -> Any:
    return ((self + 1).log() - (1 - self).log()) * 0.5


def _turned(fn: Any) -> Any:
    """-i fn(i z)."""

    def kernel(self: Any) -> Any:
        found = fn(_complex.call((-self.imag, self.real)))
        return _complex.call((found.imag, -found.real))

    return kernel


for _name, _fn in (("asin", _asin), ("acos", _acos), ("acosh", _acosh), ("atanh", _atanh), ("asinh", _turned(_asin)),
                   ("atan", _turned(_atanh))):
    npu(_name, f"aclnn{_name.capitalize()}(self, out)", otherwise=parts(_fn))


def _erfinv(self: Any) -> Any:
    """Halley's steps from the answer in float32, on the complement where the function itself is too flat."""
    size = self.abs()
    rest = 1 - size
    start = size.clamp_max(0.9999).to(float32).erfinv().to(float64)
    y = _where.call((size < 0.9999, start, (-(rest * math.sqrt(math.pi)).log()).clamp_min(1).sqrt()))
    for _ in range(6):
        error = _where.call((size < 0.5, y.erf() - size, rest - y.erfc()))
        step = error * (math.sqrt(math.pi) / 2) * (y * y).exp()
        y = y - step / (y * step + 1)
    y = _where.call((rest == 0, math.inf, _where.call((rest < 0, math.nan, y))))
    return _where.call((self < 0, -y, y))


npu("erfinv", "aclnnErfinv(self, out)", otherwise=parts(_erfinv))
npu("exp", "aclnnExp(self, out)", absent=parts(lambda self: math.e ** (self if self.dtype.is_inexact
                                                                      else self.to(float32))))
npu("log", "aclnnLog(self, out)", absent=parts(lambda self: _xlogy.call((1, self))))
npu("log2", "aclnnLog2(self, out)", absent=parts(lambda self: self.log() / math.log(2)))


def _expm1(self: Any) -> Any:
    if self.dtype.is_complex:
        return self.exp() - 1
    # Near zero the difference cancels; the quotient does not.
    half = (self * 0.5).tanh()
    return _where.call((self > 1, self.exp() - 1, half * 2 / (1 - half)))


npu("expm1", "aclnnExpm1(self, out)", otherwise=parts(_expm1))
npu("exp2", "aclnnExp2(self, out)", otherwise=parts(lambda self: (self * math.log(2)).exp()))
npu("log10", "aclnnLog10(self, out)", absent=parts(lambda self: self.log() / math.log(10)))
npu("log1p", "aclnnLog1p(self, out)", otherwise=parts(lambda self: (self + 1).log()))
npu("cosh", "aclnnCosh(self, out)", otherwise=parts(lambda self: (self.exp() + (-self).exp()) * 0.5))
npu("sinc", "aclnnSinc(self, out)", otherwise=parts(
    lambda self: _where.call((self == 0, 1, (self * math.pi).sin() / (self * math.pi)))))


def _trigamma(self: Any) -> Any:
    """The reflection and the series PyTorch has, so that both err alike near the poles."""
    x = wide(self)
    reflected = x < 0.5
    sine = (x * math.pi).sin()
    start = _where.call((reflected, (sine * sine).reciprocal() * -math.pi ** 2, 0.0))
    x = _where.call((reflected, 1 - x, x))
    for _ in range(6):
        start = start + (x * x).reciprocal()
        x = x + 1
    z = (x * x).reciprocal()
    total = start + (1 + x.reciprocal() * 0.5 + z * (1 / 6 - z * (1 / 30 - z * (1 / 42)))) / x
    return narrow(_where.call((reflected, -total, total)), self)


# B(2k) / (2k)!, the coefficients of Euler's and Maclaurin's sum.
_EULER_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
_SHIFTS = 10


def _hurwitz(s: int, a: Any) -> Any:
    """The sum of (a + k) ** -s over all k, for positive a."""
    total = a.pow(-s)
    for k in range(1, _SHIFTS):
        total = total + (a + k).pow(-s)
    a = a + _SHIFTS
    total = total + a.pow(1 - s) / (s - 1) + a.pow(-s) * 0.5
    rising = float(s)
    for k, c in enumerate(_EULER_MACLAURIN):
        total = total + a.pow(-s - 2 * k - 1) * (rising * c)
        rising *= (s + 2 * k + 1) * (s + 2 * k + 2)
    return total


def _cotangent_derivative(n: int) -> list[float]:
    """The n-th derivative of the cotangent as a polynomial in the cotangent, lowest power first."""
    p = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            p[k] -= c
            p[k + 2] -= c
    return p


# The largest number whose factorial is a finite double.
_MOST_FACTORS = 170


def _higher_polygamma(n: int, self: Any) -> Any:
    """By the sum where it converges, and by reflection below."""
    x = self.to(float64)
    if n > _MOST_FACTORS:
        # n! is infinite, so the result is wherever the sum, of which the first term is left, is not zero.
        return (x.abs().pow(-float(n + 1)) * (math.inf if n % 2 else -math.inf)).to(self.dtype)
    low = x < 0.5
    above = _hurwitz(n + 1, _where.call((low, 1 - x, x))) * ((-1) ** (n + 1) * float(math.factorial(n)))
    cotangent = (x * math.pi).tan().reciprocal()
    slope: Any = 0.0
    for c in reversed(_cotangent_derivative(n)):
        slope = cotangent * slope + c
    below = above * (-1) ** n - slope * math.pi ** (n + 1)
    pole = (x <= 0).logical_and(x == x.floor())
    below = _where.call((pole, math.inf * (-1) ** (n + 1), below))
    return _where.call((low, below, above)).to(self.dtype)


def _polygamma(n: int, self: Any) -> Any:
    if not self.dtype.is_inexact:
        self = self.to(float32)
    return self.digamma() if n == 0 else _trigamma(self) if n == 1 else _higher_polygamma(n, self)


npu("polygamma", parts(_polygamma))


# -- rounding: integers are whole already ---------------------------------------------------------------------------
def _trunc(self: Any) -> Any:
    return self.clone() if not self.dtype.is_inexact else _where.call((self < 0, self.ceil(), self.floor()))


npu("ceil", "aclnnCeil(self, out)", otherwise=parts(lambda self: self.clone()))
npu("floor", "aclnnFloor(self, out)", otherwise=parts(lambda self: self.clone()))
npu("trunc", "aclnnTrunc(self, out)", otherwise=parts(_trunc))
npu("frac", "aclnnFrac(self, out)", otherwise=parts(lambda self: self - self.trunc()))


# -- functions of two operands --------------------------------------------------------------------------------------
def _hypot(self: Any, other: Any) -> Any:
    a, b = pair(self, other)
    a, b = a.abs(), b.abs()
    large, small = a.maximum(b), a.minimum(b)
    ratio = _where.call((large == small, 1.0, small / large))
    grown = large * (ratio * ratio + 1).sqrt()
    return narrow(_where.call(((large == 0).logical_or(large == math.inf), large, grown)), self, other)


def _fmax(self: Any, other: Any) -> Any:
    return _where.call((self.isnan(), other, _where.call((other.isnan(), self, self.maximum(other)))))


def _fmin(self: Any, other: Any) -> Any:
    return _where.call((self.isnan(), other, _where.call((other.isnan(), self, self.minimum(other)))))


def _copysign(self: Any, other: Any) -> Any:
    size = (self if self.dtype.is_inexact else self.to(float32)).abs()
    if isinstance(other, TensorBase):
        if other._dtype.is_inexact:
            size = size.to(common(size, other))
        negative: Any = other
        return _where.call((negative.signbit(), -size, size))
    return -size if math.copysign(1, other) < 0 else size


npu("atan2", "aclnnAtan2(self, other, out)")
npu("hypot", parts(_hypot))
npu("xlogy", "aclnnXLogYTensor(self, other, out)",
    numbers=dict(other="aclnnXLogYScalarOther(self, other, out)", self="aclnnXLogYScalarSelf(self, other, out)"))
npu("logaddexp", "aclnnLogAddExp(self, other, out)")
npu("logaddexp2", "aclnnLogAddExp2(self, other, out)")
npu("maximum", "aclnnMaximum(self, other, out)")
npu("minimum", "aclnnMinimum(self, other, out)")
npu("fmax", parts(_fmax))
npu("fmin", parts(_fmin))
npu("copysign", parts(_copysign))


# -- bounds ---------------------------------------------------------------------------------------------------------
def _bounded(self: Any, min: Any, max: Any) -> Any:
    low = self if min is None else self.clamp_min(min)
    return low if max is None else low.clamp_max(max)


def _bounds(self: Any, min: Any, max: Any) -> str:
    if isinstance(min, TensorBase) or isinstance(max, TensorBase):
        return "one" if min is None or max is None else "tensors"
    return "numbers"


npu("clamp", choose(_bounds, {
    "numbers": line("aclnnClamp(self, min, max, out)", otherwise=parts(_bounded)),
    "tensors": line("aclnnClampTensor(self, min, max, out)", cast=("self", "min", "max"), otherwise=parts(_bounded)),
    "one": parts(_bounded)}))
npu("clamp_min", "aclnnMaximum(self, min, out)", numbers=dict(min="aclnnClampMin(self, min, out)"))
npu("clamp_max", "aclnnMinimum(self, max, out)", numbers=dict(max="aclnnClampMax(self, max, out)"))

# -- comparison and predicates --------------------------------------------------------------------------------------
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _vendor = _name.capitalize()
    npu(_name, f"aclnn{_vendor}Tensor(self, other, out)",
        numbers=dict(other=f"aclnn{_vendor}Scalar(self, other, out)"))
npu("isnan", "aclnnNeTensor(self, self, out)")


def _isinf(self: Any) -> Any:
    if self.dtype.is_complex:
        return self.real.isinf().logical_or(self.imag.isinf())
    return self.abs() == math.inf if self.dtype.is_floating_point else self != self


npu("isinf", "aclnnIsInf(self, out)", absent=parts(_isinf))
with_fallback("isposinf", "aclnnIsPosInf(self, out)")
with_fallback("isneginf", "aclnnIsNegInf(self, out)")


def _isfinite(self: Any) -> Any:
    if self.dtype.is_complex:
        return self.real.isfinite().logical_and(self.imag.isfinite())
    return self == self


npu("isfinite", "aclnnIsFinite(self, out)", otherwise=parts(_isfinite))
npu("signbit", "aclnnSignbit(self, out)")


def _close_fits(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    return (self._dtype is other._dtype and self._dtype.is_floating_point and accepts_dtype("aclnnIsClose", self)
            and self._shape == other._shape and is_contiguous(self) and is_contiguous(other) and numel(self) > 0
            and len(self._shape) <= 8 and rtol >= 0 and atol >= 0)


def _close(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    out = self.new_empty(self._shape, dtype=bool_)
    call("aclnnIsClose", "isclose", self, other, rtol, atol, equal_nan, out)
    return out


def _equal(self: Any, other: Any) -> bool:
    if self._shape != other._shape:
        return False
    out = self.new_empty((1,), dtype=bool_)
    call("aclnnEqual", "equal", self, other, out)
    return bool(out.item())


npu("isclose", fused(("aclnnIsClose",), _close_fits, _close))
npu("equal", fused(("aclnnEqual",), lambda self, other: (
    self._dtype is other._dtype and self._device == other._device and len(self._shape) <= 8 and numel(self) > 0
    and accepts_dtype("aclnnEqual", self)), _equal))

# -- logic and bits -------------------------------------------------------------------------------------------------
npu("logical_and", "aclnnLogicalAnd(self, other, out)")
npu("logical_or", "aclnnLogicalOr(self, other, out)")
npu("logical_xor", "aclnnLogicalXor(self, other, out)")
npu("logical_not", "aclnnLogicalNot(self, out)", otherwise=parts(lambda self: self == 0))
for _name in ("and", "or", "xor"):
    _vendor = _name.capitalize()
    npu(f"bitwise_{_name}", f"aclnnBitwise{_vendor}Tensor(self, other, out)", numbers=dict(
        other=f"aclnnBitwise{_vendor}Scalar(self, other, out)", self=f"aclnnBitwise{_vendor}Scalar(other, self, out)"))
npu("bitwise_not", "aclnnBitwiseNot(self, out)")
for _name in ("bitwise_left_shift", "lshift"):
    npu(_name, "aclnnLeftShift(self, other, out)", numbers=dict(other="aclnnLeftShifts(self, other, out)"),
        absent=parts(lambda self, other: self * 2 ** other))
for _name in ("bitwise_right_shift", "rshift"):
    npu(_name, "aclnnRightShift(self, other, out)", expand=("self",),
        absent=parts(lambda self, other: self // 2 ** other))

# -- selection ------------------------------------------------------------------------------------------------------
npu("where", "aclnnSWhere(condition, self, other, out)", cast=("self", "other"))
npu("masked_fill", "aclnnSWhere(mask, value, self, out)", cast=("value", "self"),
    numbers=dict(value="aclnnSWhere(mask, value, self, out)"),
    inplace={"": "aclnnInplaceMaskedFillTensor(self, mask, value)",
             "value": "aclnnInplaceMaskedFillScalar(self, mask, value)"})


# -- numbers that are none ------------------------------------------------------------------------------------------
@helper
def number_or(value: Any, default: float) -> float:
    return default if value is None else float(value)


@helper
def largest(self: Any, value: Any) -> float:
    """What stands for infinity: the given number, or the largest the dtype has."""
    if value is not None:
        return float(value)
    return float(finfo(self._dtype).max) if self._dtype.is_floating_point else 0.0


@helper
def smallest(self: Any, value: Any) -> float:
    return float(value) if value is not None else -largest(self, None)


def _nan_to_num(self: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if not self.dtype.is_floating_point:
        return self.clone()
    above = _where.call((self == math.inf, largest(self, posinf), self))
    below = _where.call((self == -math.inf, smallest(self, neginf), above))
    return _where.call((self.isnan(), number_or(nan, 0.0), below))


npu("nan_to_num", "aclnnNanToNum(self, number_or(nan, 0.0), largest(self, posinf), smallest(self, neginf), out)",
    cast=("self",), absent=parts(_nan_to_num))


# -- complex numbers ------------------------------------------------------------------------------------------------
def _conj(self: Any) -> Any:
    return _complex.call((self.real, -self.imag)) if self.dtype.is_complex else self.clone()


def _angle(self: Any) -> Any:
    if self.dtype.is_complex:
        return self.imag.atan2(self.real)
    dt = self.dtype if self.dtype.is_floating_point else float32
    return _where.call((self.isnan(), self, (self < 0).to(dt) * math.pi))


npu("_conj_physical", parts(_conj))
npu("angle", "aclnnAngleV2(self, out)", absent=parts(_angle))
