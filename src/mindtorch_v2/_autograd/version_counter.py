"""Version counters: how often the memory behind a tensor was written in place.

Invariant: a base, its views and its detached aliases share one counter, so a write through any of them is seen by all.
"""

from typing import final

from .._mypyc import i64


@final
class VersionCounter:
    """The shared count of in-place writes."""

    value: i64

    def __init__(self, value: i64 = 0) -> None:
        self.value = value

    def bump(self) -> None:
        self.value += 1

    def __repr__(self) -> str:
        return f"VersionCounter(value={self.value})"
