"""Copies of a module on several devices.

Invariant: what a replica computes with are copies that remember where they came from, so that gradients add up in the
module; on the module's own device they share its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..modules import Module
from . import comm

__all__ = ["replicate"]

T = TypeVar("T", bound=Module)


def replicate(network: T, devices: Sequence[Any], detach: bool = False) -> list[T]:
    """One copy for each device. With `detach` no gradients flow back."""
    indices = [comm.device_index(device, True) for device in devices]
    modules = list(network.modules())
    tensors: list[Any] = [*network.parameters(), *network.buffers()]
    if any(tensor.device.type == "cpu" for tensor in tensors) and indices:
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    return [_replica(modules, tensors, index, detach) for index in indices]


def _replica(modules: list[Any], tensors: list[Any], index: int, detach: bool) -> Any:
    copies = {module: module._replicate_for_data_parallel() for module in modules}
    moved: dict[Any, Any] = {}
    for tensor in tensors:
        follows = tensor.requires_grad and not detach
        moved[tensor] = comm.copy_to(tensor if follows else tensor.detach(), index)
    for module, replica in copies.items():
        replica._former_parameters = {}
        for name, child in module._modules.items():
            replica._modules[name] = None if child is None else copies[child]
        for name, parameter in module._parameters.items():
            if parameter is None:
                replica._parameters[name] = None
            else:
                # No parameter any more, but the result of a copy: a plain attribute.
                object.__setattr__(replica, name, moved[parameter])
                replica._former_parameters[name] = moved[parameter]
        for name, buffer in module._buffers.items():
            replica._buffers[name] = None if buffer is None else moved[buffer]
    return copies[modules[0]]
