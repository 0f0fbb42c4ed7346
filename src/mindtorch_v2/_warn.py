"""Warnings of operators, at the line of the user who called them.

Invariant: the place a warning names is outside this package, so that Python's filters, which count by place, see the
user's lines.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SAID: set[str] = set()
# Whether what is said once is said every time: `torch.set_warn_always`.
ALWAYS = [False]
TO_SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


def _inside(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith((_PACKAGE, "<torch."))


def place() -> str:
    """File and line of the user who called into the package."""
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and _inside(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "an unknown place"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called into the package. Compiled functions have no frame, and are not counted."""
    level = 1
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and _inside(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


def warn_once(text: str, category: type[Warning] = UserWarning, subject: str = "") -> None:
    """Warn the first time only, as PyTorch does of what is slow or will change; `subject` where texts differ."""
    key = subject or text
    if key not in _SAID or ALWAYS[0]:
        _SAID.add(key)
        warn(text, category)
