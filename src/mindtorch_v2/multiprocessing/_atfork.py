"""Work for a forked child, before anything else runs in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["register_after_fork"]


def register_after_fork(func: Callable[[], Any]) -> None:
    """Call `func` in every child that is forked from now on."""
    os.register_at_fork(after_in_child=func)
