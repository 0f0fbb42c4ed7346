"""Methods of Tensor that are neither rows nor about its layout: conversions, and factories with this tensor's defaults.

Invariant: these stay interpreted functions, which Python binds as methods; rows and compiled helpers do the work.
"""

from __future__ import annotations

import warnings
from typing import Any

from . import _dtype as d
from ._backends.common.convert import convert, parse_to
from ._backends.common.pinning import is_pinned, pin
from ._core_operators import CORE, HOOKS
from ._creation import _SIZE, _STRIDE, _device_arg, _dtype_arg, _finish, _number, _size_from, grad_arg, is_sparse_layout
from ._device import CPU, as_device, can_pin, device
from ._dispatch.binding import need
from ._dispatch.keys import PYTHON, SPARSE
from ._dispatch.op import Op, c_type_name, type_name
from ._dtype import dtype
from ._dtype_names import tensor_type, type_string
from ._from_data import from_data
from ._layout import contiguous_format, strided
from ._ops import create as _rows
from ._ops.rules.shape import check_options
from ._ops.view import CONTIGUOUS
from ._overrides import ask, can_answer, handle_torch_function, has_torch_function
from ._tensor_base import TensorBase, operand, unknown
from ._unbound import of_tensor, refusal

_FORMAT = CONTIGUOUS.schema.args[1]
# By the names of tensors' types, which the first call with one makes.
_KINDS: dict[str, dtype] = {}


# -- conversions --------------------------------------------------------------------------------------------------
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensor.to(dtype | device | other, non_blocking=False, copy=False, *, memory_format=torch.preserve_format)"""
    try:
        mine, place = self._dtype, self._device
    except AttributeError as error:
        raise refusal("to", self, error) from None
    if len(args) == 1 and not kwargs:
        only = args[0]
        if only is mine or only is place:
            return self
        if isinstance(only, dtype):
            return CORE.to_copy.call((self, only, None, None, False))
        if isinstance(only, str):
            return convert(self, None, as_device(only))
        if isinstance(only, device):
            return self if only == place else convert(self, None, only)
        if isinstance(only, TensorBase):
            return convert(self, only._dtype, only._device)
    try:
        dt, dev, non_blocking, copy, form = parse_to(args, kwargs)
    except TypeError as error:
        if can_answer(error, args):
            return ask(HOOKS.tensor.to, (self, *args), kwargs)
        raise
    return convert(self, dt, dev, copy, form, non_blocking)


def _div(self: Any, other: Any) -> Any:
    """Not the compiled `__truediv__`, for the reason of `_rdiv`."""
    o = operand(other)
    return unknown("div", self, other) if o is None else CORE.div.call((self, o))


def _rdiv(self: Any, other: Any) -> Any:
    """Not the compiled `__rtruediv__`: a slot that is called by name asks the other operand to divide."""
    o = operand(other)
    return unknown("__rdiv__", self, other) if o is None else CORE.mul.call((CORE.reciprocal.call((self,)), o))


def _cast(name: str, dt: dtype) -> Any:
    """`Tensor.float()` and the like."""

    def method(self: Any, *, memory_format: Any = None) -> Any:
        try:
            mine = self._dtype
        except AttributeError as error:
            raise refusal(name, self, error) from None
        if memory_format is not None:
            memory_format = need(name, _FORMAT, 0, memory_format)
        elif mine is dt:
            return self
        return convert(self, dt, None, False, memory_format)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"This tensor as torch.{dt.name}."
    return method


def contiguous(self: Any, *, memory_format: Any = contiguous_format) -> Any:
    """This tensor if its elements lie in the order of a memory format, else a copy in that order."""
    try:
        if memory_format is contiguous_format and self._contig == 1:
            return self
    except AttributeError as error:
        raise refusal("contiguous", self, error) from None
    return CONTIGUOUS.call((self, need("contiguous", _FORMAT, 0, memory_format)))


def cpu(self: Any, *, memory_format: Any = None) -> Any:
    """This tensor on the CPU."""
    try:
        place = self._device
    except AttributeError as error:
        raise refusal("cpu", self, error) from None
    if memory_format is not None:
        memory_format = need("cpu", _FORMAT, 0, memory_format)
    elif place is CPU:
        return self
    return convert(self, None, CPU, False, memory_format)


def npu(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    """This tensor on an NPU: the current one, or the one that `device` names."""
    if not isinstance(non_blocking, bool):
        raise TypeError(f"npu(): argument 'non_blocking' must be bool, not {type_name(non_blocking)}")
    where = as_device("npu" if device is None else device)
    if where.type != "npu":
        raise RuntimeError(f"Invalid device, must be npu device: npu() got '{where}'")
    return convert(self, None, where, False, memory_format, non_blocking)


def pin_memory(self: Any, device: Any = None) -> Any:
    """This tensor in page-locked memory, which an accelerator copies from without making the host wait."""
    if device is not None:
        _warn_device("pin_memory")
        if as_device(device).type == "cpu":
            raise RuntimeError("CPU device type not an accelerator.")
    if self._device is not CPU:
        spell = tensor_type if self._device.type == "meta" else type_string
        kind = spell(self._dtype, self._device)
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    return pin(self)


def pinned(self: Any, device: Any = None) -> bool:
    """Whether this tensor lies in page-locked memory."""
    if device is not None:
        _device_arg("is_pinned", device)
        _warn_device("is_pinned")
    return not self._keys & SPARSE and is_pinned(self._storage)


def _warn_device(name: str) -> None:
    warnings.warn(
        f"The argument 'device' of Tensor.{name}() is deprecated. Please do not pass this argument.",
        DeprecationWarning,
        stacklevel=3,
    )


def record_stream(self: Any, stream: Any) -> None:
    """Tell the allocator that work on `stream` uses this tensor, so that its memory is not reused before that is
    done."""
    if self._device.type != "npu":
        raise NotImplementedError(
            f"Could not run 'aten::record_stream' with arguments from the "
            f"'{self._device.type.upper()}' backend: its memory belongs to no stream"
        )
    from ._backends.npu.streams import Stream

    if not isinstance(stream, Stream):
        raise TypeError(f"record_stream(): argument 's' (position 1) must be Stream, not {type_name(stream)}")
    if stream.device != self._device:
        raise RuntimeError(f"record_stream(): the tensor is on {self._device} and the stream on {stream.device}")
    self._storage.record_stream(stream.npu_stream)


def type_as(self: Any, other: Any) -> Any:
    """This tensor with the dtype and device of `other`."""
    if not isinstance(other, TensorBase):
        if can_answer(TypeError(), (other,)):
            return ask(HOOKS.tensor.type_as, (self, other), {})
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {type_name(other)}")
    return convert(self, other._dtype, other.device)


def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Without argument the name of this tensor's type, else this tensor with another dtype."""
    if dtype is None:
        if self._keys & SPARSE:
            from ._sparse.methods import type_name

            return type_name(self)
        return type_string(self._dtype, self._device)
    if not isinstance(non_blocking, bool):
        raise TypeError(f"type(): argument 'non_blocking' must be bool, not {c_type_name(type(non_blocking))}")
    if type(dtype) is d.dtype:
        return convert(self, dtype, None, False, None, non_blocking)
    if type(dtype) is str:
        return _as_named(self, dtype, non_blocking)
    from ._legacy import TypeMeta

    if isinstance(dtype, d.dtype):
        return convert(self, dtype, None, False, None, non_blocking)
    if isinstance(dtype, TypeMeta):
        # A class says where, as its name does; a sparse one says nothing of the layout.
        where = self._device if dtype.layout is not strided else as_device(dtype.where)
        return convert(self, dtype.dtype, where, False, None, non_blocking)
    if dtype is HOOKS.tensor:
        return convert(self, d.get_default_dtype(), None, False, None, non_blocking)
    if isinstance(dtype, type):
        raise ValueError(f"invalid type: '{c_type_name(dtype)}'")
    if not isinstance(dtype, str):
        raise TypeError("dtype must be a type, str, or dtype object")
    return _as_named(self, dtype, non_blocking)


