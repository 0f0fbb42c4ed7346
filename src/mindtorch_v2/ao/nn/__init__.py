"""`torch.ao.nn`: modules of quantized models are not served; their names can be imported."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
