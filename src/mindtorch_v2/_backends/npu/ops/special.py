"""NPU lines of special functions; whatever is a composition needs none.

Invariant: what is made of the bits of numbers is exact, whatever the device makes of the smallest of them.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dtype import dtype, int16, int32, int64
from ...._ops.composites.formulas import common, narrow, wide
from ...._ops.rules.pointwise import broadcast_shapes
from ..lines import choose, helper, line, npu, parts, with_fallback
from . import special_gamma, special_waves  # noqa: F401
from .special_series import asymptotic

npu("gcd", "aclnnGcd(self, other, out)")
with_fallback("heaviside", "aclnnHeaviside(self, values, out)", expand=("self", "values"))


@helper
def clipped(eps: float | None) -> float:
    """A negative bound is none."""
    return -1.0 if eps is None else eps


# Whoever clips at less than nothing gets what the row makes of it.
_logit = registry.get("logit").row.fallback
npu("logit", choose(lambda self, eps: eps is not None and eps < 0, {
    False: line("aclnnLogit(self, clipped(eps), out)", absent=_logit), True: _logit}))


# -- bits -------------------------------------------------------------------------------------------------------------
_where = registry.get("where")
# The integers of the same width, how many bits a mantissa has, and what is added to an exponent.
_FORMS: dict[str, tuple[dtype, int, int]] = {
    "float16": (int16, 10, 15), "bfloat16": (int16, 7, 127), "float32": (int32, 23, 127), "float64": (int64, 52, 1023),
}


def _nextafter(self: Any, other: Any) -> Any:
    shape, dt = broadcast_shapes(self._shape, other._shape), common(self, other)
    place = (other if self._device.type == "cpu" else self)._device
    x, y = (t.to(place, dt).expand(shape).contiguous() for t in (self, other))
    whole = _FORMS[x._dtype.name][0]
    bits = x.view(whole)
    # Away from zero the bits of a number grow.
    moved = _where.call(((x > 0) == (y > x), bits + 1, bits - 1)).view(x._dtype)
    one = bits * 0 + 1
    least = _where.call((y > 0, one, one - 2 ** (8 * x._dtype.itemsize - 1))).view(x._dtype)
    found = _where.call((x == y, y, _where.call((x == 0, least, moved))))
    return _where.call((x.isnan().logical_or(y.isnan()), x + y, found))


def _frexp(self: Any) -> Any:
    if self._dtype.name not in _FORMS:
        raise NotImplementedError(f"\"frexp_npu\" not implemented for '{self._dtype.scalar_name}'")
    whole, length, bias = _FORMS[self._dtype.name]
    # The smallest numbers have no exponent of their own: they are made larger first.
    small = self.abs() < 2.0 ** (1 - bias)
    x = _where.call((small, self * 2.0 ** (length + 1), self)).contiguous()
    bits, field = x.view(whole), 2 * bias + 1
    exponent = (bits >> length).bitwise_and(field)
    plain = self.isfinite().logical_and(self != 0)
    mantissa = (bits.bitwise_and(~(field << length)) + ((bias - 1) << length)).view(x._dtype)
    found = exponent.to(int32) - (bias - 1) - small.to(int32) * (length + 1)
    return _where.call((plain, mantissa, self)), _where.call((plain, found, 0)).to(int32)


npu("nextafter", parts(_nextafter))
npu("frexp.Tensor", parts(_frexp))

# -- modified Bessel functions ----------------------------------------------------------------------------------------
# I_n(x) is the mean of exp(x cos t) cos(n t) over a circle, and a sum over that many points of it has no error that
# could be seen while x is below _FAR; beyond, the asymptotic series has none.
_POINTS, _FAR = 64, 50.0


def _on_circle(x: Any, order: int) -> Any:
    """exp(-x) I_n(x)"""
    total: Any = None
    for k in range(_POINTS // 2 + 1):
        angle = 2 * math.pi * k / _POINTS
        weight = (1 if k in (0, _POINTS // 2) else 2) * math.cos(order * angle) / _POINTS
        part = (x * (math.cos(angle) - 1)).exp() * weight
        total = part if total is None else total + part
    return total


def _scaled_i(self: Any, order: int) -> Any:
    a = self.abs()
    near, far = a.clamp(max=_FAR), a.clamp(min=_FAR)
    beyond = asymptotic(far, order, -1) / (far * (2 * math.pi)).sqrt()
    found = _where.call((a <= _FAR, _on_circle(near, order), beyond))
    if order == 0:
        return found
    # Near zero the terms of the mean cancel.
    half = a.clamp(max=1.0) * 0.5
    square, term, series = half * half, half, half
    for k in range(1, 9):
        term = term * square / (k * (k + 1))
        series = series + term
    return _where.call((a < 1, series * (-a).exp(), found)) * self.sign()


def _bessel(order: int, scaled: bool) -> Any:
    def kernel(self: Any) -> Any:
        x = wide(self if self._dtype.is_inexact else self.float())
        found = _scaled_i(x, order)
        if not scaled:
            found = found * x.abs().exp()
        return narrow(found, self) if self._dtype.is_inexact else found

    return parts(kernel)


for _order in (0, 1):
    npu(f"special_i{_order}e", _bessel(_order, True))
    npu(f"special_modified_bessel_i{_order}", _bessel(_order, False))
npu("i0", _bessel(0, False))
npu("special_i1", _bessel(1, False))
