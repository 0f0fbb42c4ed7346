"""`Tensor.to` and its relatives: another dtype, device or memory format.

Invariant: a conversion that changes nothing returns the tensor itself; any other is one `to_copy`, which is recorded.
"""

from __future__ import annotations

from typing import Any, Final

from ..._core_operators import CORE
from ..._device import as_device, device
from ..._dispatch.op import type_name
from ..._dtype import dtype, dtype_or_none
from ..._layout import contiguous_format, preserve_format
from ..._layout import memory_format as memory_format_type
from ..._ops.rules.layout import suggested_format
from ..._ops.rules.shape import placed
from ..._tensor_base import TensorBase

_FORMS: Final = (
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = "
    "None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
)


def _refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    shown = [type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in kwargs.items()]
    # PyTorch closes a list of keywords alone with a comma.
    end = ", " if kwargs and not args else ""
    return TypeError(
        f"to() received an invalid combination of arguments - got ({', '.join(shown)}{end}), but expected one of:\n"
        + _FORMS
    )


def _usual(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, bool, Any] | None:
    """What `parse_to` answers for a dtype, a device, or a device and a dtype, and keywords of the right types; None for
    any other call, right or wrong."""
    n = len(args)
    dt: Any = None
    dev: Any = None
    form: Any = None
    non_blocking = copy = False
    if n > 2:
        return None
    if n != 0:
        first = args[0]
        if isinstance(first, dtype):
            dt = first
        elif isinstance(first, (device, str)):
            dev = first
        else:
            return None
        if n == 2:
            if dt is not None or not isinstance(args[1], dtype):
                return None
            dt = args[1]
    for name, value in kwargs.items():
        if name == "dtype" and dt is None and isinstance(value, dtype):
            dt = value
        elif name == "device" and n == 0 and isinstance(value, (device, str)):
            dev = value
        elif name == "non_blocking" and isinstance(value, bool):
            non_blocking = value
        elif name == "copy" and isinstance(value, bool):
            copy = value
        elif name == "memory_format" and isinstance(value, memory_format_type):
            form = value
        else:
            return None
    return dt, None if dev is None else as_device(dev), non_blocking, copy, form


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, bool, Any]:
    """dtype, device, non_blocking, copy and memory format from the arguments of `to` in any of its forms."""
    usual = _usual(args, kwargs)
    if usual is not None:
        return usual
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


def convert(t: Any, dt: Any, dev: Any, copy: bool = False, form: Any = None, non_blocking: bool = False) -> Any:
    """`t` with another dtype, device or memory format; `t` itself when it has them already."""
    where = t._device if dev is None else placed(dev)
    if (
        not copy
        and (dt is None or dt is t._dtype)
        and (where is t._device or where == t._device)
        and (form is None or form is preserve_format or form is (suggested_format(t) or contiguous_format))
    ):
        # As PyTorch: what has no other format counts as contiguous, whatever its strides.
        return t
    return CORE.to_copy.call((t, dt, None if dev is None else where, form, non_blocking))
