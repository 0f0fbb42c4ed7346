"""`torch.distributed._local_tensor`: PyTorch's simulation of all ranks in one process; not served, and says so.

Invariant: helpers that do nothing outside of such a simulation do nothing; there is never one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

__all__ = ["LocalIntNode", "LocalTensor", "LocalTensorMode"]

_TEXT = "{}: several ranks are not simulated in one process; use the backend `fake`, or start several processes"


class LocalTensor:
    """PyTorch's tensor of all ranks; nothing is ever an instance."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_TEXT.format("LocalTensor"))


class LocalIntNode:
    """PyTorch's number of all ranks; nothing is ever an instance."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_TEXT.format("LocalIntNode"))


class LocalTensorMode:
    """PyTorch's mode in which tensors are those of all ranks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_TEXT.format("LocalTensorMode"))


def local_tensor_mode() -> None:
    """The mode that is on: None."""
    return


def enabled_local_tensor_mode() -> None:
    """The mode that is on: None."""
    return


def maybe_disable_local_tensor_mode() -> contextlib.AbstractContextManager[None]:
    """A context without the mode: that is always so."""
    return contextlib.nullcontext()


def maybe_run_for_local_tensor(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, since there is one rank in a process."""
    return func
