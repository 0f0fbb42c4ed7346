"""`torch.overrides`: taking over calls from outside the package.

Invariant: a thin face of `_overrides`, which implements it.
"""
from __future__ import annotations

from typing import Any

from ._overrides import TorchFunctionMode, handle_torch_function, has_torch_function, is_tensor_like

__all__ = ["TorchFunctionMode", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
           "has_torch_function_variadic", "is_tensor_like", "resolve_name"]


def has_torch_function_unary(arg: Any) -> bool:
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    return has_torch_function(args)


def resolve_name(f: Any) -> str:
    """A readable name of a function that reached `__torch_function__`."""
    return f"torch.{getattr(f, '__qualname__', getattr(f, '__name__', f))}"
