"""`torch.accelerator`: whatever accelerator there is, which here can only be an NPU.

Invariant: `is_available` and `device_count` touch no device.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from . import npu as _npu
from ._backends.npu import runtime as _runtime
from ._device import device as _device


def is_available() -> bool:
    """Whether there is an accelerator that can be used."""
    return _npu.is_available()


def device_count() -> int:
    return _npu.device_count()


def current_accelerator(check_available: bool = False) -> _device | None:
    """The device type of the accelerator; None if there is none, or with `check_available` none that can be used.

    The package is always able to use an NPU, so without `check_available` the answer is `npu`.
    """
    if check_available and not is_available():
        return None
    return _device("npu")


def current_device_index() -> int:
    """The index of this thread's device."""
    return _npu.current_device()


current_device_idx = current_device_index


def _index(where: Any) -> int:
    """The index meant by a device argument, whose type must be the accelerator's."""
    if isinstance(where, str):
        where = _device(where)
    if isinstance(where, _device) and where.type != "npu":
        raise ValueError(f"{where.type} doesn't match the current accelerator npu.")
    return _runtime.index_of(where)


def set_device_index(device: Any, /) -> None:
    """Make a device this thread's; None or a negative index changes nothing."""
    if device is not None:
        _npu.set_device(device if isinstance(device, int) else _index(device))


set_device_idx = set_device_index


def current_stream(device: Any = None, /) -> _npu.Stream:
    """This thread's stream on a device."""
    return _npu.current_stream(_index(device))


def set_stream(stream: _npu.Stream) -> None:
    """Make a stream, and its device, this thread's."""
    _npu.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until all work on a device is done."""
    _npu.synchronize(_index(device))


class device_index:
    """`with torch.accelerator.device_index(1):` this thread uses another device inside; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            _runtime.check_index(self.idx)
            self.prev_idx = _runtime.swap_device(self.idx)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if self.idx is not None:
            _runtime.swap_device(self.prev_idx)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """`supported_dtypes` of a device."""
    from ._dtype import bfloat16, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8
    from ._dtype import bool as bool_

    _runtime.check_index(_index(device))
    found = {float32, float16, float64, int8, int16, int32, int64, uint8, bool_, complex64, complex128}
    if _npu.is_bf16_supported():
        found.add(bfloat16)
    return {"supported_dtypes": found}


# -- memory -------------------------------------------------------------------------------------------------------
def empty_cache() -> None:
    """Give cached memory nobody uses back to the devices."""
    _npu.empty_cache()


def empty_host_cache() -> None:
    """Give cached page-locked host memory nobody uses back to the system."""
    if _runtime.is_initialised():
        from ._backends.npu.pinned import HOST

        HOST.give_back()


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """The allocator's statistics in the order of their names; empty before the first use."""
    return OrderedDict(sorted(_npu.memory_stats(_index(device_index)).items()))


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes that tensors hold."""
    return _npu.memory_allocated(_index(device_index))


def max_memory_allocated(device_index: Any = None, /) -> int:
    return _npu.max_memory_allocated(_index(device_index))


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that the allocator holds, in use or cached."""
    return _npu.memory_reserved(_index(device_index))


def max_memory_reserved(device_index: Any = None, /) -> int:
    return _npu.max_memory_reserved(_index(device_index))


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    _npu.reset_peak_memory_stats(_index(device_index))


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    _npu.reset_accumulated_memory_stats(_index(device_index))


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """(free, total) bytes of a device."""
    return _npu.mem_get_info(_index(device_index))
