"""Which modules a call runs through."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any


def trace_dependencies(callable: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]) -> list[str]:
    """The names of modules whose functions run when something is called with each of several inputs."""
    seen: set[str] = set()

    def note(frame: Any, event: str, arg: Any) -> None:
        name = frame.f_globals.get("__name__") if event == "call" else None
        if isinstance(name, str):
            seen.add(name)

    before = sys.getprofile()
    try:
        sys.setprofile(note)
        for given in inputs:
            callable(*given)
    finally:
        sys.setprofile(before)
    return list(seen)
