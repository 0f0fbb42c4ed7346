"""Neural network building blocks: `Module`, `Parameter`, layers, losses and initialisers, as in PyTorch.

Invariant: a module holds state and plumbing only; every number is computed by an operator of the dispatch table.
"""

from __future__ import annotations as _annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from . import functional, init, modules, parameter
from .modules import *  # noqa: F403 - the layers are named once, in modules.__all__
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "parameter"]
__all__ += modules.__all__

# Loaded when first used.
_LATE = ("utils",)


def __getattr__(name: str) -> _Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
