"""`torch.autograd.Variable`, PyTorch's old name of a tensor that takes part in autograd.

Invariant: nothing is ever an instance of this class; making one gives a tensor, and every tensor counts as one.
"""

from __future__ import annotations

from typing import Any

from .._autograd.engine import queue_callback
from .._tensor_base import TensorBase, alias

__all__ = ["Variable"]


class _Engine:
    """What other code expects of PyTorch's engine object."""

    def queue_callback(self, callback: Any) -> None:
        """Run `callback()` when the backward pass this thread is in has ended."""
        queue_callback(callback)


class VariableMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TensorBase)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad)` is a tensor over the same memory."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False) -> Any:
        if data is None:
            import mindtorch_v2 as torch

            data = torch.empty(0)
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made: Any = alias(data, data._shape, data._stride, data._offset)
        made.requires_grad = requires_grad
        return made
