"""NPU lines of the incomplete gamma functions and of Airy's function.

P(a, x) and Q(a, x) = 1 - P: by the power series in x, by the continued fraction where x is beyond a, and for large `a`
by Gauss's quadrature of the integral from x outwards. Ai(x): by its series near zero, by its integral over a decaying
wave to the right, and by the asymptotic series far to the left.

Invariant: terms are summed in float64, and the smaller of P and Q is the one that is computed.
"""
from __future__ import annotations

import math
from functools import cache
from typing import Any

from ...._dispatch import registry
from ...._dtype import DEFAULTS, float64
from ...._ops.composites.formulas import common
from ...._ops.rules.pointwise import broadcast_shapes
from ..lines import npu, parts

_where = registry.get("where")
# From this `a` on the integral is taken; terms of the series and steps of the fraction below it.
_LARGE, _TERMS, _STEPS, _NODES = 30.0, 160, 120, 32


@cache
def _quadrature() -> tuple[tuple[float, float], ...]:
    """Places and weights between 0 and 1."""
    from numpy.polynomial.legendre import leggauss

    return tuple(((float(x) + 1) / 2, float(w) / 2) for x, w in zip(*leggauss(_NODES)))


def _series(a: Any, x: Any) -> Any:
    """P(a, x) / (x^a e^-x / Gamma(a + 1))"""
    term = x * 0 + 1
    total = term
    for n in range(1, _TERMS):
        term = term * x / (a + n)
        total = total + term
    return total


def _fraction(a: Any, x: Any) -> Any:
    """Q(a, x) / (x^a e^-x / Gamma(a)), from its end."""
    tail = x * 0
    for n in range(_STEPS, 0, -1):
        tail = (a - n) * n / (x + (2 * n + 1) - a + tail)
    return 1 / (x + 1 - a + tail)


def _near_zero(a: Any, x: Any) -> Any:
    """Q(a, x) for small x, where 1 - P would lose it."""
    term = x * 0 + 1
    total = x * 0
    for n in range(1, 30):
        term = term * -x / n
        total = total + term / (a + n)
    power = a * x.log() - (a + 1).lgamma()
    return -power.expm1() - power.exp() * a * total


def _integral(a: Any, x: Any) -> tuple[Any, Any]:
    """(P, Q) for large `a`: the density from x towards its nearer end, as far as there is any of it."""
    top = a - 1
    width = top.sqrt()
    right = x > top
    above = _where.call((top + 11.5 * width > x + 6 * width, top + 11.5 * width, x + 6 * width))
    below = _where.call((top - 7.5 * width < x - 5 * width, top - 7.5 * width, x - 5 * width)).clamp(min=0)
    end = _where.call((right, above, below))
    total = x * 0
    for place, weight in _quadrature():
        u = (x + (end - x) * place - top) / top
        total = total + ((u.log1p() - u) * top).exp() * weight
    # Stirling: top ** top exp(-top) / Gamma(top + 1)
    inverse = 1 / (top * top)
    stirling = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / top
    part = (total * (end - x)).abs() * (-stirling).exp() / (top * (2 * math.pi)).sqrt()
    return _where.call((right, 1 - part, part)), _where.call((right, part, 1 - part))


def _both(a: Any, x: Any) -> tuple[Any, Any]:
    """(P, Q) of positive finite numbers."""
    small = a.clamp(max=_LARGE)
    near = x.clamp(max=80.0)
    log_factor = small * x.log() - x - (small + 1).lgamma()
    lower = log_factor.exp() * _series(small, near)
    beyond = x > small + 1
    far = _where.call((beyond, x, small + 2))
    upper = log_factor.exp() * small * _fraction(small, far)
    little = x < 1.5
    direct = _near_zero(small, _where.call((little, x, little * 0 + 1.0)))
    beyond = beyond.logical_and(little.logical_not())
    P = _where.call((beyond, 1 - upper, lower))
    Q = _where.call((beyond, upper, _where.call((little.logical_and(direct < 0.5), direct, 1 - lower))))
    large = a > _LARGE
    wide_P, wide_Q = _integral(_where.call((large, a, large * 0 + 2 * _LARGE)), x)
    return _where.call((large, wide_P, P)), _where.call((large, wide_Q, Q))


