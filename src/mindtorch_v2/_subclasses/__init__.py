"""Tensor subclasses that stand for tensors without values."""

from __future__ import annotations

from .cross_reference import CrossRefFakeMode
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
