"""`DataParallel`: a module that splits its input over several NPUs.

Invariant: where there is no NPU, the module is called as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import mindtorch_v2 as torch

from ..modules import Module
from . import comm
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


def _devices(device_ids: Sequence[Any] | None, output_device: Any) -> tuple[list[int], int]:
    """The numbers of the devices, all if none are given, and where the result goes."""
    count = torch.npu.device_count()
    if device_ids is None:
        device_ids = range(count)
    if output_device is None:
        output_device = device_ids[0]
    numbers: list[int] = []
    for device in device_ids:  # the first that does not exist ends it, however many follow
        number = comm.device_index(device, True)
        if number >= count:
            raise AssertionError("Invalid device id")
        numbers.append(number)
    return numbers, comm.device_index(output_device, True)


def _check_place(module: Module, source: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"DataParallel expected a torch.nn.Module, but got {type(module).__name__}")
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.device != source:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {source} (device_ids[0]) but found one of "
                f"them on device: {tensor.device}"
            )


class DataParallel(Module, Generic[T]):
    """Calls replicas of a module on several NPUs with parts of the input, and joins what they return."""

    def __init__(
        self, module: T, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if not torch.npu.is_available():
            self.module = module
            self.device_ids: list[int] = []
            return
        self.dim = dim
        self.module = module
        self.device_ids, self.output_device = _devices(device_ids, output_device)
        self.src_device_obj = comm.place(self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        parts, options = self.scatter(inputs, kwargs, self.device_ids)
        if not parts and not options:
            # A module without inputs runs once, on the first device.
            parts, options = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **options[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, options), self.output_device)

    def replicate(self, module: T, device_ids: Sequence[Any]) -> list[T]:
        return replicate(module, device_ids, not torch.is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[T], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """`DataParallel` for a single call."""
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    if not torch.npu.is_available():
        raise RuntimeError("device type could not be determined")
    indices, output = _devices(device_ids, output_device)
    _check_place(module, comm.place(indices[0]))
    parts, options = scatter_kwargs(inputs, module_kwargs, indices, dim)
    if not parts and not options:
        parts, options = ((),), ({},)
    if len(indices) == 1:
        return module(*parts[0], **options[0])
    used = indices[: len(parts)]
    return gather(parallel_apply(replicate(module, used), parts, options, used), output, dim)
