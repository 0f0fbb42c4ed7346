"""Enumerations that PyTorch has in C++: their members are numbers too.

Invariant: calling one takes one number or member, and never makes a new enumeration, as Python's would.
"""

from __future__ import annotations

import enum
from typing import Any


class _ByNumber(enum.EnumMeta):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.__members__:  # a base: this makes an enumeration, by the functional form
            return super().__call__(*args, **kwargs)
        given = (*args, *kwargs.values())
        if len(given) != 1 or (kwargs and "value" not in kwargs) or not isinstance(given[0], (int, enum.Enum)):
            shown = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                f"    1. torch._C.{cls.__name__}(value: typing.SupportsInt | typing.SupportsIndex)\n\n"
                f"Invoked with: {', '.join(shown)}"
            )
        return super().__call__(given[0])


class Numbered(enum.Enum, metaclass=_ByNumber):
    """An enumeration whose members can stand where a number can."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)
