"""Streams and events of CUDA devices, of which there are none: the names of `torch.cuda`."""

from typing import Any

from .. import cuda as _cuda

_NAMES = ["Event", "ExternalStream", "Stream"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(_cuda, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
