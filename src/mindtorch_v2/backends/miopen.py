"""`torch.backends.miopen`: there is no MIOpen; its flag is kept."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _flags
from ._flags import boolean, kept

_VALUES: dict[str, Any] = {"immediate": False}


def set_flags(_immediate: Any = None) -> tuple[bool]:
    """Set the flag unless None; returns what it was."""
    before = _VALUES["immediate"]
    if _immediate is not None:
        _VALUES["immediate"] = boolean("set_immediate_miopen")(_immediate)
    return (before,)


@contextmanager
def flags(immediate: bool = False) -> Iterator[None]:
    """The flag inside a block."""
    before = set_flags(immediate)
    try:
        yield
    finally:
        set_flags(before[0])


class MiopenModule(types.ModuleType):
    immediate = kept(_VALUES, "immediate", boolean("set_immediate_miopen"))


_flags.become(__name__, MiopenModule)
