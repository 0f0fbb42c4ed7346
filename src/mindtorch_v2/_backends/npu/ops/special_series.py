"""NPU lines of special functions that are sums of a few terms: polynomials, tails of the normal distribution, zeta, K.

Invariant: terms are summed in float64, so that what cancels leaves a float32 whole; polynomials of tensors of degrees
ask the device once for the largest degree.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ...._dispatch import registry
from ...._dtype import DEFAULTS, dtype, float64
from ...._numbers import is_number
from ...._tensor_base import TensorBase, numel
from ..lines import npu, parts

_where = registry.get("where")
_pow = registry.get("pow")


def _result(*operands: Any) -> dtype:
    """The float that tensors and numbers promote to."""
    floats = [t._dtype for t in operands if isinstance(t, TensorBase) and t._dtype.is_floating_point]
    return max(floats, key=lambda dt: dt.itemsize) if floats else DEFAULTS.dtype


def _doubles(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands, one of which may be a number, as tensors of one shape."""
    home: Any = a if isinstance(a, TensorBase) else b
    x, y = (home.new_full((), t, dtype=float64) if is_number(t) else t.to(float64) for t in (a, b))
    return x + y * 0, y + x * 0


def _in_double(fn: Callable[[Any], Any]) -> Any:
    return parts(lambda self: fn(self.to(float64)).to(_result(self)))


def asymptotic(x: Any, order: int, sign: int) -> Any:
    """The series of the Bessel functions I (sign -1) and K (sign 1) far out, without their exponentials and roots."""
    total = part = x.new_ones(x._shape)
    for k in range(1, 12):
        part = part * (sign * (4 * order * order - (2 * k - 1) ** 2)) / (x * (8 * k))
        total = total + part
    return total


# -- orthogonal polynomials -------------------------------------------------------------------------------------------
# The polynomial of degree one, and that of degree k from the two before it.
_Step = Callable[[int, Any, Any, Any], Any]
_CHEBYSHEV: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x, "u": lambda x: x * 2, "v": lambda x: x * 2 - 1, "w": lambda x: x * 2 + 1}
_KINDS: dict[str, tuple[Callable[[Any], Any], _Step]] = {
    **{f"chebyshev_polynomial_{kind}": (first, lambda k, x, p, q: x * 2 * p - q)
       for kind, first in _CHEBYSHEV.items()},
    "hermite_polynomial_h": (lambda x: x * 2, lambda k, x, p, q: x * 2 * p - q * (2 * (k - 1))),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, p, q: x * p - q * (k - 1)),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda k, x, p, q: ((2 * k - 1 - x) * p - q * (k - 1)) / k),
    "legendre_polynomial_p": (lambda x: x, lambda k, x, p, q: (x * p * (2 * k - 1) - q * (k - 1)) / k),
}


# Each degree is several launches.
_FAR = 16384


def _polynomial(first: Callable[[Any], Any], step: _Step, shifted: bool) -> Any:
    def kernel(x: Any, n: Any) -> Any:
        dt = _result(x, n)
        at, degree = _doubles(x, n)
        degree = degree.trunc()
        if shifted:
            at = at * 2 - 1
        if not numel(at):
            return at.to(dt)
        if is_number(n) and not math.isfinite(n):
            return at.new_zeros(at._shape).to(dt)  # PyTorch counts from the lowest int that there is
        most = int(n) if is_number(n) else int(degree.nan_to_num(0.0, 0.0, 0.0).amax().item())
        if most > _FAR:
            raise NotImplementedError(f"orthogonal polynomials of degree {most} on npu: at most {_FAR} is computed")
        before, here = at * 0 + 1, first(at)
        found = _where.call((degree < 0, 0.0, _where.call((degree == 0, before, here))))
        for k in range(2, most + 1):
            before, here = here, step(k, at, here, before)
            found = _where.call((degree == k, here, found))
        return found.to(dt)

    return parts(kernel)


for _name, (_first, _step) in _KINDS.items():
    npu(f"special_{_name}", _polynomial(_first, _step, False))
    if _name.startswith("chebyshev"):
        npu(f"special_shifted_{_name}", _polynomial(_first, _step, True))


# -- tails of the normal distribution ---------------------------------------------------------------------------------
_FAR_ENOUGH = 10.0


def _scaled_tail(x: Any) -> Any:
    """exp(x^2) erfc(x): a product while both factors are numbers, then the asymptotic series."""
    a = x.abs()
    near = a.clamp(max=_FAR_ENOUGH)
    far = a.clamp(min=_FAR_ENOUGH)
    square = far * far * 2
    total = part = far.new_ones(far._shape)
    for k in range(1, 12):
        part = part * -(2 * k - 1) / square
        total = total + part
    upper = _where.call((a < _FAR_ENOUGH, (near * near).exp() * near.erfc(), total / (far * math.sqrt(math.pi))))
    return _where.call((x < 0, (x * x).exp() * 2 - upper, upper))


def _log_ndtr(x: Any) -> Any:
    low = (_scaled_tail(x.clamp(max=-1.0) * -math.sqrt(0.5)) * 0.5).log() - x * x * 0.5
    high = (x.clamp(min=-1.0) * math.sqrt(0.5)).erfc() * -0.5
    return _where.call((x < -1, low, high.log1p()))


