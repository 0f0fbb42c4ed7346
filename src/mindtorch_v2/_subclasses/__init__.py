"""Tensor subclasses that stand for tensors without values."""

from __future__ import annotations

from typing import Any

from .fake_tensor import DynamicOutputShapeException as DynamicOutputShapeException
from .fake_tensor import FakeTensor as FakeTensor
from .fake_tensor import FakeTensorMode as FakeTensorMode
from .fake_tensor import UnsupportedFakeTensorException as UnsupportedFakeTensorException

__all__ = [
    "CrossRefFakeMode",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]


class CrossRefFakeMode:
    """PyTorch's check of its fake tensors against real ones; refused: here shapes come from one rule for both."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("CrossRefFakeMode: real and fake tensors take their shapes from the same rules here")
