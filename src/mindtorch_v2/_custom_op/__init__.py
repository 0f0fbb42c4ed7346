"""`torch._custom_op`: the older way to operators from outside; `torch.library.custom_op` is the newer one."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """PyTorch's modules are there without being imported by name."""
    if name in ("autograd", "impl"):
        from importlib import import_module

        return import_module("." + name, __package__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
