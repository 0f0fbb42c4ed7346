"""What is built on graphs; its modules are loaded when first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = frozenset(("_config", "const_fold", "proxy_tensor", "rewriter", "symbolic_shapes"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
