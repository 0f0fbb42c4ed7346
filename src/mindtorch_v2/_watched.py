"""Subclasses of Tensor with a `__torch_function__` of their own, and modes: their handlers see properties and methods
that are no operators, too.

Invariant: plain tensors pay nothing. What is watched stands in the subclass, and only where it would otherwise have
found Tensor's own; the handler gets Tensor's (`torch.Tensor.size`, `torch.Tensor.shape.__get__`). It stands in Tensor
itself exactly while some thread has a mode.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from . import _native
from ._core_operators import HOOKS
from ._overrides import (
    DisableTorchFunctionSubclass,
    _ask,
    _disabled_torch_function_impl,
    _handlers,
    given_values,
    has_torch_function,
    torch_function,
)
from ._tensor_class import SHOWN

# Methods of Python's syntax that PyTorch asks by their own names; other operators are asked when they are dispatched.
_SYNTAX = frozenset(
    """__array__ __bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __eq__ __float__ __format__
    __index__ __int__ __len__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__
    __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __setstate__ __and__ __or__ __xor__ __iand__ __ior__
    __ixor__ __lshift__ __rshift__ __ilshift__ __irshift__ __invert__ __floordiv__""".split()
)
# Read by PyTorch's own code for subclasses, or about the class and not the tensor.
_UNSEEN = frozenset("as_subclass grad_dtype name volatile".split())
# Tensor's own that ask by themselves.
_ASKING = frozenset("__deepcopy__ __dir__ module_load new_tensor".split())
_PRIVATE = frozenset(("_base", "_version", "_backward_hooks"))
# Properties that are asked about when they are read through the class alone: this package reads them of any tensor.
_THROUGH_THE_CLASS = frozenset(
    "__cuda_array_interface__ _cdata _grad _post_accumulate_grad_hooks grad_dtype name volatile".split()
)


@functools.cache
def _names() -> tuple[tuple[str, bool], ...]:
    """What is watched, and whether it is a property. Methods that nobody used yet ask by themselves."""
    found: dict[str, bool] = {}
    for base in reversed(HOOKS.tensor.__mro__[:-1]):
        for name, value in vars(base).items():
            if name in _UNSEEN or (name.startswith("_") and name not in _SYNTAX and name not in _PRIVATE):
                continue
            code = getattr(value, "__code__", None)
            if isinstance(value, (_native.Method, _native.Overridable)) or name in _ASKING or hasattr(value, "asks"):
                continue
            if callable(value) and not isinstance(value, type):
                if code is None or not code.co_filename.startswith("<torch."):
                    found[name] = False
            elif hasattr(type(value), "__set__"):
                found[name] = True
    return tuple(found.items())


def _method(name: str) -> Callable[..., Any]:
    fn = raw(name)

    @functools.wraps(fn)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        values = (self, *given_values(args, kwargs))
        if has_torch_function(values):
            return _ask(method, _handlers(values), (self, *args), kwargs)
        return fn(self, *args, **kwargs)

    return method


class Shown(property):
    """A property that handlers are asked about first; they are given its `__get__`, `__set__` or `__delete__`."""

    __qualname__: str

    def __repr__(self) -> str:
        return f"<attribute '{self.__qualname__.rpartition('.')[2]}' of 'torch._C.TensorBase' objects>"


def _property(name: str) -> property:
    own = raw(name)

    def get(self: Any) -> Any:
        if has_torch_function((self,)):
            return _ask(made.__get__, _handlers((self,)), (self,), {})
        if name == "data":
            with DisableTorchFunctionSubclass():  # its own getter asks too
                return own.__get__(self)
        return own.__get__(self)

    def put(self: Any, value: Any) -> None:
        if has_torch_function((self,)):
            _ask(made.__set__, _handlers((self,)), (self, value), {})
        else:
            own.__set__(self, value)

    def delete(self: Any) -> None:
        if has_torch_function((self,)):
            _ask(made.__delete__, _handlers((self,)), (self,), {})
        else:
            own.__delete__(self)

    get.__name__ = name
    made = Shown(get, put, delete, own.__doc__)
    if not name.startswith("__"):
        vars(made)["__qualname__"] = f"TensorBase.{name}"  # PyTorch has it in C
    return made


def raw(name: str) -> Any:
    """What stands in `Tensor`, which asks nobody."""
    return type.__getattribute__(HOOKS.tensor, name)


@functools.cache
def _watched(name: str, is_property: bool) -> Any:
    return _property(name) if is_property else _method(name)


def shown(name: str, found: Any) -> Any:
    """What `Tensor.<name>` is to users: what asks handlers, where `found`, which stands there, does not."""
    known = SHOWN.get(name)
    if known is None:
        kind = _dict_of_names().get(name)
        if kind is None and name in _THROUGH_THE_CLASS:
            kind = True
        own = raw(name) if hasattr(HOOKS.tensor.__mro__[1], name) or name in vars(HOOKS.tensor) else None
        written = str(getattr(own, "__module__", None) or "torch").partition(".")[0] in (__package__, "torch")
        known = SHOWN[name] = (own, _watched(name, kind) if kind is not None and written else own)
    # A subclass may have its own, and a user may have put something else there.
    return known[1] if known[0] is found else found


def watch(cls: Any) -> None:
    """Let the handler of a new subclass see what plain tensors answer by themselves."""
    handler = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if handler is torch_function or handler is _disabled_torch_function_impl:
        return
    for name, is_property in _names():
        for base in cls.__mro__:
            if name in vars(base):
                # A class between, such as a mixin, may have its own.
                if issubclass(HOOKS.tensor, base):
                    setattr(cls, name, _watched(name, is_property))
                break


@functools.cache
def _dict_of_names() -> dict[str, bool]:
    return dict(_names())


# -- modes ------------------------------------------------------------------------------------------------------------
_LOCK = threading.Lock()
# Modes that are entered, in all threads; by name what stood in Tensor (`_ABSENT`: in a base of it) before the first.
_entered = 0
_replaced: dict[str, Any] = {}
_ABSENT = object()


def enter_mode() -> None:
    """Let modes see what plain tensors answer by themselves."""
    global _entered
    with _LOCK:
        _entered += 1
        if _entered > 1:
            return
        for name, _ in _names():
            found = raw(name)
            asking = shown(name, found)
            if asking is not found:
                _replaced[name] = vars(HOOKS.tensor).get(name, _ABSENT)
                type.__setattr__(HOOKS.tensor, name, asking)


def exit_mode() -> None:
    """Plain tensors answer by themselves again, once nobody has a mode."""
    global _entered
    with _LOCK:
        _entered -= 1
        if _entered:
            return
        for name, own in _replaced.items():
            if vars(HOOKS.tensor).get(name) is not SHOWN[name][1]:
                continue  # a user has put something else there meanwhile
            if own is _ABSENT:
                type.__delattr__(HOOKS.tensor, name)
            else:
                type.__setattr__(HOOKS.tensor, name, own)
        _replaced.clear()
