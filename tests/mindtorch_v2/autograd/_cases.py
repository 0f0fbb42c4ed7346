"""Cases: functions of the library whose outcome is the same for both.

Invariant: a case is known by its name, and each name is used once in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[Any], Any]


class Cases(dict[str, Case]):
    """By name; used as a decorator."""

    def __call__(self, fn: Case) -> Case:
        assert fn.__name__ not in self
        self[fn.__name__] = fn
        return fn
