"""How a module of references finds its functions: they are the operators themselves, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def finder(module: str, names: str, *homes: Callable[[], Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a module of references: each of `names` is found in the first home that has it."""
    known = frozenset(names.split())

    def find(name: str) -> Any:
        if name in known:
            for home in homes:
                found = getattr(home(), name, None)
                if found is not None:
                    return found
        raise AttributeError(f"module 'torch.{module}' has no attribute '{name}'")

    return find
