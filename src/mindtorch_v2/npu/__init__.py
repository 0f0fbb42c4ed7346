"""`torch.npu`: Ascend devices, with `torch.cuda`'s names.

Invariant: `is_available`, `device_count`, `is_initialized`, `current_device` and the memory statistics touch no device;
everything else initialises the runtime when it needs it.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from .._backends.npu import device_count as device_count
from .._backends.npu import emulator as _emulator
from .._backends.npu import is_available as is_available
from .._backends.npu import runtime as _runtime
from .._backends.npu.errors import AcceleratorError as AcceleratorError
from .._backends.npu.errors import AclError as AclError
from .._backends.npu.errors import OutOfMemoryError as OutOfMemoryError
from .._backends.npu.streams import Event as Event
from .._backends.npu.streams import ExternalStream as ExternalStream
from .._backends.npu.streams import Stream as Stream
from .._backends.npu.streams import StreamContext as StreamContext
from .._backends.npu.streams import current_stream as current_stream
from .._backends.npu.streams import default_stream as default_stream
from .._backends.npu.streams import get_stream_from_external as get_stream_from_external
from .._backends.npu.streams import set_stream as set_stream
from .._dtype import bfloat16 as _bfloat16
from .._dtype import dtype as _dtype
from .._dtype import float16 as _float16
from .memory import caching_allocator_alloc as caching_allocator_alloc
from .memory import caching_allocator_delete as caching_allocator_delete
from .memory import caching_allocator_disabled as caching_allocator_disabled
from .memory import caching_allocator_enable as caching_allocator_enable
from .memory import device_memory_used as device_memory_used
from .memory import empty_cache as empty_cache
from .memory import get_allocator_backend as get_allocator_backend
from .memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from .memory import host_memory_stats as host_memory_stats
from .memory import host_memory_stats_as_nested_dict as host_memory_stats_as_nested_dict
from .memory import max_memory_allocated as max_memory_allocated
from .memory import max_memory_cached as max_memory_cached
from .memory import max_memory_reserved as max_memory_reserved
from .memory import mem_get_info as mem_get_info
from .memory import memory_allocated as memory_allocated
from .memory import memory_cached as memory_cached
from .memory import memory_reserved as memory_reserved
from .memory import memory_snapshot as memory_snapshot
from .memory import memory_stats as memory_stats
from .memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from .memory import memory_summary as memory_summary
from .memory import reset_accumulated_host_memory_stats as reset_accumulated_host_memory_stats
from .memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from .memory import reset_max_memory_allocated as reset_max_memory_allocated
from .memory import reset_max_memory_cached as reset_max_memory_cached
from .memory import reset_peak_host_memory_stats as reset_peak_host_memory_stats
from .memory import reset_peak_memory_stats as reset_peak_memory_stats
from .memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from .random import fork_rng as fork_rng
from .random import get_rng_state as get_rng_state
from .random import get_rng_state_all as get_rng_state_all
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import manual_seed_all as manual_seed_all
from .random import seed as seed
from .random import seed_all as seed_all
from .random import set_rng_state as set_rng_state
from .random import set_rng_state_all as set_rng_state_all

use_emulator = _emulator.use_emulator


# Loaded when first asked for: names by module, submodules, and what stands for names of CUDA.
_MODULES = {
    "graphs": "ExternalEvent NPUGraph graph graph_pool_handle graph_task_group_begin graph_task_group_end "
    "graph_task_update_begin graph_task_update_end is_current_stream_capturing",
    "_graphed": "make_graphed_callables",
    "_compare": "compare_with_cpu DifferenceError",
    "_settings": "config conv is_jit_compile_false matmul set_compile_mode set_option",
    "_health": "clock_rate memory_usage power_draw temperature utilization",
    "_pools": "MemPool use_mem_pool",
    "_private": "_DeviceGuard _exchange_device _get_device_index _get_generator _get_rng_state_offset _is_compiled "
    "_is_in_bad_fork _lazy_call _lazy_init _maybe_exchange_device _set_rng_state_offset",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}
_SUBMODULES = ("amp", "graphs", "memory", "mstx", "random", "streams")
_TYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
}
_STORAGES = (*_TYPES, "ComplexFloat", "ComplexDouble")
_ELSEWHERE = {
    "CUDAGraph": "NPUs have NPUGraph",
    "CUDAPluggableAllocator": "memory of NPUs comes from the caching allocator alone",
    "NPUPluggableAllocator": "memory of NPUs comes from the caching allocator alone",
    "change_current_allocator": "memory of NPUs comes from the caching allocator alone",
    "cudart": "the vendor's runtime is ACL, which has no module of its own here",
    "current_blas_handle": "the vendor's functions take no handle of a library of products",
    "current_solver_handle": "the vendor's functions take no handle of a library of solvers",
    "GreenContext": "the vendor does not share out the cores of a device",
    "green_contexts": "the vendor does not share out the cores of a device",
    "gds": "the vendor's runtime does not read files into device memory",
    "jiterator": "ACLNN has compiled operators only",
    "tunable": "ACLNN chooses its kernels by itself",
    "nccl": "collectives of NPUs are those of torch.distributed with the backend hccl",
    "nvtx": "marks for msprof are torch.npu.mstx",
}


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        from .random import default_generators

        return default_generators()
    if name == "_initialized":
        return _runtime.is_initialised()
    value: Any = None
    if name in _SUBMODULES:
        value = _import_module(f"{__name__}.{name}")
    elif name in _LAZY:
        value = getattr(_import_module(f"{__name__}.{_LAZY[name]}"), name)
    elif name.endswith("Tensor") and name[:-6] in _TYPES:
        from .. import _dtype, _legacy

        value = _legacy.tensor_type(name, getattr(_dtype, _TYPES[name[:-6]]), where="npu")
    elif name.endswith("Storage") and name[:-7] in _STORAGES:
        from .. import _storage_classes

        value = _storage_classes.on_npu(name)
    if value is None:
        reason = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'{reason}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    types = [f"{name}Tensor" for name in _TYPES] + [f"{name}Storage" for name in _STORAGES]
    return sorted({*globals(), *_LAZY, *_SUBMODULES, *types, "default_generators", "_initialized"})


def get_amp_supported_dtype() -> list[_dtype]:
    """The dtypes that autocast can cast to here."""
    return [_float16, _bfloat16]


# -- starting -----------------------------------------------------------------------------------------------------
def init() -> None:
    """Initialise the runtime now; otherwise the first use does it."""
    _runtime.init()


def is_initialized() -> bool:
    return _runtime.is_initialised()


# -- which device -------------------------------------------------------------------------------------------------
def current_device() -> int:
    """The index of this thread's device."""
    return _runtime.current_device()


