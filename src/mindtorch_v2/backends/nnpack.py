"""`torch.backends.nnpack`: there is no NNPACK; its flag is kept."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _flags
from ._flags import boolean, kept

__all__ = ["flags", "is_available", "set_flags"]

_VALUES: dict[str, Any] = {"enabled": True}


def is_available() -> bool:
    return False


def set_flags(_enabled: Any) -> tuple[bool]:
    """Set the flag; returns what it was."""
    before = _VALUES["enabled"]
    _VALUES["enabled"] = boolean("set_enabled_NNPACK")(_enabled)
    return (before,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """The flag inside a block."""
    before = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before[0])


class NnpackModule(types.ModuleType):
    enabled = kept(_VALUES, "enabled", boolean("set_enabled_NNPACK"))


_flags.become(__name__, NnpackModule)
