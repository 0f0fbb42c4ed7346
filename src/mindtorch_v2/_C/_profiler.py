"""`torch._C._profiler`: what PyTorch's profiler has in C++."""

from __future__ import annotations

from typing import Any

from .._profiler import names as _names
from .._unserved import offer as _offer

_offer(
    __name__,
    "",
    "_EventType _ExtraFields_Allocation _ExtraFields_Backend _ExtraFields_Kineto _ExtraFields_OutOfMemory "
    "_ExtraFields_PyCCall _ExtraFields_PyCall _ExtraFields_TorchOp _ExtraFields_Vulkan _NNModuleInfo _OptimizerInfo "
    "_ProfilerEvent _PyFrameState _TensorMetadata",
    "{name}: records of a profile are not kept as a tree of events here; prof.events() has them",
)


def __getattr__(name: str) -> Any:
    return getattr(_names, name)