# Acklam's rational approximations of the quantile, in the middle and in the tail; Halley's steps make them exact.
_MIDDLE = ((-3.969683028665376e+01, 2.209460984245205e+02, -2.759285104469687e+02, 1.383577518672690e+02,
            -3.066479806614716e+01, 2.506628277459239e+00),
           (-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
            -1.328068155288572e+01, 1.0))
_TAIL = ((-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00, -2.549732539343734e+00,
          4.374664141464968e+00, 2.938163982698783e+00),
         (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1.0))


def _rational(x: Any, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    above, below = (x * 0 + terms[0] for terms in coefficients)
    for c in coefficients[0][1:]:
        above = above * x + c
    for c in coefficients[1][1:]:
        below = below * x + c
    return above / below


def _ndtri(p: Any) -> Any:
    # The half below the median; the other is its mirror image.
    small = _where.call((p > 0.5, 1 - p, p))
    inside = small.clamp(1e-300, 0.5)
    off = inside - 0.5
    start = _where.call((inside < 0.02425, _rational((inside.log() * -2).sqrt(), _TAIL),
                         off * _rational(off * off, _MIDDLE)))
    for _ in range(2):
        error = (start * -math.sqrt(0.5)).erfc() * 0.5 - inside
        slope = error * math.sqrt(2 * math.pi) * (start * start * 0.5).exp()
        start = start - slope / (start * slope * 0.5 + 1)
    found = _where.call((p > 0.5, -start, start))
    found = _where.call((p == 0, -math.inf, _where.call((p == 1, math.inf, found))))
    return _where.call(((p >= 0).logical_and(p <= 1), found, math.nan))


npu("special_erfcx", _in_double(_scaled_tail))
npu("special_log_ndtr", _in_double(_log_ndtr))
npu("special_ndtri", _in_double(_ndtri))

# -- zeta -------------------------------------------------------------------------------------------------------------
# The first terms, and Euler and Maclaurin's expansion of the rest: Bernoulli numbers over factorials.
_TERMS = 24
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def _zeta(self: Any, other: Any) -> Any:
    dt = _result(self, other)
    x, q = _doubles(self, other)
    total: Any = None
    for k in range(_TERMS):
        term = _pow.call((q + k, -x))
        total = term if total is None else total + term
    end = q + _TERMS
    last = _pow.call((end, -x))
    total = total + last * end / (x - 1) + last * 0.5
    factor, power = x, last / end
    for k, b in enumerate(_BERNOULLI):
        total = total + factor * power * b
        factor = factor * (x + (2 * k + 1)) * (x + (2 * k + 2))
        power = power / (end * end)
    pole = (q <= 0).logical_and(q == q.floor())
    torn = (q <= 0).logical_and(x != x.floor())
    total = _where.call((pole, math.inf, _where.call((torn, math.nan, total))))
    return _where.call((x == 1, math.inf, _where.call((x < 1, math.nan, total)))).to(dt)


npu("special_zeta", parts(_zeta))

# -- Bessel functions that are sums -----------------------------------------------------------------------------------
# K_n(x) exp(x) is the integral of exp(-x (cosh t - 1)) cosh(n t) over t > 0: a sum over steps of that width has no
# error that could be seen; below _SMALL and above _LARGE the first terms of the series there say the same.
_STEP, _STEPS, _SMALL, _LARGE = 0.125, 96, 1e-2, 25.0
_EULER = 0.57721566490153286061


def _k(x: Any, order: int) -> Any:
    return _scaled_k(x, order) * (-x).exp()


def _scaled_k(x: Any, order: int) -> Any:
    a, far = x.clamp(_SMALL, _LARGE), x.clamp(min=_LARGE)
    total: Any = None
    for k in range(_STEPS):
        t = k * _STEP
        part = (a * -(math.cosh(t) - 1)).exp() * ((0.5 if k == 0 else 1.0) * math.cosh(order * t) * _STEP)
        total = part if total is None else total + part
    low = x.clamp(1e-300, _SMALL)
    square, logarithm = low * low * 0.25, (low * 0.5).log() + _EULER
    if order == 0:
        series = -logarithm * (square * (square * 0.25 + 1) + 1) + square * (square * 0.375 + 1)
    else:
        series = 1 / low + low * 0.5 * (logarithm * (square * 0.5 + 1) - 0.5 - square * 0.625)
    beyond = asymptotic(far, order, 1) * (math.pi / 2 / far).sqrt()
    found = _where.call((x < _SMALL, series * low.exp(), _where.call((x > _LARGE, beyond, total))))
    return _where.call((x == 0, math.inf, _where.call((x < 0, math.nan, found))))


for _order in (0, 1):
    npu(f"special_scaled_modified_bessel_k{_order}", _in_double(partial(_scaled_k, order=_order)))
    npu(f"special_modified_bessel_k{_order}", _in_double(partial(_k, order=_order)))


def _spherical(x: Any) -> Any:
    """sin(x) / x, which is nothing far away."""
    away = _where.call((x == 0, 1.0, x))
    return _where.call((x == 0, 1.0, _where.call((x.isinf(), 0.0, away.sin() / away))))


npu("special_spherical_bessel_j0", _in_double(_spherical))
