"""Private names of `torch.cuda` that other packages use of a device's module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._backends.npu import runtime as _runtime
from .._random import accelerator_generator as _accelerator_generator

__all__ = [
    "_DeviceGuard", "_exchange_device", "_get_device_index", "_get_generator", "_get_rng_state_offset",
    "_is_compiled", "_is_in_bad_fork", "_lazy_call", "_lazy_init", "_maybe_exchange_device", "_set_rng_state_offset",
]  # fmt: skip


def _lazy_init() -> None:
    _runtime.init()


def _lazy_call(callable: Callable[[], object], **kwargs: Any) -> None:
    """Called at once: a generator's state is on the host, and needs no runtime."""
    callable()


def _is_compiled() -> bool:
    """The package can always use an NPU."""
    return True


def _is_in_bad_fork() -> bool:
    """Whether this is the child of a process that had used an NPU."""
    return bool(_runtime.STATE.forked)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index meant by a device; None only where `optional`, the CPU (-1) only where it is allowed."""
    if device is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    if allow_cpu and str(getattr(device, "type", device)) == "cpu":
        return -1
    return _runtime.index_of(device)


def _exchange_device(device: int) -> int:
    """Make a device this thread's; the one before. A negative index changes nothing."""
    if device < 0:
        return -1
    _runtime.check_index(device)
    return _runtime.swap_device(device)


_maybe_exchange_device = _exchange_device


class _DeviceGuard:
    """`with torch.npu._DeviceGuard(1):`"""

    def __init__(self, index: int) -> None:
        self.idx, self.prev_idx = index, -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _exchange_device(self.prev_idx)


def _get_generator(device: Any) -> Any:
    """The default generator of a device."""
    return _accelerator_generator(_runtime.device_at(_runtime.index_of(device)))


def _get_rng_state_offset(device: Any = "npu") -> int:
    return int(_get_generator(device).get_offset())


def _set_rng_state_offset(offset: int, device: Any = "npu") -> None:
    _get_generator(device).set_offset(offset)
