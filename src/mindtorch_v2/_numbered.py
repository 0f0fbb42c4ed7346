"""Enumerations that PyTorch has in C++: their members are numbers too.

Invariant: calling one takes one number or member, and never makes a new enumeration, as Python's would.
"""

from __future__ import annotations

import enum
from typing import Any


class _ByNumber(enum.EnumMeta):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if len(given) != 1 or (kwargs and "value" not in kwargs) or not isinstance(given[0], (int, enum.Enum)):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                f"    1. {cls.__name__}(value: int)"
            )
        return super().__call__(given[0])


class Numbered(enum.Enum, metaclass=_ByNumber):
    """An enumeration whose members can stand where a number can."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)
