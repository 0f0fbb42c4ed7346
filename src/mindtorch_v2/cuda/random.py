"""Generators of CUDA devices, of which there are none: the names of `torch.cuda`."""

from typing import Any

from .. import cuda as _cuda

_NAMES = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(_cuda, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
