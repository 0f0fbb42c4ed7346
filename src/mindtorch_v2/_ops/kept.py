"""Answers that are kept: functions of sizes alone, asked again with the same sizes at every call of a layer.

Invariant: only functions of plain numbers and tuples that read nothing else are kept; what raises is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

Answer = TypeVar("Answer", bound=Callable[..., Any])
_MOST = 512


def kept(fn: Answer) -> Answer:
    """A function whose last answers are remembered; symbols among the sizes have no hash and are asked every time."""
    known = lru_cache(_MOST)(fn)

    @wraps(fn)
    def ask(*args: Any) -> Any:
        try:
            return known(*args)
        except TypeError:
            return fn(*args)

    return ask  # type: ignore[return-value]
