"""Memory of NPUs: statistics and the cache, with `torch.cuda.memory`'s names.

Invariant: asking before the first use of a device touches none: statistics are empty then, and numbers are 0.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any

from .._backends.npu import runtime as _runtime
from .._backends.npu import streams as _streams


def _memory() -> Any:
    from .._backends.npu import memory

    return memory


def _index(device: Any) -> int:
    """The index asked about; -1 when no device has been used yet."""
    index = _runtime.index_of(device)
    if not _runtime.is_initialised():
        return -1
    _runtime.check_index(index)
    return index


def _started(device: Any) -> int:
    _runtime.init()
    return _index(device)


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics in nested dictionaries."""
    index = _index(device)
    return {} if index < 0 else dict(_memory().memory_stats_as_nested_dict(index))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics, such as `allocated_bytes.all.current`."""
    index = _index(device)
    return {} if index < 0 else dict(_memory().memory_stats(index))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a table for people."""
    return str(_memory().memory_summary(_started(device), abbreviated))


def memory_snapshot() -> list[dict[str, Any]]:
    """Every segment of the allocator with its blocks."""
    return [] if not _runtime.is_initialised() else list(_memory().memory_snapshot())


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold."""
    index = _index(device)
    return 0 if index < 0 else int(_memory().memory_allocated(index))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors held since the start, or since `reset_peak_memory_stats`."""
    index = _index(device)
    return 0 if index < 0 else int(_memory().max_memory_allocated(index))


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds, in use or cached."""
    index = _index(device)
    return 0 if index < 0 else int(_memory().memory_reserved(index))


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator held since the start, or since `reset_peak_memory_stats`."""
    index = _index(device)
    return 0 if index < 0 else int(_memory().max_memory_reserved(index))


def memory_cached(device: Any = None) -> int:
    """The older name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The older name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"`torch.npu.{old}` has been renamed to `torch.npu.{new}`", FutureWarning, stacklevel=3)


def get_allocator_backend() -> str:
    """Which allocator serves the devices: there is one, the caching allocator."""
    return "native"


def reset_peak_memory_stats(device: Any = None) -> None:
    index = _index(device)
    if index >= 0:
        _memory().reset_peak_memory_stats(index)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    index = _index(device)
    if index >= 0:
        _memory().reset_accumulated_memory_stats(index)


def reset_max_memory_allocated(device: Any = None) -> None:
    """Resets all peaks, as in PyTorch."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """Resets all peaks, as in PyTorch."""
    reset_peak_memory_stats(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as the vendor's runtime tells."""
    return _runtime.memory_info(_started(device))


def device_memory_used(device: Any = None) -> int:
    """Bytes of the device that all processes use together, as the vendor's runtime tells."""
    free, total = mem_get_info(device)
    return total - free


def empty_cache() -> None:
    """Give cached memory nobody uses back to the devices."""
    if _runtime.is_initialised():
        _memory().empty_cache()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let the allocator hold at most this part of the device's memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _memory().set_per_process_memory_fraction(fraction, _started(device))


def get_per_process_memory_fraction(device: Any = None) -> float:
    return float(_memory().get_per_process_memory_fraction(_started(device)))


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of `size` bytes for another library; give it to `caching_allocator_delete`."""
    index = _started(device)
    if stream is None:
        stream = _streams.current_stream(index)
    raw = stream.npu_stream if isinstance(stream, _streams.Stream) else stream
    if not isinstance(raw, int):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.npu.Stream` or `int` representing a pointer "
            "to an existing stream"
        )
    return int(_memory().caching_allocator_alloc(size, index, raw))


def caching_allocator_enable(value: bool = True) -> None:
    """The caching allocator is the only one there is: it cannot be switched off."""
    if not value:
        raise NotImplementedError(
            "torch.npu.caching_allocator_enable(False) is not available: without the cache every tensor would cost a "
            "call of aclrtMalloc, and its end a wait for the device"
        )


@_contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """As `caching_allocator_enable(False)`."""
    caching_allocator_enable(False)
    yield


def _host() -> Any:
    from .._backends.npu.pinned import HOST

    HOST.collect(False)
    return HOST.stats


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Statistics of page-locked memory in nested dictionaries; empty before the first use of a device."""
    return {} if not _runtime.is_initialised() else dict(_host().nested())


def host_memory_stats() -> OrderedDict[str, Any]:
    """The same, such as `allocated_bytes.current`, in the order of their names."""
    found: dict[str, Any] = {}
    for name, value in host_memory_stats_as_nested_dict().items():
        found.update(
            {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        )
    return OrderedDict(sorted(found.items()))


def reset_peak_host_memory_stats() -> None:
    if _runtime.is_initialised():
        _host().reset_peak()


def reset_accumulated_host_memory_stats() -> None:
    if _runtime.is_initialised():
        _host().reset_accumulated()


def caching_allocator_delete(mem_ptr: int) -> None:
    _memory().caching_allocator_delete(mem_ptr)


def __getattr__(name: str) -> Any:
    if name in ("MemPool", "use_mem_pool"):
        from . import _pools

        return getattr(_pools, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
