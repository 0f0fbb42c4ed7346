"""Subclasses of Tensor with a `__torch_function__` of their own: their handlers see properties and methods that are no
operators, too.

Invariant: plain tensors pay nothing. What is watched stands in the subclass, and only where it would otherwise have
found Tensor's own; the handler gets Tensor's (`torch.Tensor.size`, `torch.Tensor.shape.__get__`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _native
from ._core_operators import HOOKS
from ._overrides import _ask, _disabled_torch_function_impl, _handlers, given_values, has_torch_function, torch_function

# Methods of Python's syntax that PyTorch asks by their own names; other operators are asked when they are dispatched.
_SYNTAX = frozenset(
    """__array__ __bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __eq__ __float__ __format__
    __index__ __int__ __len__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__
    __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __setstate__""".split()
)
# Read by PyTorch's own code for subclasses, or about the class and not the tensor.
_UNSEEN = frozenset("as_subclass grad_dtype name volatile".split())
# Tensor's own that ask by themselves, as the getter of `data` does.
_ASKING = frozenset("__deepcopy__ __dir__ module_load new_tensor".split())
_PRIVATE = frozenset(("_base", "_version", "_backward_hooks"))


@functools.cache
def _names() -> tuple[tuple[str, bool], ...]:
    """What is watched, and whether it is a property."""
    found: dict[str, bool] = {}
    for base in reversed(HOOKS.tensor.__mro__[:-1]):
        for name, value in vars(base).items():
            if name in _UNSEEN or (name.startswith("_") and name not in _SYNTAX and name not in _PRIVATE):
                continue
            code = getattr(value, "__code__", None)
            if isinstance(value, _native.Method):
                continue
            if callable(value) and not isinstance(value, type):
                if code is None or not code.co_filename.startswith("<torch."):
                    found[name] = False
            elif hasattr(type(value), "__set__"):
                found[name] = True
            elif type(value).__name__ == "LateMethod":
                found[name] = False
    return tuple(found.items())


def _method(name: str) -> Callable[..., Any]:
    @functools.wraps(getattr(HOOKS.tensor, name))
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        fn = getattr(HOOKS.tensor, name)
        values = (self, *given_values(args, kwargs))
        if has_torch_function(values):
            return _ask(fn, _handlers(values), (self, *args), kwargs)
        return fn(self, *args, **kwargs)

    return method


def _property(name: str) -> property:
    own: Any = getattr(HOOKS.tensor, name)

    def get(self: Any) -> Any:
        if has_torch_function((self,)):
            return _ask(own.__get__, _handlers((self,)), (self,), {})
        return own.__get__(self)

    def put(self: Any, value: Any) -> None:
        if has_torch_function((self,)):
            _ask(own.__set__, _handlers((self,)), (self, value), {})
        else:
            own.__set__(self, value)

    def delete(self: Any) -> None:
        if has_torch_function((self,)):
            _ask(own.__delete__, _handlers((self,)), (self,), {})
        else:
            own.__delete__(self)

    return property(get, put, delete, own.__doc__)


@functools.cache
def _watched(name: str, is_property: bool) -> Any:
    return _property(name) if is_property else _method(name)


def watch(cls: Any) -> None:
    """Let the handler of a new subclass see what plain tensors answer by themselves."""
    handler = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if handler is torch_function or handler is _disabled_torch_function_impl:
        return
    for name, is_property in _names():
        for base in cls.__mro__:
            if name in vars(base):
                # A class between, such as a mixin, may have its own.
                if base.__module__.partition(".")[0] == __package__ and issubclass(HOOKS.tensor, base):
                    setattr(cls, name, _watched(name, is_property))
                break


def is_own(func: Any) -> bool:
    """Whether a function that a handler is given is Tensor's own, which asks nobody itself."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        return bool(func != vars(HOOKS.tensor)["data"].__get__)
    if name in _ASKING or getattr(func, "asks", False):
        return False
    return dict(_names()).get(name) is False and getattr(HOOKS.tensor, name, None) is func
