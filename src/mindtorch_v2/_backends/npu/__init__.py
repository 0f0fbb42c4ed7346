"""Ascend NPUs through the vendor's C libraries.

Invariant: importing this loads no library and asks no device; the questions below never raise and never initialise
one. The backend's modules are imported when a tensor on `npu` is first wanted.
"""

from __future__ import annotations

from typing import Any

from ..._device import PINNING, PLACES, device
from ..._dispatch.keys import NPU
from ..._dispatch.op import LOADERS
from ..common.runtime import RUNTIMES, Runtime, runtime_replaced


def is_available() -> bool:
    """Whether an NPU can be used."""
    return device_count() > 0


def device_count() -> int:
    """How many NPUs can be used."""
    from . import probe

    return probe.device_count()


def aclnn_available() -> bool:
    """Whether the operator libraries can be loaded."""
    from . import probe

    return probe.aclnn_available()


def aclnn_symbols_ok() -> bool:
    """Whether every function the backend's table needs is found."""
    from . import probe

    return probe.aclnn_symbols_ok()


def start() -> None:
    """Initialise, and register the kernels and the real runtime, at the first use."""
    from .runtime import STATE, init

    init()
    with STATE.lock:
        # Other threads wait here until everything is registered; what registering itself asks for goes on.
        if int(NPU) not in LOADERS or STATE.loading:
            return
        STATE.loading = True
        try:
            from .device_runtime import NpuRuntime
            from .load import load_kernels

            load_kernels()
            RUNTIMES[int(NPU)] = NpuRuntime()
            runtime_replaced()
            del LOADERS[int(NPU)]
        finally:
            STATE.loading = False


def place(index: int | None) -> device:
    """The device that `npu` with or without an index means in this thread; hands over to the runtime's own answer."""
    from .runtime import placed

    PLACES["npu"] = placed
    return placed(index)


def pinned_memory(nbytes: int) -> Any:
    """A CPU storage in page-locked memory."""
    from .pinned import allocate

    return allocate(nbytes)


class Unused(Runtime):
    """Stands for the runtime until somebody wants memory."""

    def allocate(self, nbytes: int, dev: device) -> Any:
        start()
        return RUNTIMES[int(NPU)].allocate(nbytes, dev)


RUNTIMES[int(NPU)] = Unused()
LOADERS[int(NPU)] = start
PLACES["npu"] = place
PINNING.available = is_available
PINNING.allocate = pinned_memory
