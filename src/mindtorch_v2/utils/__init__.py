"""`torch.utils`: what is neither an operator nor a layer.

Invariant: submodules are imported when first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SUBMODULES = ("_mode_utils", "_python_dispatch", "_pytree", "checkpoint", "hooks")

_LAZY = {"swap_tensors": "_swap"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module("." + name, __name__)
    if name in _LAZY:
        return getattr(import_module("." + _LAZY[name], __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