def _as_named(self: Any, dtype: str, non_blocking: bool) -> Any:
    """With the dtype, and on the device, of a type of tensors."""
    module, _, kind = dtype.rpartition(".")
    if not _KINDS:
        _KINDS.update({f"{named.scalar_name}Tensor": named for named in d.ALL})
    named = _KINDS.get(kind)
    if named is not None and (module == "torch" or module.startswith("torch.")):
        return convert(self, named, as_device(module[6:]) if module != "torch" else CPU, False, None, non_blocking)
    raise ValueError(f"invalid type: '{dtype}'")


type_.__name__ = "type"


def istft(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`torch.istft` of this transform."""
    from ._stft import istft as fn

    return fn(self, *args, **kwargs)


def stft(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`torch.stft` of this signal."""
    from ._stft import stft as fn

    return fn(self, *args, **kwargs)


def lu(self: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """`torch.lu` of this tensor."""
    from .functional import lu as fn

    return fn(self, pivot, get_infos)


def unique(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """`torch.unique` of this tensor."""
    from .functional import unique as fn

    return fn(self, sorted, return_inverse, return_counts, dim)


def unique_consecutive(self: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    """`torch.unique_consecutive` of this tensor."""
    from .functional import unique_consecutive as fn

    return fn(self, return_inverse, return_counts, dim)


# -- factories ----------------------------------------------------------------------------------------------------
def _new(
    o: Op, head: tuple[Any, ...], dtype: Any, layout: Any, device: Any, pin_memory: Any, requires_grad: Any
) -> Any:
    if requires_grad is not False:
        requires_grad = grad_arg(o.title(), requires_grad)
    if dtype is not None:
        dtype = _dtype_arg(o.title(), dtype)
    if device is not None:
        device = _device_arg(o.title(), device)
    if is_sparse_layout(layout) and o.title() in ("new_zeros", "new_empty") and not head[0]._keys & SPARSE:
        t = HOOKS.sparse_zeros(head[1], dtype or head[0]._dtype, layout, device or head[0]._device)
        return _finish(t, requires_grad)
    t = o.call((*head, dtype, layout, device, pin_memory))
    return _finish(t, requires_grad) if requires_grad else t


def new_empty(
    self: Any,
    *given: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: Any = False,
) -> Any:
    """Uninitialised, with this tensor's dtype and device unless given."""
    return _new(
        _rows.NEW_EMPTY, (self, _size_from("new_empty", given, size)), dtype, layout, device, pin_memory, requires_grad
    )


def new_zeros(
    self: Any,
    *given: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: Any = False,
) -> Any:
    """Zeros, with this tensor's dtype and device unless given."""
    return _new(
        _rows.NEW_ZEROS, (self, _size_from("new_zeros", given, size)), dtype, layout, device, pin_memory, requires_grad
    )


def new_ones(
    self: Any,
    *given: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: Any = False,
) -> Any:
    """Ones, with this tensor's dtype and device unless given."""
    return _new(
        _rows.NEW_ONES, (self, _size_from("new_ones", given, size)), dtype, layout, device, pin_memory, requires_grad
    )


def new_full(
    self: Any,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: Any = False,
) -> Any:
    """`fill_value` everywhere, with this tensor's dtype and device unless given."""
    head = (self, need("new_full", _SIZE, 1, size), _number("new_full", "fill_value", 2, fill_value))
    return _new(_rows.NEW_FULL, head, dtype, layout, device, pin_memory, requires_grad)


def new_empty_strided(
    self: Any,
    size: Any,
    stride: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: Any = False,
) -> Any:
    """Uninitialised with the strides given, and this tensor's dtype and device unless given."""
    head = (self, need("new_empty_strided", _SIZE, 1, size), need("new_empty_strided", _STRIDE, 2, stride))
    return _new(_rows.NEW_EMPTY_STRIDED, head, dtype, layout, device, pin_memory, requires_grad)


def new_tensor(
    self: Any,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: Any = False,
) -> Any:
    """`torch.tensor(data)` with this tensor's dtype and device unless given."""
    if self._keys & PYTHON and has_torch_function((self,)):
        options = dict(dtype=dtype, device=device, requires_grad=requires_grad, layout=layout, pin_memory=pin_memory)
        return ask(HOOKS.tensor.new_tensor, (self, data), {k: v for k, v in options.items() if v})
    requires_grad = grad_arg("new_tensor", requires_grad)
    check_options("new_tensor", layout, pin_memory and not can_pin())
    dt = self._dtype if dtype is None else _dtype_arg("new_tensor", dtype)
    dev = self._device if device is None else _device_arg("new_tensor", device)
    t = from_data(data, dt, dev, "new_tensor")
    return _finish(pin(t) if pin_memory and dev is CPU else t, requires_grad)


def module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """What `load_state_dict` swaps with this parameter or buffer when `torch.__future__` says so."""
    if has_torch_function((self, other)):
        return handle_torch_function(HOOKS.tensor.module_load, (self, other), self, other, assign=assign)
    return other.detach() if assign else self.copy_(other).detach()


METHODS: dict[str, Any] = {
    "module_load": module_load,
    "new_empty": new_empty,
    "new_zeros": new_zeros,
    "new_ones": new_ones,
    "new_full": new_full,
    "new_empty_strided": new_empty_strided,
    "new_tensor": new_tensor,
    "to": to,
    "contiguous": contiguous,
    "cpu": cpu,
    "npu": of_tensor(npu),
    "pin_memory": of_tensor(pin_memory),
    "is_pinned": of_tensor(pinned, "is_pinned"),
    "record_stream": of_tensor(record_stream),
    "type": of_tensor(type_, "type"),
    "type_as": of_tensor(type_as),
    "unique": of_tensor(unique),
    "unique_consecutive": of_tensor(unique_consecutive),
    # Python 2's names.
    "__div__": _div,
    "__rdiv__": _rdiv,
    "__idiv__": TensorBase.__itruediv__,
    "lu": of_tensor(lu),
    "istft": of_tensor(istft),
    "stft": of_tensor(stft),
    **{
        name: _cast(name, dt)
        for name, dt in (
            ("float", d.float32),
            ("double", d.float64),
            ("half", d.float16),
            ("bfloat16", d.bfloat16),
            ("int", d.int32),
            ("long", d.int64),
            ("short", d.int16),
            ("char", d.int8),
            ("byte", d.uint8),
            ("bool", d.bool),
            ("chalf", d.complex32),
            ("cfloat", d.complex64),
            ("cdouble", d.complex128),
        )
    },
}
