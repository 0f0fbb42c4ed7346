"""The operator tables: what is true of an operator on every device. One file per family; importing declares rows."""

from __future__ import annotations

from typing import Any

# What PyTorch has in its module of this name.
_OPERATORS = frozenset(("HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"))


def __getattr__(name: str) -> Any:
    if name in _OPERATORS:
        from .. import _operators

        return getattr(_operators, name)
    if name == "DispatchKey":
        from .._dispatch_keys import DispatchKey

        return DispatchKey
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
