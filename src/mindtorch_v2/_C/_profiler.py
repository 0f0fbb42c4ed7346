"""`torch._C._profiler`: what PyTorch's profiler has in C++."""

from __future__ import annotations

from typing import Any

from .._profiler import names as _names


def __getattr__(name: str) -> Any:
    return getattr(_names, name)
