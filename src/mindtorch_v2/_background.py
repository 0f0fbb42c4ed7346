"""Exceptions of other threads and processes, told here with their traceback; `torch._utils` has them by its name."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn


class KeyErrorMessage(str):
    """Text that a `KeyError` shows as it is; of other text it shows the `repr`."""

    __slots__ = ()
    __module__ = "mindtorch_v2._utils"

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """The type and the formatted traceback of an exception. The exception itself is not kept: it holds its frames."""

    __module__ = "mindtorch_v2._utils"

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type, where it can be made from a text, else a `RuntimeError`."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            made = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise made


def cpu_count() -> int | None:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
