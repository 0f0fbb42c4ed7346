"""`torch.jit._recursive`: types of compiled modules. Nothing is compiled, so that none is known."""

from __future__ import annotations

from typing import Any


class ConcreteTypeStore:
    """The types of compiled modules, and whose methods were compiled: always empty."""

    def __init__(self) -> None:
        self.type_store: dict[type, list[Any]] = {}
        self.methods_compiled: set[Any] = set()


concrete_type_store = ConcreteTypeStore()
