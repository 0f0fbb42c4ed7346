"""`torch.overrides`: taking over calls from outside the package.

Invariant: a thin face of `_overrides`, which implements it; what is listed as overridable reaches `__torch_function__`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _native, _overridable
from ._dispatch.keys import AUTOGRAD
from ._dispatch.state import BELOW_AUTOGRAD, STATE, modes, set_modes
from ._operators import OpOverload, OpOverloadPacket
from ._overrides import (
    TorchFunctionMode,
    _stack,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    redispatch_function,
)
from ._tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "redispatch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode."""
    stack = _stack()
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes, the innermost last."""
    return list(_stack())


def has_torch_function_unary(arg: Any) -> bool:
    if type(arg) is Tensor and STATE.active == 0:
        return False
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    return has_torch_function(args)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a Python function overridable; `dispatcher(*args, **kwargs)` gives the arguments whose types may do so."""

    def inner(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


# -- what can be overridden -----------------------------------------------------------------------------------------
def _getters(owner: type) -> list[tuple[str, Callable[..., Any]]]:
    """What reads the overridable properties of a class; the function that `__torch_function__` is shown."""
    found = ((name, getattr(owner, name, None)) for name in _overridable.PROPERTIES)
    return [(name, it.__get__) for name, it in found if isinstance(it, property)]


@functools.cache
def _index() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Any, str]]:
    """Overridable functions by namespace, and the names of all functions."""
    import mindtorch_v2 as torch

    from ._api import lazy_tables

    lazy_tables.load_all()
    overridable: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Any, str] = {}
    places = (
        ("torch.linalg", torch.linalg, _overridable.LINALG),
        ("torch.fft", torch.fft, _overridable.FFT),
        ("torch.special", torch.special, _overridable.SPECIAL),
        ("torch.nn.init", torch.nn.init, _overridable.NN_INIT),
        ("torch.nn.functional", torch.nn.functional, _overridable.NN_FUNCTIONS),
        ("torch", torch, _overridable.FUNCTIONS),
        ("torch.Tensor", torch.Tensor, _overridable.METHODS),
    )
    for label, place, listed in places:
        found: Any
        for name in dir(place):
            found = getattr(place, name, None)
            if isinstance(found, property):
                names[found.__get__] = f"{label}.{name}.__get__"
                names[found.__set__] = f"{label}.{name}.__set__"
            public = place is torch.Tensor or not name.startswith("_") and name[0].islower()
            if public and _is_function(found, name):
                names[found] = f"{label}.{name}"
        overridable[place] = []
        for name in listed:
            found = getattr(place, name, None)
            if _is_function(found, name):
                overridable[place].append(found)
                names.setdefault(found, f"{label}.{name}")
    return overridable, names


def _is_function(found: Any, name: str) -> bool:
    return (
        callable(found) and not isinstance(found, (type, types.ModuleType)) and getattr(object, name, None) is not found
    )


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Functions whose calls reach `__torch_function__`, by the place they are found in."""
    import mindtorch_v2 as torch

    found: dict[Any, list[Callable[..., Any]]] = {place: list(listed) for place, listed in _index()[0].items()}
    for name, getter in _getters(torch.Tensor):
        found[getattr(torch.Tensor, name)] = [getter]
    return found


@functools.cache
def get_ignored_functions() -> frozenset[Callable[..., Any]]:
    """Public functions of `torch` that no `__torch_function__` sees: they take no tensors, or only look at them."""
    import mindtorch_v2 as torch

    overridable, names = _index()
    seen = set(overridable[torch])
    return frozenset(f for f, name in names.items() if name.count(".") == 1 and f not in seen)


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each overridable function one that takes the same arguments and gives -1."""
    from . import distributed

    listed = [f for found in get_overridable_functions().values() for f in found]
    listed += [getattr(distributed, name) for name in _overridable.DISTRIBUTED if hasattr(distributed, name)]
    return {f: _dummy(f) for f in listed}


def _dummy(f: Any) -> Callable[..., Any]:
    overloads = getattr(f, "__overloads__", None)
    if overloads is None and isinstance(f, (types.FunctionType, _native.Overridable)):
        return _like_python(f)
    if overloads is None or len(overloads.ops) != 1:
        return lambda *args, **kwargs: -1
    parts: list[str] = []
    for a in overloads.ops[0].schema.args:
        if a.kwonly and "*" not in parts:
            parts.append("*")
        name = "input" if a.name == "self" and not overloads.method else a.name
        parts.append(f"{name}={a.default!r}" if a.has_default else name)
    dummy: Callable[..., Any] = eval(f"lambda {', '.join(parts)}: -1")
    return dummy


def _like_python(f: Callable[..., Any]) -> Callable[..., Any]:
    """One with the parameters of a function that is written in Python."""
    written = inspect.unwrap(f)
    if not isinstance(written, types.FunctionType):
        return lambda *args, **kwargs: -1  # compiled, and so without a signature
    given = inspect.getfullargspec(written)
    needed = len(given.args) - len(given.defaults or ())
    parts = [*given.args[:needed], *(f"{name}=None" for name in given.args[needed:])]
    parts += [f"*{given.varargs}"] if given.varargs else ["*"] if given.kwonlyargs else []
    parts += [f"{name}=None" for name in given.kwonlyargs] + ([f"**{given.varkw}"] if given.varkw else [])
    dummy: Callable[..., Any] = eval(f"lambda {', '.join(parts)}: -1")
    return dummy


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is a method of `Tensor`, or the getter or setter of one of its properties."""
    name = resolve_name(func)
    return name is not None and name.startswith("torch.Tensor.")


def resolve_name(f: Any) -> str | None:
    """The name of a function that reached `__torch_function__`; None for a function that is not PyTorch's."""
    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    try:
        return _index()[1].get(f)
    except TypeError:
        return None


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside a `__torch_dispatch__` handler: calls are recorded again, as they are outside of it."""
    before = modes()
    if before & BELOW_AUTOGRAD:
        set_modes(before & ~(int(BELOW_AUTOGRAD) | (int(AUTOGRAD) << 32)))
    try:
        yield
    finally:
        set_modes(before)
