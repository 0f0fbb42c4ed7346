"""`torch.mtia` of a build without Meta's accelerators."""

from __future__ import annotations

from typing import Any

from .. import _absent

_HERE = __name__
_TEXT = (
    "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in "
    "your python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
)
globals().update(_absent.refusing(_HERE, "init _lazy_init get_rng_state initial_seed", AssertionError, _TEXT))
for _names, _hook in (
    (
        "synchronize current_device current_stream default_stream get_device_capability get_device_properties stream",
        "getCurrentDevice",
    ),
    ("snapshot", "memorySnapshot"),
    ("empty_cache", "emptyCache"),
    ("set_device", "setCurrentDevice"),
    ("graph_pool_handle", "graphPoolHandle"),
    ("attach_out_of_memory_observer", "attachOutOfMemoryObserver"),
):
    globals().update(_absent.refusing(_HERE, _names, RuntimeError, f"Cannot execute {_hook}() without MTIA backend."))
globals().update(
    _absent.classes(f"{_HERE}.mtia_graph", "MTIAGraph graph", "Cannot execute mtiagraphCreate() without MTIA backend.")
)
globals().update(_absent.seeds(_HERE))


def is_available() -> bool:
    """There is no MTIA device here."""
    return False


def is_initialized() -> bool:
    return False


def _is_compiled() -> bool:
    return False


def device_count() -> int:
    return 0


def is_bf16_supported() -> bool:
    """PyTorch says so of every MTIA device."""
    return True


def memory_stats(device: Any = None) -> dict[str, Any]:
    return {}


def memory_allocated(device: Any = None) -> int:
    return 0


max_memory_allocated = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """There are no statistics."""


def record_memory_history(enabled: str | None = "all", stacks: str = "python", max_entries: int = 0) -> None:
    """There is no memory whose history could be recorded."""


def set_stream(stream: Any) -> None:
    """No stream is no change; there are no others."""
    if stream is not None:
        raise RuntimeError("Cannot execute setCurrentStream() without MTIA backend.")


class device:
    """`with torch.mtia.device(0)`: entering needs a device."""

    def __init__(self, device: Any) -> None:
        self.idx: Any = _absent.index_of(device, "mtia")

    def __enter__(self) -> None:
        raise RuntimeError("Cannot execute maybeExchangeDevice() without MTIA backend.")

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        return None
