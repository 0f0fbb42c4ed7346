"""NPU lines of the Bessel functions J and Y.

J_n(x) is a mean of cos(x sin t) or sin(x sin t) over a circle, weighted with a wave in t; Y_n is J_n with a logarithm
and a sum of J_k (Neumann's series), so a mean with other weights. The weights are numbers known beforehand.

Invariant: terms are summed in float64; far out, where waves in t would be too short for the points, the asymptotic
series serves.
"""
from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...._dispatch import registry
from ...._dtype import DEFAULTS, float64
from ..lines import npu, parts

_where = registry.get("where")
_EULER = 0.57721566490153286061
# Points of the circle, orders of Neumann's series, and where the asymptotic series takes over.
_POINTS, _ORDERS, _FAR = 256, 60, 50.0


def _wave(order: int, t: float) -> float:
    return math.sin(order * t) if order % 2 else math.cos(order * t)


def _neumann(order: int, t: float) -> float:
    """The weights of the sum of J_k in Y_n."""
    total = 0.0
    for k in range(1, _ORDERS + 1):
        scale = (2 * k + order) / (k * (k + order))
        total += (-1) ** k * scale * _wave(2 * k + order, t)
    return total


def _means(x: Any, order: int, with_y: bool) -> tuple[Any, Any]:
    """J_n(x), and the sum in Y_n(x). A quarter of the circle is enough: the others repeat it."""
    first: Any = 0.0
    second: Any = 0.0
    for k in range(_POINTS // 4 + 1):
        t = 2 * math.pi * k / _POINTS
        share = (2 if k in (0, _POINTS // 4) else 4) / _POINTS
        angle = x * math.sin(t)
        term = angle.sin() if order % 2 else angle.cos()
        first = term * (share * _wave(order, t)) + first
        if with_y:
            second = term * (share * _neumann(order, t)) + second
    return first, second


def _far_out(x: Any, order: int, second: bool) -> Any:
    even, odd, part = x.new_ones(x._shape), x.new_zeros(x._shape), x.new_ones(x._shape)
    for k in range(1, 12):
        part = part * (4 * order * order - (2 * k - 1) ** 2) / (x * (8 * k))
        sign = (-1) ** (k // 2)
        if k % 2:
            odd = odd + part * sign
        else:
            even = even + part * sign
    phase = x - (order / 2 + 0.25) * math.pi
    waves = even * phase.sin() + odd * phase.cos() if second else even * phase.cos() - odd * phase.sin()
    return waves * (2 / math.pi / x).sqrt()


def _j(self: Any, order: int) -> Any:
    a = self.to(float64).abs()
    near = _means(a.clamp(max=_FAR), order, False)[0]
    found = _where.call((a <= _FAR, near, _far_out(a.clamp(min=_FAR), order, False)))
    if order % 2:
        found = _where.call((self < 0, -found, found))
    return found.to(self._dtype if self._dtype.is_floating_point else DEFAULTS.dtype)


def _y(self: Any, order: int) -> Any:
    x = self.to(float64)
    low = x.clamp(1e-300, _FAR)
    first, rest = _means(low, order, True)
    near = ((low * 0.5).log() + (_EULER - order)) * first - rest
    if order:
        near = near - _means(low, 0, False)[0] / low
    near = near * (2 / math.pi)
    found = _where.call((x <= _FAR, near, _far_out(x.clamp(min=_FAR), order, True)))
    found = _where.call((x == 0, -math.inf, _where.call((x < 0, math.nan, found))))
    found = _where.call((x.isnan(), x, found))
    return found.to(self._dtype if self._dtype.is_floating_point else DEFAULTS.dtype)


for _order in (0, 1):
    npu(f"special_bessel_j{_order}", parts(partial(_j, order=_order)))
    npu(f"special_bessel_y{_order}", parts(partial(_y, order=_order)))
