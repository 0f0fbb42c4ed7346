"""`torch.xpu` of a build without XPU: `is_available()` is False, seeds are taken, everything else refuses."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .. import _absent

default_generators: tuple[Any, ...] = ()
_TEXT = "Torch not compiled with XPU enabled"
_HERE = __name__

globals().update(
    _absent.refusing(
        _HERE,
        "init _lazy_init current_device current_stream get_device_capability get_device_name get_device_properties "
        "get_per_process_memory_fraction get_rng_state get_stream_from_external initial_seed mem_get_info set_device "
        "set_per_process_memory_fraction synchronize can_device_access_peer",
        AssertionError,
        _TEXT,
    )
)
globals().update(
    _absent.refusing(
        _HERE,
        "clock_rate device_memory_used memory_usage power_draw temperature utilization",
        ImportError,
        "pyzes is required; install it with 'pip install pyzes'.",
    )
)
for _name, _symbol in (
    ("reset_accumulated_memory_stats", "_xpu_resetAccumulatedMemoryStats"),
    ("reset_peak_memory_stats", "_xpu_resetPeakMemoryStats"),
):
    globals().update(_absent.refusing(_HERE, _name, AttributeError, f"module 'torch._C' has no attribute '{_symbol}'"))
for _name, _symbol in (
    ("graph_pool_handle", "_xpu_graph_pool_handle"),
    ("is_current_stream_capturing", "_xpu_isCurrentStreamCapturing"),
):
    globals().update(_absent.refusing(_HERE, _name, RuntimeError, f"Tried to instantiate dummy base class {_symbol}"))
globals().update(_absent.classes(_HERE, "Stream Event XPUGraph MemPool XPUPluggableAllocator"))
globals().update(_absent.seeds(_HERE))


def is_available() -> bool:
    """There is no XPU here."""
    return False


def device_count() -> int:
    return 0


def is_initialized() -> bool:
    return False


def _is_compiled() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def is_tf32_supported() -> bool:
    return False


def get_arch_list() -> list[str]:
    return []


def get_gencode_flags() -> str:
    return ""


def empty_cache() -> None:
    """There is no cache."""


def memory_allocated(device: Any = None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    return {}


def memory_snapshot(mempool_id: Any = None) -> list[Any]:
    return []


class device(_absent.NoDevice):
    """`with torch.xpu.device(0)`: entering needs an XPU, unless the index is negative."""

    _type, _error, _text = "xpu", NotImplementedError, "PyTorch was compiled without XPU support"


class device_of(device):
    """The device of a tensor, which is never an XPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == "xpu" else -1)


class StreamContext(_absent.NoStream):
    """What `stream` answers."""


def stream(stream: Any) -> StreamContext:
    return StreamContext(stream)


def set_stream(stream: Any) -> None:
    """No stream is no change; there are no others."""
    if stream is not None:
        raise AssertionError(_TEXT)
