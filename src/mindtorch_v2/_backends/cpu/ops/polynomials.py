"""Orthogonal polynomials of degrees that no recurrence reaches.

Invariant: Chebyshev's are exact; the others are asymptotic, right to the precision that such a degree leaves.
"""

from __future__ import annotations

from typing import Any


def far_polynomial(kind: str, x: Any, n: Any) -> Any:
    """The polynomial of large degree `n` at `x`; what no double holds is NaN, as the recurrence would end."""
    import numpy

    if kind in ("h", "he"):
        return numpy.full_like(x, numpy.nan)
    value = _laguerre(x, n) if kind == "l" else _legendre(x, n) if kind == "p" else _chebyshev(kind, x, n)
    return numpy.where(numpy.isfinite(value), value, numpy.nan)


def _chebyshev(kind: str, x: Any, n: Any) -> Any:
    """By angles inside [-1, 1] and by hyperbolic ones outside; at -x the kinds v and w change places."""
    import numpy

    sign = numpy.where((x < 0) & (n % 2 == 1), -1.0, 1.0)
    size = numpy.abs(x)
    inside = size < 1
    a = numpy.where(inside, numpy.arccos(numpy.minimum(size, 1.0)), numpy.arccosh(numpy.maximum(size, 1.0)))

    def even(k: Any) -> Any:
        return numpy.where(inside, numpy.cos(k * a), numpy.cosh(k * a))

    def odd(k: Any) -> Any:
        return numpy.where(inside, numpy.sin(k * a), numpy.sinh(k * a))

    if kind == "t":
        return sign * even(n)
    if kind == "u":
        return sign * numpy.where(size == 1, n + 1, odd(n + 1) / odd(1.0))
    third = even(n + 0.5) / even(0.5)
    fourth = numpy.where(size == 1, 2 * n + 1, odd(n + 0.5) / odd(0.5))
    return sign * numpy.where((x < 0) == (kind == "v"), fourth, third)


def _legendre(x: Any, n: Any) -> Any:
    import numpy

    a = numpy.arccos(numpy.clip(x, -1.0, 1.0))
    wave = numpy.sqrt(2 / (numpy.pi * n * numpy.sin(a))) * numpy.cos((n + 0.5) * a - numpy.pi / 4)
    ends = numpy.where((x < 0) & (n % 2 == 1), -1.0, 1.0)
    return numpy.where(numpy.abs(x) < 1, wave, numpy.where(numpy.abs(x) == 1, ends, numpy.nan))


def _laguerre(x: Any, n: Any) -> Any:
    import numpy

    r = numpy.sqrt(n * numpy.abs(x))
    front = numpy.exp(x / 2) / numpy.sqrt(numpy.pi * r)
    wave = front * numpy.cos(2 * r - numpy.pi / 4)
    return numpy.where(x > 0, wave, numpy.where(x == 0, 1.0, front * numpy.exp(2 * r) / 2))
