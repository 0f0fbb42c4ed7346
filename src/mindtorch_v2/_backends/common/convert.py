"""`Tensor.to` and its relatives: another dtype, device or memory format.

Invariant: a conversion that changes nothing returns the tensor itself; any other is one `to_copy`, which is recorded.
"""
from __future__ import annotations

from typing import Any

from ... import _dtype as d
from ..._device import CPU, as_device, device
from ..._dispatch.op import Op, type_name
from ..._dtype import dtype, dtype_or_none
from ..._layout import memory_format as memory_format_type
from ..._layout import preserve_format
from ..._ops.rules.shape import is_contiguous_as, placed
from ..._tensor_base import TensorBase

_FORMS = (
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
)


class _Rows:
    """The operator behind every conversion; set when its table is loaded."""

    to_copy: Op


ROWS = _Rows()


def _refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    shown = [type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in kwargs.items()]
    # PyTorch closes a list of keywords alone with a comma.
    end = ", " if kwargs and not args else ""
    return TypeError(
        f"to() received an invalid combination of arguments - got ({', '.join(shown)}{end}), but expected one of:\n" + _FORMS)


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, bool, Any]:
    """dtype, device, non_blocking, copy and memory format from the arguments of `to` in any of its forms."""
    rest = dict(kwargs)
    form = rest.pop("memory_format", None)
    names = ["device", "dtype", "non_blocking", "copy"]
    if args:
        first = args[0]
        if isinstance(first, TensorBase):
            names = ["tensor", "non_blocking", "copy"]
        elif dtype_or_none(first) is not None:
            names = ["dtype", "non_blocking", "copy"]
    elif "tensor" in rest:
        names = ["tensor", "non_blocking", "copy"]
    given = dict(zip(names, args))
    if len(args) > len(names) or given.keys() & rest.keys() or rest.keys() - set(names):
        raise _refuse(args, kwargs)
    given.update(rest)
    other = given.get("tensor")
    dt, dev = given.get("dtype"), given.get("device")
    if other is not None:
        if not isinstance(other, TensorBase):
            raise _refuse(args, kwargs)
        dt, dev = other._dtype, other._device
    if dt is not None:
        dt = dtype_or_none(dt)
        if dt is None:
            raise _refuse(args, kwargs)
    if dev is not None:
        if isinstance(dev, bool) or not isinstance(dev, (device, str, int)):
            raise _refuse(args, kwargs)
        dev = as_device(dev)
    flags = (given.get("non_blocking", False), given.get("copy", False))
    if not all(isinstance(f, bool) for f in flags) or not (form is None or isinstance(form, memory_format_type)):
        raise _refuse(args, kwargs)
    return dt, dev, flags[0], flags[1], form


def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensor.to(dtype | device | other, non_blocking=False, copy=False, *, memory_format=torch.preserve_format)"""
    if len(args) == 1 and not kwargs:
        only = args[0]
        if only is self._dtype or only is self._device:
            return self
        if isinstance(only, dtype):
            return ROWS.to_copy.call((self, only, None, None))
    # Copies between devices here are complete when they return, so non_blocking has nothing to change.
    dt, dev, _, copy, form = parse_to(args, kwargs)
    return convert(self, dt, dev, copy, form)


def convert(t: Any, dt: Any, dev: Any, copy: bool = False, form: Any = None) -> Any:
    """`t` with another dtype, device or memory format; `t` itself when it has them already."""
    where = t._device if dev is None else placed(dev)
    if not copy and (dt is None or dt is t._dtype) and (where is t._device or where == t._device) and (
            form is None or form is preserve_format or is_contiguous_as(t, form)):
        return t
    return ROWS.to_copy.call((t, dt, where, form))


def _cast(name: str, dt: dtype) -> Any:
    """`Tensor.float()` and the like."""
    def method(self: Any, memory_format: Any = None) -> Any:
        if self._dtype is dt and memory_format is None:
            return self
        return convert(self, dt, None, False, memory_format)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"This tensor as torch.{dt.name}."
    return method


def cpu(self: Any, memory_format: Any = None) -> Any:
    """This tensor on the CPU."""
    if self._device is CPU and memory_format is None:
        return self
    return convert(self, None, CPU, False, memory_format)


def type_as(self: Any, other: Any) -> Any:
    """This tensor with the dtype and device of `other`."""
    return convert(self, other._dtype, other._device)


_TYPE_NAMES = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor",
    "bool": "BoolTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    "float8_e5m2": "Float8_e5m2Tensor", "float8_e4m3fn": "Float8_e4m3fnTensor", "uint16": "UInt16Tensor",
    "uint32": "UInt32Tensor", "uint64": "UInt64Tensor",
}


def type_string(t: Any) -> str:
    """`torch.FloatTensor`: the old name of a dtype on a device."""
    where = "" if t._device.type == "cpu" else t._device.type + "."
    return f"torch.{where}{_TYPE_NAMES[t._dtype.name]}"


def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Without argument the name of this tensor's type, else this tensor with another dtype."""
    if dtype is None:
        return type_string(self)
    dt = dtype_or_none(dtype)
    if dt is not None:
        return convert(self, dt, None)
    if not isinstance(dtype, str):
        raise TypeError(f"dtype must be a type, str, or dtype object, not {type_name(dtype)}")
    module, _, kind = dtype.rpartition(".")
    for name, old in _TYPE_NAMES.items():
        if old == kind and (module == "torch" or module.startswith("torch.")):
            return convert(self, getattr(d, name), as_device(module[6:] or "cpu"))
    raise ValueError(f"invalid type: '{dtype}'")


METHODS: dict[str, Any] = {
    "to": to, "cpu": cpu, "type": type_, "type_as": type_as,
    **{name: _cast(name, dt) for name, dt in (
        ("float", d.float32), ("double", d.float64), ("half", d.float16), ("bfloat16", d.bfloat16), ("int", d.int32),
        ("long", d.int64), ("short", d.int16), ("char", d.int8), ("byte", d.uint8), ("bool", d.bool),
        ("cfloat", d.complex64), ("cdouble", d.complex128))},
}
