"""Graphs of CUDA devices, of which there are none: the names of `torch.cuda`."""

from typing import Any

from .. import cuda as _cuda

_NAMES = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(_cuda, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
