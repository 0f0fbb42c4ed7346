"""`torch.ao`: pruning by masks; quantization by PyTorch's own tools is importable and not served."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["nn", "pruning", "quantization"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
