"""`torch._prims_common.wrappers`: decorators of PyTorch's references; here references are the operators themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _maybe_remove_out_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside a wrapper that added `out=`."""
    marked = hasattr(fn, "_torch_decompositions_out_wrapper")
    return getattr(fn, "__wrapped__", fn) if marked else fn
