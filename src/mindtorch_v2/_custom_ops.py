"""`torch._custom_ops`: the parts of an operator registered by its name; `torch.library.custom_op` is the newer way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._custom_op.impl import _custom_op_with_schema, _find_custom_op, infer_schema, named_like, parse_qualname
from ._custom_op.impl import validate_namespace as _validate_namespace
from .library import get_ctx

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an operator with a schema, or with that of a function's annotations (also as a decorator)."""
    ns, _ = parse_qualname(qualname)
    _validate_namespace(ns)

    def inner(func: Any) -> Any:
        named_like(func, qualname)
        _custom_op_with_schema(qualname, infer_schema(func, mutates_args=()))
        return func

    if func_or_schema is None:
        return inner
    if isinstance(func_or_schema, str):
        return _custom_op_with_schema(qualname, func_or_schema)
    return inner(func_or_schema)


def _register(func: Any, register: Callable[[Any], Any]) -> Any:
    """Do it now, or give the decorator that does."""

    def inner(f: Any) -> Any:
        register(f)
        return f

    return inner if func is None else inner(func)


def impl(qualname: str, *, device_types: Any = ("cpu", "cuda"), func: Any = None) -> Any:
    """Serve device types with a function."""

    def register(f: Any) -> None:
        _find_custom_op(qualname, True).impl(device_types, _stacklevel=4)(f)

    return _register(func, register)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Say what an operator's results look like: serves meta tensors."""
    from .library import register_fake

    def register(f: Any) -> None:
        register_fake(qualname, f)

    return _register(func, register)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Say what is kept for the gradients, from the arguments by name and the results."""

    def register(f: Any) -> None:
        _find_custom_op(qualname, True).impl_save_for_backward(_stacklevel=4)(f)

    return _register(func, register)


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Give gradients by name of argument, from what was kept and the gradients of the results."""

    def register(f: Any) -> None:
        _find_custom_op(qualname, True).impl_backward(output_differentiability, _stacklevel=4)(f)

    return _register(func, register)


def _destroy(qualname: str) -> None:
    """Take an operator back."""
    _find_custom_op(qualname)._destroy()
