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


def kept_rule(fn: Answer) -> Answer:
    """The same for a rule: it reads shape, strides, dtype and device of its first argument, a tensor, and plain numbers
    and tuples behind that."""
    answers: dict[Any, Any] = {}

    @wraps(fn)
    def ask(t: Any, *rest: Any) -> Any:
        key = (t._shape, t._stride, t._dtype, t._device, rest)
        try:
            found = answers.get(key)
        except TypeError:
            return fn(t, *rest)
        if found is None:
            found = fn(t, *rest)
            if len(answers) >= _MOST:
                answers.clear()
            answers[key] = found
        return found

    return ask  # type: ignore[return-value]
