"""`torch._C._autograd`: saved values and the profiler, under the name of PyTorch's C++ module."""

from __future__ import annotations

from typing import Any

from .._autograd import names as _names


def __getattr__(name: str) -> Any:
    return getattr(_names, name)
