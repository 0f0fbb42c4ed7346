"""What the core asks of a device, answered by the NPU's modules."""

from __future__ import annotations

from typing import Any

from ..._device import device
from ..._tensor_base import TensorBase
from ..common.runtime import Runtime
from . import creation, memory, write_back
from .runtime import current_device


class NpuRuntime(Runtime):
    """Memory and copies on NPUs."""

    def allocate(self, nbytes: int, dev: device) -> Any:
        given = dev.index
        return memory.allocate(nbytes, current_device() if given is None else given)

    def copy(self, dst: TensorBase, src: TensorBase) -> None:
        creation.copy(dst, src)

    def fill(self, dst: TensorBase, value: Any) -> None:
        creation.fill(dst, value)

    def write_back(self, dst: TensorBase, src: TensorBase, op: str) -> None:
        write_back.write_back(dst, src, op)
