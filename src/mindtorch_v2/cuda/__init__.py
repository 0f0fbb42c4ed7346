"""`torch.cuda` of a build without CUDA: `is_available()` is False, seeds are taken, everything else refuses.

Invariant: as PyTorch built for the CPU alone answers, down to its errors.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .. import _absent
from .._backends.npu.errors import OutOfMemoryError as OutOfMemoryError

has_half = True
has_magma = False
default_generators: tuple[Any, ...] = ()
_initialized = False
_TEXT = "Torch not compiled with CUDA enabled"
_HERE = __name__

globals().update(
    _absent.refusing(
        _HERE,
        "init _lazy_init cudart current_blas_handle current_device current_solver_handle current_stream default_stream "
        "get_device_capability get_device_name get_device_properties get_per_process_memory_fraction get_rng_state "
        "get_stream_from_external get_sync_debug_mode initial_seed ipc_collect mem_get_info synchronize "
        "set_per_process_memory_fraction set_sync_debug_mode can_device_access_peer caching_allocator_alloc",
        AssertionError,
        _TEXT,
    )
)
for _names, _symbol in (
    ("caching_allocator_delete", "_cuda_cudaCachingAllocator_raw_delete"),
    ("change_current_allocator", "_cuda_changeCurrentAllocator"),
    ("get_allocator_backend", "_cuda_getAllocatorBackend"),
    ("memory_snapshot", "_cuda_memorySnapshot"),
    ("reset_accumulated_host_memory_stats", "_cuda_resetAccumulatedHostMemoryStats"),
    ("reset_accumulated_memory_stats", "_cuda_resetAccumulatedMemoryStats"),
    ("reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats", "_cuda_resetPeakMemoryStats"),
    ("reset_peak_host_memory_stats", "_cuda_resetPeakHostMemoryStats"),
    ("_sleep", "_cuda_sleep"),
):
    globals().update(_absent.refusing(_HERE, _names, AttributeError, f"module 'torch._C' has no attribute '{_symbol}'"))
globals().update(
    _absent.refusing(
        _HERE,
        "device_memory_used memory_usage utilization temperature power_draw clock_rate",
        ModuleNotFoundError,
        "nvidia-ml-py does not seem to be installed or it can't be imported.",
    )
)
globals().update(
    _absent.refusing(_HERE, "make_graphed_callables", RuntimeError, "Tried to instantiate dummy base class CUDAGraph")
)
for _name, _symbol in (
    ("graph_pool_handle", "_graph_pool_handle"),
    ("is_current_stream_capturing", "_cuda_isCurrentStreamCapturing"),
):
    globals().update(_absent.refusing(_HERE, _name, RuntimeError, f"Tried to instantiate dummy base class {_symbol}"))
globals().update(_absent.classes(f"{_HERE}.streams", "Event"))
_NO_STREAM = "torch.cuda.Stream requires CUDA support"
globals().update(_absent.classes(f"{_HERE}.streams", "Stream ExternalStream", _NO_STREAM))
globals().update(_absent.classes(f"{_HERE}.graphs", "CUDAGraph"))
globals().update(_absent.classes(f"{_HERE}.graphs", "graph", _NO_STREAM))
globals().update(_absent.classes(f"{_HERE}.memory", "MemPool CUDAPluggableAllocator"))
globals().update(_absent.seeds(_HERE))


class CudaError(RuntimeError):
    """A failure of the CUDA runtime, which is not here."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error {code}; {_TEXT}")


class DeferredCudaCallError(Exception):
    """A failure of a call that waited for a device."""


class cudaStatus:
    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


# -- questions ----------------------------------------------------------------------------------------------------
def is_available() -> bool:
    """There is no CUDA here."""
    return False


def device_count() -> int:
    return 0


def is_initialized() -> bool:
    return False


def _is_compiled() -> bool:
    return False


def _is_in_bad_fork() -> bool:
    return False


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Remembered until CUDA is initialised, which never happens."""


def _device_count_nvml() -> int:
    return -1


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def is_tf32_supported() -> bool:
    return False


def get_arch_list() -> list[str]:
    """The architectures that CUDA code was compiled for: none."""
    return []


def get_gencode_flags() -> str:
    return ""


def list_gpu_processes(device: Any = None) -> str:
    return "pynvml module not found, please install nvidia-ml-py"


def empty_cache() -> None:
    """There is no cache."""


def memory_allocated(device: Any = None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = memory_allocated


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    return OrderedDict()


def host_memory_stats() -> OrderedDict[str, Any]:
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    return {}


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """There are no statistics to summarise."""
    raise KeyError("allocated_bytes.all.current")


def check_error(res: int) -> None:
    raise AttributeError("'NoneType' object has no attribute 'cudaError'")


def caching_allocator_enable(value: bool = True) -> None:
    """There is no allocator to switch."""


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    yield


# -- devices and streams ------------------------------------------------------------------------------------------
def set_device(device: Any) -> None:
    """A negative index changes nothing; any other device does not exist."""
    index = _absent.index_of(device, "cuda")
    if index is None or index >= 0:
        raise AttributeError("module 'torch._C' has no attribute '_cuda_setDevice'")


class device(_absent.NoDevice):
    """`with torch.cuda.device(0)`: entering needs CUDA, unless the index is negative."""

    _type, _error, _text = "cuda", RuntimeError, "PyTorch was compiled without CUDA support"


class device_of(device):
    """The device of a tensor, which is never a CUDA device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class StreamContext(_absent.NoStream):
    """What `stream` answers."""


def stream(stream: Any) -> StreamContext:
    """`with torch.cuda.stream(None)` changes nothing; there are no streams."""
    return StreamContext(stream)


def set_stream(stream: Any) -> None:
    """No stream is no change; there are no others."""
    if stream is not None:
        raise AssertionError(_TEXT)


@contextlib.contextmanager
def use_mem_pool(pool: Any, device: Any = None) -> Iterator[None]:
    """Entering needs CUDA."""
    if not is_available():
        raise AssertionError(_TEXT)
    yield


_TENSORS = "Float Double Half BFloat16 Byte Char Short Int Long Bool".split()
_SUBMODULES = ("amp", "graphs", "jiterator", "memory", "random", "streams")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module(f"{_HERE}.{name}")
    if name.removesuffix("Tensor") in _TENSORS and name.endswith("Tensor"):
        import mindtorch_v2 as torch

        like = getattr(torch, name)
        attributes = {"dtype": like.dtype, "layout": like.layout, "is_cuda": True, "is_sparse": False}
        attributes["__module__"] = "torch.cuda"
        return _typed(name, TypeError, f"type torch.cuda.{name} not available. {_TEXT}.", attributes)
    if name.removesuffix("Storage") in (*_TENSORS, "ComplexFloat", "ComplexDouble") and name.endswith("Storage"):
        return _typed(name, AssertionError, _TEXT)
    raise AttributeError(f"module '{_HERE}' has no attribute '{name}'")


def _typed(name: str, kind: type[Exception], text: str, attributes: dict[str, Any] | None = None) -> type:
    """A class of CUDA tensors or storages, of which there are none."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise kind(text)

    made = globals()[name] = type(name, (), {"__new__": __new__, "__module__": _HERE, **(attributes or {})})
    return made