def _incomplete(upper: bool) -> Any:
    def kernel(self: Any, other: Any) -> Any:
        shape = broadcast_shapes(self._shape, other._shape)
        a, x = (t.to(float64).expand(shape) for t in (self, other))
        inside = (a > 0).logical_and(x > 0).logical_and(a < math.inf).logical_and(x < math.inf)
        P, Q = _both(_where.call((inside, a, 1.0)), _where.call((inside, x, 1.0)))
        found = _where.call((inside, Q if upper else P, math.nan))
        # The edges: nothing of the density lies below zero, and all of it at zero where a is zero.
        above = (a <= 0).logical_not()
        none = (x == 0).logical_and(above).logical_or((a == math.inf).logical_and((x < 0).logical_not()))
        every = (a == 0).logical_and(x > 0).logical_or((x == math.inf).logical_and(above))
        found = _where.call((none, 1.0 if upper else 0.0, found))
        found = _where.call((every, 0.0 if upper else 1.0, found))
        return _where.call((none.logical_and(every), math.nan, found)).to(common(self, other))

    return parts(kernel)


npu("igamma", _incomplete(False))
npu("igammac", _incomplete(True))

# -- Airy's function --------------------------------------------------------------------------------------------------
# Ai and its slope at zero.
_AT_ZERO, _SLOPE = 0.355028053887817239, 0.258819403792806798
_LEFT, _RIGHT, _NOTHING = -7.5, 1.0, 103.892
_STEP, _REACH = 0.125, 56


def _airy_series(x: Any) -> Any:
    cube = x * x * x
    even, odd = x * 0 + 1, x
    first, second = even, odd
    for k in range(1, 60):
        even = even * cube / (3 * k * (3 * k - 1))
        odd = odd * cube / (3 * k * (3 * k + 1))
        first, second = first + even, second + odd
    return first * _AT_ZERO - second * _SLOPE


def _airy_right(x: Any) -> Any:
    """exp(-2/3 x^1.5) / pi times the integral of exp(-sqrt(x) t^2) cos(t^3 / 3)."""
    root = x.sqrt()
    total = x * 0 + 0.5
    for k in range(1, _REACH):
        t = k * _STEP
        total = total + (root * (-t * t)).exp() * math.cos(t**3 / 3)
    return total * (x * root * (-2 / 3)).exp() * (_STEP / math.pi)


def _airy_left(x: Any) -> Any:
    """The asymptotic series of waves, at -x."""
    angle = x * x.sqrt() * (2 / 3)
    even, odd, part = x * 0 + 1, x * 0, x * 0 + 1
    for k in range(1, 14):
        part = part * ((6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1))) / angle
        sign = (-1) ** (k // 2)
        if k % 2:
            odd = odd + part * sign
        else:
            even = even + part * sign
    phase = angle + math.pi / 4
    return (phase.sin() * even - phase.cos() * odd) / (x.sqrt().sqrt() * math.sqrt(math.pi))


def _airy(self: Any) -> Any:
    x = self.to(float64)
    left, right = x < _LEFT, x > _RIGHT
    found = _where.call((right, _airy_right(x.clamp(_RIGHT, _NOTHING)), _airy_series(x.clamp(_LEFT, _RIGHT))))
    found = _where.call((left, _airy_left((-x).clamp(min=-_LEFT)), found))
    found = _where.call((x > _NOTHING, 0.0, found))
    found = _where.call((x.abs() < math.inf, found, math.nan))
    return found.to(self._dtype if self._dtype.is_floating_point else DEFAULTS.dtype)


npu("special_airy_ai", parts(_airy))
