"""`torch.random`: seeding and the state of the default generators.

Invariant: whatever is drawn inside `fork_rng`, the generators it covers are afterwards in the state they had before.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ._device import as_device
from ._random import (
    AcceleratorGenerators,
    Generator,
    accelerator_generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "thread_safe_generator"]


def thread_safe_generator() -> Generator | None:
    """The generator of the DataLoader worker thread that calls; None, which means the default one, elsewhere."""
    # Whoever is a worker has loaded that module.
    loader = sys.modules.get(f"{__package__}.utils.data")
    info = None if loader is None else loader.get_worker_info()
    rng = getattr(info, "rng", None)
    if rng is None or getattr(info, "worker_method", None) != "thread":
        return None
    found: Generator = rng.torch_generator
    return found


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Inside, the default generators may be used; afterwards they are in the state they had before.

    The CPU's is always covered; of the accelerator's, those of `devices`, or of all its devices.
    """
    if device_type == "meta" or not enabled:
        yield
        return
    if device_type is not None and as_device(device_type).type not in ("cpu", "npu"):
        raise RuntimeError(
            f"torch has no module of `{device_type}`, you should register a module by `torch._register_device_module`."
        )
    every = devices is None and device_type != "cpu"
    known = AcceleratorGenerators.made
    generators = [default_generator, *(known.values() if every else _accelerators(devices, device_type))]
    states = [g.get_state() for g in generators]
    first = AcceleratorGenerators.seed
    try:
        yield
    finally:
        for generator, state in zip(generators, states):
            generator.set_state(state)
        if every:
            # Those that were made inside had drawn nothing before.
            AcceleratorGenerators.seed = first
            for generator in known.values():
                if generator not in generators:
                    generator.manual_seed(first)


def _accelerators(devices: Iterable[Any] | None, device_type: str | None) -> list[Generator]:
    if device_type == "cpu" or devices is None:
        return []
    return [accelerator_generator(as_device(f"npu:{d}") if isinstance(d, int) else as_device(d)) for d in devices]
