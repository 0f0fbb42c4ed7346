"""Exponents of `logspace`, on any device.

Invariant: both ends and their difference are rounded to the dtype, as in PyTorch, and nothing else: a power shows it.
"""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch import registry
from ..._dtype import complex128, float64, int64


def exponents(start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:
    """From both ends towards the middle, in the widest dtype."""
    place = registry.get("arange").call((0, steps, 1, int64, None, device, False))
    first, last = (place.new_full((), value, dtype=dtype) for value in (start, end))
    wide = complex128 if dtype.is_complex else float64
    step = (last - first).to(wide) / max(steps - 1, 1)
    low, high = place.to(wide) * step + first, last - (steps - 1 - place).to(wide) * step
    return registry.get("where").call((place < steps // 2, low, high))


def one(base: float, start: Any, like: Any) -> Any:
    """The only power there is; a number that the dtype does not hold is refused."""
    return like.new_full(like._shape, power(base, start))


def power(base: float, exponent: Any) -> Any:
    """As C computes it, which refuses nothing."""
    if isinstance(exponent, complex):
        return base**exponent
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.nan if base else math.inf
