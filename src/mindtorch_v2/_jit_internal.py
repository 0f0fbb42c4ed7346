"""`torch._jit_internal`: marks that programs put on functions for PyTorch's script compiler, which is not here.

Invariant: a mark changes nothing of what a function does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple, TypeVar, Union, get_args, get_origin  # noqa: F401, UP035

from .futures import Future as Future

F = TypeVar("F", bound=Callable[..., Any])


class FunctionModifiers:
    """What `_torchscript_modifier` says of a function."""

    UNUSED = "unused"
    IGNORE = "ignore"
    EXPORT = "export"
    DEFAULT = "default"
    COPY_TO_SCRIPT_WRAPPER = "copy to the script's wrapper"
    _DROP = "drop"


def _mark(fn: F, modifier: str) -> F:
    setattr(fn, "_torchscript_modifier", modifier)
    return fn


def export(fn: F) -> F:
    """Mark a method that the script compiler takes although nothing calls it."""
    return _mark(fn, FunctionModifiers.EXPORT)


def unused(fn: Any) -> Any:
    """Mark a function that the script compiler replaces by an exception."""
    if isinstance(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                _mark(part, FunctionModifiers.UNUSED)
        return fn
    return _mark(fn, FunctionModifiers.UNUSED)


def _drop(fn: F) -> F:
    return _mark(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: F) -> F:
    return _mark(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that the script compiler leaves to Python; used bare or with `drop=`."""
    if callable(drop):
        return _mark(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if kwargs.pop("drop_on_export", None):
        drop = True
    if kwargs:
        raise TypeError(f"ignore() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return lambda fn: _mark(fn, FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE)


def get_torchscript_modifier(fn: Any) -> Any:
    fn = getattr(fn, "__func__", fn)
    return getattr(fn, "_torchscript_modifier", FunctionModifiers.DEFAULT) if callable(fn) else None


def is_ignored_fn(fn: Any) -> bool:
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE, FunctionModifiers._DROP)


def _overload(func: F) -> F:
    """Mark one of several signatures; the last definition is the function."""
    return func


def _overload_method(func: F) -> F:
    """Mark one of several signatures of a method."""
    return func


def is_scripting() -> bool:
    """False: a program that runs here is Python."""
    return False


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None,
    func_name: str | None,
) -> Callable[..., Any]:
    """A function that is one of two, as the argument of that name or place says."""
    if if_true.__doc__ is not None and if_false.__doc__ is not None:
        raise RuntimeError("only one function can have a docstring")

    def fn(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_name not in kwargs and arg_index < len(args) else default
        return (if_true if kwargs.get(arg_name, given) else if_false)(*args, **kwargs)

    if if_true.__doc__ is not None:
        fn.__doc__ = if_false.__doc__ = if_true.__doc__
    elif if_false.__doc__ is not None:
        fn.__doc__ = if_true.__doc__ = if_false.__doc__
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn


def _isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value fits a type with parameters, looking at the elements of containers."""
    if isinstance(target_type, tuple):
        return any(_isinstance(obj, each) for each in target_type)
    origin, parameters = get_origin(target_type), get_args(target_type)
    if origin is None:
        return obj is None if target_type is None else isinstance(obj, target_type)
    if origin is Union:
        return any(_isinstance(obj, each) for each in parameters)
    if not isinstance(obj, origin):
        return False
    if origin is tuple:
        if len(parameters) == 2 and parameters[1] is ...:
            return all(_isinstance(each, parameters[0]) for each in obj)
        return len(obj) == len(parameters) and all(map(_isinstance, obj, parameters))
    if origin is dict:
        return all(_isinstance(k, parameters[0]) and _isinstance(v, parameters[1]) for k, v in obj.items())
    if origin is list:
        return all(_isinstance(each, parameters[0]) for each in obj)
    return True


class BroadcastingListCls:
    """`BroadcastingList2[int]`: a list, or one value for all its places; for annotations."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
