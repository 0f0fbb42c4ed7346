"""`torch.utils._import_utils`: which optional packages are installed."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether a module of this name could be imported; it is not."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


@functools.lru_cache
def dill_available() -> bool:
    """Whether `dill` can be imported and is new enough."""
    return _check_module_exists("dill")


@functools.lru_cache
def import_dill() -> ModuleType | None:
    """`dill`, if it is installed; it does not take over pickling by being imported."""
    if not dill_available():
        return None
    from importlib import import_module

    dill = import_module("dill")
    dill.extend(use_dill=False)
    return dill
