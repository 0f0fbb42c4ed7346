"""Exponents of `logspace`, on any device.

Invariant: what PyTorch rounds to the dtype (both ends and the step) is rounded, and nothing else: a power shows it.
"""

from __future__ import annotations

from typing import Any

from ..._dispatch import registry
from ..._dtype import float32, int64


def exponents(start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:
    """From both ends towards the middle."""
    place = registry.get("arange").call((0, steps, 1, int64, None, device, False))
    first, last = (place.new_full((), value, dtype=dtype) for value in (start, end))
    step = (last - first) / max(steps - 1, 1)
    if dtype.itemsize == 2:
        dtype = float32
    first, last, step = (t.to(dtype) for t in (first, last, step))
    low, high = place.to(dtype) * step + first, last - (steps - 1 - place).to(dtype) * step
    return registry.get("where").call((place < steps // 2, low, high))


def one(value: Any, like: Any) -> Any:
    """The only power there is; a number that the dtype does not hold is refused."""
    return like.new_full(like._shape, value)
