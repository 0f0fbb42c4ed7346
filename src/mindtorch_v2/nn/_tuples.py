"""One value for every spatial dimension, or one for each: PyTorch's `nn.modules.utils._ntuple`.

Invariant: nothing is refused here; what the values must be is said by the operator that gets them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def each(value: Any, count: int) -> tuple[Any, ...]:
    """The values of something that can be iterated over, or `count` times the one value."""
    if type(value) is int:
        return (value,) * count
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


def single(value: Any) -> tuple[Any, ...]:
    return each(value, 1)


def pair(value: Any) -> tuple[Any, ...]:
    return each(value, 2)


def triple(value: Any) -> tuple[Any, ...]:
    return each(value, 3)


def quadruple(value: Any) -> tuple[Any, ...]:
    return each(value, 4)