def set_device(device: Any) -> None:
    """Make a device this thread's. `with torch.npu.device(...)` is better in most cases."""
    if isinstance(device, int) and not isinstance(device, bool) and device < 0:
        return
    _runtime.set_device(_runtime.index_of(device))


class device:
    """`with torch.npu.device(1):` this thread uses another device inside; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        unchanged = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if unchanged else _runtime.index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            _runtime.check_index(self.idx)
            self.prev_idx = _runtime.swap_device(self.idx)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if self.idx >= 0:
            _runtime.swap_device(self.prev_idx)


class device_of(device):
    """`with torch.npu.device_of(t):` the device of a tensor or storage on an NPU; others change nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "npu" else None)


def stream(stream: Stream | None) -> StreamContext:
    """`with torch.npu.stream(s):` this thread's work goes to `s`."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Wait until all work on a device is done; a kernel that failed is reported here."""
    _runtime.synchronize(_runtime.index_of(device))


_SYNC_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What to do when an operator makes the host wait for its device without having been asked to: nothing ("default",
    0), warn ("warn", 1), or refuse ("error", 2)."""
    _runtime.init()
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    _runtime.STATE.waits = debug_mode


def get_sync_debug_mode() -> int:
    _runtime.init()
    return int(_runtime.STATE.waits)


def ipc_collect() -> None:
    """Memory of NPUs is not shared between processes here, so there is none to collect."""


# -- what a device is ---------------------------------------------------------------------------------------------
class _NpuDeviceProperties:
    """What the vendor tells of a device. A number it does not tell is -1."""

    def __init__(self, index: int) -> None:
        self.name = _runtime.soc_name()
        self.total_memory = _runtime.memory_info(index)[1]
        self.major, self.minor = _runtime.series(self.name)
        self.multi_processor_count = _runtime.capability(index, 0)
        self.vector_core_count = _runtime.capability(index, 1)
        self.L2_cache_size = _runtime.capability(index, 2)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"_NpuDeviceProperties({shown})"


def get_device_properties(device: Any = None) -> _NpuDeviceProperties:
    return _NpuDeviceProperties(_checked(device))


def get_device_name(device: Any = None) -> str:
    """The vendor's name of the chip, such as Ascend910B2."""
    _checked(device)
    return _runtime.soc_name()


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The numbers in the chip's name, series and variant: (910, 2) for Ascend910B2. Ascend has no other numbering."""
    _checked(device)
    return _runtime.series(_runtime.soc_name())


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device can read the memory of another."""
    index, peer = _checked(device), _checked(peer_device)
    return False if index == peer else _runtime.can_access_peer(index, peer)


def _checked(device: Any) -> int:
    index = _runtime.index_of(device)
    _runtime.check_index(index)
    return index


def is_bf16_supported() -> bool:
    """Whether the chip has bfloat16."""
    return _runtime.chip() not in ("910A", "310P", "310B")


def is_tf32_supported() -> bool:
    """TF32 is another vendor's; what NPUs have is HF32, `torch.npu.matmul.allow_hf32`."""
    return False


def get_arch_list() -> list[str]:
    """The architectures that code of the package was compiled for: none, the vendor's libraries hold all of it."""
    return []


def get_gencode_flags() -> str:
    return ""


has_half = True
has_magma = False
