"""Functions that move tensors between devices and back in the backward pass, by the names of PyTorch's module.

Invariant: what moves is recorded, so the way back is that of the operators; there is no second rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from . import comm
from .scatter_gather import _joined


class Broadcast:
    """Copies of tensors on every device; the gradient is the sum of the copies' gradients."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        if any(tensor.device.type == "cpu" for tensor in inputs):
            raise AssertionError("Broadcast function not implemented for CPU tensors")
        copies = comm.broadcast_coalesced(inputs, [comm.device_index(d, True) for d in target_gpus]) if inputs else ()
        return tuple(tensor for group in copies for tensor in group)


class Scatter:
    """Parts of a tensor on several devices."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], chunk_sizes: Any, dim: int, input: Tensor) -> tuple[Tensor, ...]:
        return tuple(comm.scatter(input, [comm.device_index(d, True) for d in target_gpus], chunk_sizes, dim))


class Gather:
    """Tensors of several devices put together on one."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Tensor) -> Tensor:
        return _joined(inputs, target_device, dim)


class ReduceAddCoalesced:
    """Sums over devices: `num_inputs` tensors of each, on the first one's device."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Tensor) -> tuple[Tensor, ...]:
        groups = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return tuple(comm.reduce_add_coalesced(groups, destination))
