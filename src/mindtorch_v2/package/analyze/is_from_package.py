"""Whether something came from an archive."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._mangling import is_mangled


def is_from_package(obj: Any) -> bool:
    """Whether a module, or the class of an object, was loaded from an archive."""
    return is_mangled(obj.__name__ if type(obj) is ModuleType else type(obj).__module__)
