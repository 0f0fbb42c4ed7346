"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to it, also without a shape yet.

Invariant: a parameter is a leaf that shares the memory of the tensor it was made from. A tensor of another subclass
stays of that subclass and is marked instead, so `isinstance(t, Parameter)` also asks for the mark.
"""

from __future__ import annotations

from typing import Any, cast

import mindtorch_v2 as torch

from .. import _native
from .._dispatch.keys import PYTHON
from .._dispatch.state import modes
from .._overrides import _disabled_torch_function_impl
from .._tensor import Tensor
from .._tensor_base import instance_of, set_requires_grad


class _ParameterMeta(_native.TensorMeta):
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
            if cls is Parameter and not modes() and (data._dtype.is_inexact or not requires_grad):
                # As `_make_subclass`, of what is known to be right.
                made: Any = instance_of(cls, data)
                if requires_grad:
                    set_requires_grad(made, True)
                return cast(Parameter, made)
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
        from ..overrides import handle_torch_function, has_torch_function

        if has_torch_function((self,)):
            return cast(Parameter, handle_torch_function(Tensor.__deepcopy__, (self,), self, memo))
        result = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    # A value and not a method: mypy cannot compare the keyword arguments of two `__repr__`.
    __repr__: Any = _parameter_text

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._serialize import reduce_parameter

        return reduce_parameter(self)


_native.add_plain(Parameter)


class _BufferMeta(_native.TensorMeta):
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


def _class_name(self: Any) -> str:
    return f"<{type(self).__name__}>"


def _no_shape(self: Any) -> Any:
    raise RuntimeError(
        "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
        "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
        "initialize the parameters before accessing their attributes."
    )


def _refuse_values(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    name = getattr(func, "__name__", "")
    if name in cls._allowed_methods or type(func).__name__ == "method-wrapper":
        return super(UninitializedTensorMixin, cls).__torch_function__(func, types, args, kwargs or {})
    raise ValueError(
        f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` "
        f"or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call "
        "`forward` with a dummy batch to initialize the parameters before calling torch functions"
    )


class UninitializedTensorMixin:
    """What parameters and buffers share whose shape is not known yet: they can be moved and cast, and nothing else."""

    cls_to_become: type
    requires_grad: bool
    data: Tensor
    # Calls by which a module moves or looks at its members; everything else needs values.
    _allowed_methods = frozenset(
        """__hash__ size copy_ is_complex is_floating_point half float double char short int long npu cpu to to_copy
        get_device""".split()
    )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter or buffer of this shape, with undefined values."""
        current = self.data
        device = current.device if device is None else device
        self.data = torch.empty(shape, device=device, dtype=current.dtype if dtype is None else dtype)
        self.__class__ = cast(Any, self.cls_to_become)
        # The keys say that calls are looked at by the class, which the new class does not do.
        cast(Any, self)._keys &= ~int(PYTHON)

    # Values and not methods: a tensor's own have other types.
    shape: Any = property(_no_shape)
    __repr__: Any = _class_name
    __torch_function__: Any = classmethod(_refuse_values)

    def size(self, dim: int | None = None) -> Any:
        """The size of the memory it has, which is none."""
        nothing = torch.Size((0,))
        return nothing if dim is None else nothing[dim]

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)


def is_lazy(param: Any) -> bool:
    """Whether this is a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without shape and values until a lazy module sees its first input."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return cast(UninitializedParameter, known)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without shape and values until a lazy module sees its first input."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made = Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return cast(UninitializedBuffer, made)
