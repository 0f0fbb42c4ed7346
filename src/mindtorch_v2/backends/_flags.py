"""Flags of `torch.backends`: modules whose attributes are checked when they are set, and can be frozen.

Invariant: a flag that means nothing here is kept and given back; none changes what is computed without saying so.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Frozen:
    """Whether flags may only be changed by a `flags()` block."""

    on = False


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called."""
    return Frozen.on


def disable_global_flags() -> None:
    """From now on flags are changed by `flags()` blocks alone."""
    Frozen.on = True


@contextmanager
def bracketed() -> Iterator[None]:
    """Inside, flags may be changed."""
    before, Frozen.on = Frozen.on, False
    try:
        yield
    finally:
        Frozen.on = before


def boolean(name: str) -> Callable[[Any], Any]:
    """A check of what a flag is set to, in PyTorch's words for its setter."""

    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")
        return value

    return check


class Flag:
    """An attribute of a module in `torch.backends`: one that only can be read has no check."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], None] | None = None) -> None:
        self.get, self.put, self.name = get, put, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"torch.backends.{owner.__name__.removesuffix('Module').lower()}.{name}"

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self.get()

    def __set__(self, module: Any, value: Any) -> None:
        if Frozen.on:
            raise RuntimeError(
                f"not allowed to set {self.name} flags after disable_global_flags; please use flags() context manager "
                "instead"
            )
        if self.put is None:
            raise RuntimeError(f"{self.name} is a constant here: what it would switch does not exist")
        self.put(value)


def kept(values: dict[str, Any], name: str, check: Callable[[Any], Any] | None = None) -> Flag:
    """A flag that is kept in `values`."""

    def put(value: Any) -> None:
        values[name] = value if check is None else check(value)

    return Flag(lambda: values[name], put)


def become(name: str, cls: type[types.ModuleType]) -> None:
    """Give a module the flags of a class. `m` is PyTorch's name of the module that its flags stand in front of."""
    module: Any = sys.modules[name]
    module.__class__ = cls
    module.m = module
