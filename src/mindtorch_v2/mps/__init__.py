"""`torch.mps` of a build without Apple's GPUs."""

from __future__ import annotations

from typing import Any

from .. import _absent

_HERE = __name__
for _name, _hook in (
    ("get_rng_state", "getDefaultGenerator"),
    ("seed", "getDefaultGenerator"),
    ("synchronize", "deviceSynchronize"),
    ("empty_cache", "emptyCache"),
    ("set_per_process_memory_fraction", "setMemoryFraction"),
    ("current_allocated_memory", "getCurrentAllocatedMemory"),
    ("driver_allocated_memory", "getDriverAllocatedMemory"),
    ("recommended_max_memory", "getRecommendedMaxMemory"),
):
    globals().update(_absent.refusing(_HERE, _name, RuntimeError, f"Cannot execute {_hook}() without MPS backend."))
globals().update(_absent.refusing(_HERE, "compile_shader load_metallib", RuntimeError, "MPS is not available"))
globals().update(_absent.classes(f"{_HERE}.event", "Event", "Cannot execute acquireEvent() without MPS backend."))


def is_available() -> bool:
    """There is no MPS here."""
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """There is no generator to seed."""
    int(seed)


def set_rng_state(new_state: Any) -> None:
    new_state.clone()
    raise RuntimeError("Cannot execute getDefaultGenerator() without MPS backend.")
