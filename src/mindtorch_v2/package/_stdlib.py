"""Which modules belong to Python."""

from __future__ import annotations

import sys


def is_stdlib_module(module: str) -> bool:
    """Whether a module is of Python's standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names
