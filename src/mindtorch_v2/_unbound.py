"""Methods called through the class with something that is no tensor: `torch.Tensor.long("mean")`.

Invariant: such a call is refused in the words of a method written in C. Methods on the way of every program catch the
error themselves, so that a call of one through a tensor costs nothing more; the others are wrapped, natively.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _native
from ._dispatch.keys import BATCHED, PYTHON
from ._dispatch.state import FUNCTION_MODE, modes
from ._tensor_base import TensorBase

Method = TypeVar("Method", bound=Callable[..., Any])
# What `inspect` and tracers ask of a function that is written in Python.
SHOWN = (*functools.WRAPPER_ASSIGNMENTS, "__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__")


def refusal(name: str, value: object, error: Exception) -> Exception:
    """What to raise for an AttributeError of a method's first look at `self`."""
    if isinstance(value, TensorBase):
        if value._keys & BATCHED:
            return NotImplementedError("Cannot access storage of BatchedTensorImpl")
        return error
    kind = type(value).__name__
    return TypeError(f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object")


def of_tensor(fn: Method, name: str = "", alone: bool = False) -> Method:
    """A method that refuses what is no tensor, and asks a mode's or a subclass's `__torch_function__` first.
    `alone`: it takes nothing but its tensor."""
    called = name or fn.__name__

    def asking(*args: Any, **kwargs: Any) -> Any:
        if not args:
            raise TypeError(f"unbound method TensorBase.{called}() needs an argument")
        self = args[0]
        if not isinstance(self, TensorBase):
            raise refusal(called, self, AttributeError())
        if self._keys & PYTHON or modes() & FUNCTION_MODE:
            from . import _overrides

            if _overrides.has_torch_function((self,)):
                return _overrides.handle_torch_function(method, (self,), *args, **kwargs)
        return fn(*args, **kwargs)

    method: Any = _native.Overridable(fn, asking, 2 if alone else 1)
    functools.update_wrapper(method, fn, SHOWN)
    method.__name__ = called
    method.asks = True
    return cast(Method, method)
