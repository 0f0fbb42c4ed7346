"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to it.

Invariant: a parameter is a leaf that shares the memory of the tensor it was made from. A tensor of another subclass
stays of that subclass and is marked instead, so `isinstance(t, Parameter)` also asks for the mark.
"""

from __future__ import annotations

from typing import Any, cast

import mindtorch_v2 as torch

from .._overrides import _disabled_torch_function_impl
from .._tensor import Tensor


class _ParameterMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


def _parameter_text(self: Tensor, **options: Any) -> str:
    text: Any = Tensor.__repr__
    return "Parameter containing:\n" + str(text(self, **options))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that `Module` counts among its parameters; requires grad unless told otherwise."""

    # Computing with a parameter gives plain tensors.
    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = torch.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        marked = cast(Any, data.detach().requires_grad_(requires_grad))
        kind: type = type(marked)
        if kind is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {kind.__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        marked._is_param = True
        return cast(Parameter, marked)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is not None:
            return cast(Parameter, known)
        result = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    # A value and not a method: mypy cannot compare the keyword arguments of two `__repr__`.
    __repr__: Any = _parameter_text


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """Makes a tensor that `Module` registers as a buffer; the result is a plain tensor that carries the mark."""

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = torch.empty(0)
        marked = cast(Any, data.detach().requires_grad_(data.requires_grad))
        marked.persistent = persistent
        marked._is_buffer = True
        return cast(Buffer, marked)


def is_lazy(param: Any) -> bool:
    """No parameter of this package is ever uninitialised; the question exists for callers that ask it."""
    return False
