"""Attributes that can be read only, and what PyTorch says of those who try to change them.

Invariant: reading costs what the getter costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def read_only(owner: str, name: str, getter: Callable[[Any], Any], deleter: Any = None) -> property:
    """A property of PyTorch's class `owner` that refuses to be set or deleted, in words of its own if it has them."""

    def refuse(self: Any, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of '{owner}' objects is not writable")

    return property(getter, refuse, deleter or refuse, getter.__doc__)


def seal(cls: type, owner: str) -> None:
    """Make every property of `cls` that has no setter say so as PyTorch's `owner` does."""
    for name, found in list(vars(cls).items()):
        if isinstance(found, property) and found.fset is None and found.fget is not None:
            setattr(cls, name, read_only(owner, name, found.fget, found.fdel))
