"""`torch.onnx.symbolic_helper`: marks on counterparts of operators; nothing exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """A mark on a counterpart: the function itself."""
    return lambda fn: fn
