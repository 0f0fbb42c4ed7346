"""`torch.SymInt`, `SymFloat`, `SymBool`: numbers that a tracer does not know yet. Nothing traces here, so that no value
is one; the classes are there for `isinstance` and annotations.
"""

from __future__ import annotations

from typing import Any


class _Symbol:
    """A number behind a tracer's node."""

    __module__ = "torch"

    def __init__(self, node: Any) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)


class SymInt(_Symbol):
    """An integer that a tracer does not know yet."""

    __module__ = "torch"


class SymFloat(_Symbol):
    """A float that a tracer does not know yet."""

    __module__ = "torch"


class SymBool(_Symbol):
    """A truth value that a tracer does not know yet."""

    __module__ = "torch"
