"""`torch._functorch`: the transforms of `torch.func` where PyTorch has them, those of `functorch`, and settings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Modules that PyTorch has loaded with itself.
_MODULES = frozenset(
    "aot_autograd apis autograd_function config deprecated eager_transforms make_functional utils vmap".split()
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
