"""Public functions that make tensors from sizes and numbers, and the arguments that factories share.

Invariant: a factory that is not told a device uses the one of `with torch.device(...)` or `set_default_device`; what
shares memory with its argument stays where that memory is.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from ._core_operators import HOOKS
from ._device import as_device, device
from ._dispatch.binding import BAD, fitted, is_element, need, plain_ints
from ._dispatch.keys import SPARSE
from ._dispatch.op import Op, c_type_name, type_name
from ._dispatch.schema import Arg
from ._dispatch.state import STATE, current_default_device
from ._dtype import dtype_or_none
from ._layout import layout as Layout
from ._layout import strided
from ._numbers import checked_number, is_number
from ._ops import copy as _copy_rows
from ._ops import create as _rows
from ._ops.rules.shape import placed
from ._sizes import long
from ._tensor_base import TensorBase

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]

_MISSING: Final[Any] = object()
_ARANGE: Final[Op] = _rows.ARANGE
_EMPTY: Final[Op] = _rows.EMPTY
_EMPTY_LIKE: Final[Op] = _rows.EMPTY_LIKE
_EMPTY_STRIDED: Final[Op] = _rows.EMPTY_STRIDED
_EYE: Final[Op] = _rows.EYE
_FULL: Final[Op] = _rows.FULL
_FULL_LIKE: Final[Op] = _rows.FULL_LIKE
_LINSPACE: Final[Op] = _rows.LINSPACE
_LOGSPACE: Final[Op] = _rows.LOGSPACE
_ONES: Final[Op] = _rows.ONES
_ONES_LIKE: Final[Op] = _rows.ONES_LIKE
_SCALAR_TENSOR: Final[Op] = _rows.SCALAR_TENSOR
_TRIL_INDICES: Final[Op] = _rows.TRIL_INDICES
_TRIU_INDICES: Final[Op] = _rows.TRIU_INDICES
_ZEROS: Final[Op] = _rows.ZEROS
_ZEROS_LIKE: Final[Op] = _rows.ZEROS_LIKE
_TO_COPY: Final[Op] = _copy_rows.TO_COPY
_SIZE: Final = Arg("size", "int", False, True, 0, "", False, False, False, None, True)
_STEPS: Final = Arg("steps", "int", False, False, 0, "", False, False, False, None)
_BASE: Final = Arg("base", "float", False, False, 0, "", False, False, False, None)
_STRIDE: Final = Arg("stride", "int", False, True, 0, "", False, False, False, None, True)


# -- arguments ----------------------------------------------------------------------------------------------------
# Factories that have a signature for generators besides; what fits neither is told so.
_OVERLOADED: Final = frozenset({"rand", "randn"})


def _sizes(fname: str, given: tuple[Any, ...]) -> Any:
    """Sizes given one by one or as one sequence."""
    if plain_ints(given):
        return given
    if len(given) == 1 and (isinstance(given[0], (tuple, list)) or not is_element(given[0])):
        return need(fname, _SIZE, 1, given[0])
    if not is_element(given[0]):
        if fname in _OVERLOADED:
            raise stray(fname, given, {})
        raise TypeError(f"{fname}() takes 1 positional argument but {len(given)} were given")
    return need(fname, _SIZE, 1, given)


def _size_list(fname: str, size: Any) -> Any:
    """Sizes that must come as one sequence."""
    return size if type(size) is tuple and plain_ints(size) else need(fname, _SIZE, 1, size)


def _size_from(fname: str, given: tuple[Any, ...], size: Any) -> Any:
    """`zeros(2, 3)`, `zeros((2, 3))` or `zeros(size=(2, 3))`."""
    if size is None:
        if plain_ints(given):
            return given
        if not given:
            raise TypeError(f'{fname}() missing 1 required positional arguments: "size"')
        return _sizes(fname, given)
    if given:
        raise TypeError(f"{fname}() got multiple values for argument 'size'")
    return _sizes(fname, (size,))


def _given(fname: str, **arguments: Any) -> None:
    """PyTorch's complaint about arguments that were left out."""
    missing = [f'"{name}"' for name, value in arguments.items() if value is _MISSING]
    if missing:
        plural = "s" if len(missing) == 1 else ""  # the wrong way round, as PyTorch has it
        raise TypeError(f"{fname}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}")


def stray(fname: str, given: tuple[Any, ...], unknown: dict[str, Any]) -> TypeError:
    """PyTorch's complaint about a keyword that a factory does not have."""
    from ._dispatch.complaint import unknown_keyword

    return unknown_keyword(fname, tuple([x for x in given if x is not _MISSING and x is not None]), unknown)


def _dtype_arg(fname: str, dt: Any) -> Any:
    if dt is None:
        return None
    found = dtype_or_none(dt)
    if found is None:
        raise TypeError(f"{fname}(): argument 'dtype' must be torch.dtype, not {type_name(dt)}")
    return found


def _device_arg(fname: str, dev: Any) -> Any:
    if dev is None:
        return None
    if isinstance(dev, device):
        return placed(dev)
    if isinstance(dev, bytes):
        dev = dev.decode(errors="replace")
    if isinstance(dev, bool) or not isinstance(dev, (str, int)):
        raise TypeError(f"{fname}(): argument 'device' must be torch.device, not {type_name(dev)}")
    return placed(as_device(dev))


def _factory_device(fname: str, dev: Any) -> Any:
    if dev is None:
        if STATE.active == 0:
            return STATE.default_device
        return current_default_device()
    return _device_arg(fname, dev)


def _number(fname: str, name: str, position: int, x: Any) -> Any:
    """A Python number, or a tensor without dimensions or gradient that holds one."""
    if type(x) is float:
        return x
    if type(x) is int:
        return x  # whether it fits is asked after the types of all arguments: `_run_numbers`
    if isinstance(x, TensorBase) and x.requires_grad:
        raise TypeError(f"{fname}(): argument '{name}' (position {position}) must be Number, not Tensor")
    return need(fname, Arg(name, "Scalar", False, False, 0, "", False, False, False, None), position, x)


def grad_arg(name: str, value: Any) -> bool:
    """Whether a factory's result requires grad; None is no."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError(f"{name}(): argument 'requires_grad' must be bool, not {c_type_name(type(value))}")


def _finish(t: Any, requires_grad: bool) -> Any:
    if requires_grad:
        if not t._dtype.is_inexact:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad = True
    return t


def is_sparse_layout(layout: Any) -> bool:
    return layout is not None and layout is not strided and isinstance(layout, Layout)


def _run(o: Op, args: tuple[Any, ...], out: Any, requires_grad: Any) -> Any:
    """Call a factory, into `out` if given."""
    if requires_grad is not False:
        requires_grad = grad_arg(o.title(), requires_grad)
    if out is not None:
        if not isinstance(out, TensorBase):
            raise TypeError(f"{o.title()}(): argument 'out' must be Tensor, not {type_name(out)}")
        return _finish(o.row.out_op.call((*args, out)), requires_grad)
    t = o.call(args)
    return _finish(t, requires_grad) if requires_grad else t


def _run_numbers(o: Op, args: tuple[Any, ...], out: Any, requires_grad: Any) -> Any:
    """`_run` with numbers among the arguments."""
    for a in args:
        checked_number(a)
    return _run(o, args, out, requires_grad)


# -- sizes and numbers --------------------------------------------------------------------------------------------
def empty(
    *given: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """empty(*size, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False): uninitialised memory."""
    if unknown:
        raise stray("empty", given, unknown)
    args = (
        _size_from("empty", given, size),
        _dtype_arg("empty", dtype),
        layout,
        _factory_device("empty", device),
        pin_memory,
        memory_format,
    )
    if is_sparse_layout(layout) and out is None:
        return _finish(HOOKS.sparse_zeros(args[0], args[1], layout, args[3]), requires_grad)
    return _run(_EMPTY, args, out, requires_grad)


def zeros(
    *given: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """zeros(*size, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown:
        raise stray("zeros", given, unknown)
    args = (
        _size_from("zeros", given, size),
        _dtype_arg("zeros", dtype),
        layout,
        _factory_device("zeros", device),
        pin_memory,
    )
    if is_sparse_layout(layout) and out is None:
        return _finish(HOOKS.sparse_zeros(args[0], args[1], layout, args[3]), requires_grad)
    return _run(_ZEROS, args, out, requires_grad)


def ones(
    *given: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """ones(*size, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown:
        raise stray("ones", given, unknown)
    args = (
        _size_from("ones", given, size),
        _dtype_arg("ones", dtype),
        layout,
        _factory_device("ones", device),
        pin_memory,
    )
    return _run(_ONES, args, out, requires_grad)


def full(
    size: Any = _MISSING,
    fill_value: Any = _MISSING,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """full(size, fill_value, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown:
        raise stray("full", (size, fill_value), unknown)
    _given("full", size=size, fill_value=fill_value)
    args = (
        _size_list("full", size),
        _number("full", "fill_value", 2, fill_value),
        _dtype_arg("full", dtype),
        layout,
        _factory_device("full", device),
        pin_memory,
    )
    return _run_numbers(_FULL, args, out, requires_grad)


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
    **unknown: Any,
) -> Any:
    """empty_strided(size, stride, *, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown:
        raise stray("empty_strided", (size, stride), unknown)
    fname = "empty_strided"
    args = (
        need(fname, _SIZE, 1, size),
        need(fname, _STRIDE, 2, stride),
        _dtype_arg(fname, dtype),
        layout,
        _factory_device(fname, device),
        pin_memory,
    )
    return _run(_EMPTY_STRIDED, args, None, requires_grad)


def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """A tensor without dimensions that holds one number."""
    if unknown:
        raise stray("scalar_tensor", (s,), unknown)
    fname = "scalar_tensor"
    args = (_number(fname, "s", 1, s), _dtype_arg(fname, dtype), layout, _factory_device(fname, device), pin_memory)
    return _run_numbers(_SCALAR_TENSOR, args, None, requires_grad)


_ARANGE_FORMS: Final = (
    " * (Number end, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device device = "
    "None, bool pin_memory = False, bool requires_grad = False)\n"
    " * (Number start, Number end, *, torch.dtype dtype = None, torch.layout layout = None, torch.device device = "
    "None, bool pin_memory = False, bool requires_grad = False)\n"
    " * (Number start, Number end, Number step = 1, *, Tensor out = None, torch.dtype dtype = None, torch.layout "
    "layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False)\n"
)


def arange(
    *given: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """arange(start=0, end, step=1, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown:
        raise stray("arange", given, unknown)
    n = len(given)
    if n == 1 and end is None and start is None:
        end = given[0]
    elif n and start is None and n <= 3 and (n < 2 or end is None) and (n < 3 or step is None):
        start = given[0]
        if n > 1:
            end = given[1]
        if n > 2:
            step = given[2]
    elif n or end is None:
        shown = ", ".join([type_name(g) for g in given])
        raise TypeError(
            f"arange() received an invalid combination of arguments - got ({shown}), but expected one of:\n"
            + _ARANGE_FORMS
        )
    first = n != 3 and start is None
    args = (
        0 if start is None else _number("arange", "start", 1, start),
        _number("arange", "end", 1 if first else 2, end),
        1 if step is None else _number("arange", "step", 3, step),
        _dtype_arg("arange", dtype),
        layout,
        _factory_device("arange", device),
        pin_memory,
    )
    return _run_numbers(_ARANGE, args, out, requires_grad)


def arange_to(args: tuple[Any, ...]) -> Any:
    """arange(end, ...), with its options in the operator's order."""
    return _ARANGE.call((0, args[0], 1, args[1], args[2], args[3], args[4]))


def linspace(
    start: Any = _MISSING,
    end: Any = _MISSING,
    steps: Any = _MISSING,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """linspace(start, end, steps, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown or not (_is_end(start) and _is_end(end) and fitted("", _STEPS, steps) is not BAD):
        raise stray("linspace", (start, end, steps), unknown)
    if isinstance(start, TensorBase) or isinstance(end, TensorBase):
        device = _endpoints_device("linspace", start, end, device)
        start, end = _endpoint(start), _endpoint(end)
    args = (
        _number("linspace", "start", 1, start),
        _number("linspace", "end", 2, end),
        _int("linspace", "steps", 3, steps),
        _dtype_arg("linspace", dtype),
        layout,
        _factory_device("linspace", device),
        pin_memory,
    )
    return _run_numbers(_LINSPACE, args, out, requires_grad)


def _is_end(x: Any) -> bool:
    return isinstance(x, TensorBase) or is_number(x)


def _endpoints_device(fname: str, start: Any, end: Any, device: Any) -> Any:
    """Ends may be tensors without dimensions; ends without data give a result without data."""
    sizes = [len(x._shape) if isinstance(x, TensorBase) else 0 for x in (start, end)]
    if sizes[0] or sizes[1]:
        ends = [(name, x) for name, x in (("start", start), ("end", end)) if isinstance(x, TensorBase)]
        got = " and ".join(f"{name} with {len(x._shape)} dimension(s)" for name, x in ends)
        raise RuntimeError(f"{fname} only supports 0-dimensional start and end tensors, but got {got}.")
    if device is None:
        for x in (start, end):
            if isinstance(x, TensorBase) and x._device.type == "meta":
                return x._device
    return device


def _endpoint(x: Any) -> Any:
    if not isinstance(x, TensorBase):
        return x
    if x._device.type == "meta":
        return 0j if x._dtype.is_complex else 0.0 if x._dtype.is_floating_point else 0
    return HOOKS.tensor.item(x)


def logspace(
    start: Any = _MISSING,
    end: Any = _MISSING,
    steps: Any = _MISSING,
    base: Any = 10.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=strided, device=None)"""
    power = fitted("", _BASE, base)
    if unknown or power is BAD or not (_is_end(start) and _is_end(end) and fitted("", _STEPS, steps) is not BAD):
        raise stray("logspace", (start, end, steps) if type(base) is float else (start, end, steps, base), unknown)
    if isinstance(start, TensorBase) or isinstance(end, TensorBase):
        device = _endpoints_device("logspace", start, end, device)
        start, end = _endpoint(start), _endpoint(end)
    args = (
        _number("logspace", "start", 1, start),
        _number("logspace", "end", 2, end),
        _int("logspace", "steps", 3, steps),
        float(power),
        _dtype_arg("logspace", dtype),
        layout,
        _factory_device("logspace", device),
        pin_memory,
    )
    return _run_numbers(_LOGSPACE, args, out, requires_grad)


def _int(fname: str, name: str, position: int, x: Any) -> Any:
    if type(x) is int:
        return long(x)
    symbolic = fname in ("eye", "randperm")
    return need(fname, Arg(name, "int", False, False, 0, "", False, False, False, None, symbolic), position, x)


def eye(
    n: Any = _MISSING,
    m: Any = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """eye(n, m=None, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False)"""
    if unknown or n is _MISSING:
        raise stray("eye", (n, m), unknown)
    rows = _int("eye", "n", 1, n)
    args = (
        rows,
        rows if m is None else _int("eye", "m", 2, m),
        _dtype_arg("eye", dtype),
        layout,
        _factory_device("eye", device),
        pin_memory,
    )
    return _run(_EYE, args, out, requires_grad)


def eye_square(args: tuple[Any, ...]) -> Any:
    """eye(n, ...), with its options in the operator's order."""
    return _EYE.call((args[0], args[0], args[1], args[2], args[3], args[4]))


def tril_indices(
    row: Any,
    col: Any,
    offset: Any = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: Any = False,
    **unknown: Any,
) -> Any:
    """Row and column numbers of the lower triangle, as a tensor with two rows."""
    if unknown:
        raise stray("tril_indices", (row, col, offset), unknown)
    fname = "tril_indices"
    args = (
        _int(fname, "row", 1, row),
        _int(fname, "col", 2, col),
        _int(fname, "offset", 3, offset),
        _dtype_arg(fname, dtype),
        layout,
        _factory_device(fname, device),
        pin_memory,
    )
    return _run(_TRIL_INDICES, args, None, False)


def triu_indices(
    row: Any,
    col: Any,
    offset: Any = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: Any = False,
    **unknown: Any,
) -> Any:
    """Row and column numbers of the upper triangle, as a tensor with two rows."""
    if unknown:
        raise stray("triu_indices", (row, col, offset), unknown)
    fname = "triu_indices"
    args = (
        _int(fname, "row", 1, row),
        _int(fname, "col", 2, col),
        _int(fname, "offset", 3, offset),
        _dtype_arg(fname, dtype),
        layout,
        _factory_device(fname, device),
        pin_memory,
    )
    return _run(_TRIU_INDICES, args, None, False)


# -- like another tensor ------------------------------------------------------------------------------------------
def _like(
    o: Op,
    head: tuple[Any, ...],
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    memory_format: Any,
    requires_grad: Any,
) -> Any:
    if requires_grad is not False:
        requires_grad = grad_arg(o.title(), requires_grad)
    if not isinstance(head[0], TensorBase):
        _given(o.title(), input=head[0])
        from ._overrides import ask, can_answer

        if can_answer(TypeError(), (head[0],)):
            given = {"dtype": dtype, "layout": layout, "device": device, "memory_format": memory_format}
            return ask(getattr(sys.modules[__package__], o.title()), head, {k: v for k, v in given.items() if v})
        raise TypeError(f"{o.title()}(): argument 'input' (position 1) must be Tensor, not {type(head[0]).__name__}")
    if dtype is not None:
        dtype = _dtype_arg(o.title(), dtype)
    if device is not None:
        device = _device_arg(o.title(), device)
    if is_sparse_layout(layout) and o.title() in ("zeros_like", "empty_like") and not head[0]._keys & SPARSE:
        first: TensorBase = head[0]
        made = HOOKS.sparse_zeros(first._shape, dtype or first._dtype, layout, device or first._device)
        return _finish(made, requires_grad)
    t = o.call(head + (dtype, layout, device, pin_memory, memory_format))
    return _finish(t, requires_grad) if requires_grad else t


def empty_like(
    input: Any = _MISSING,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """Uninitialised, with the shape and layout of `input`."""
    if unknown:
        raise stray("empty_like", (input,), unknown)
    return _like(_EMPTY_LIKE, (input,), dtype, layout, device, pin_memory, memory_format, requires_grad)


def zeros_like(
    input: Any = _MISSING,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """Zeros with the shape and layout of `input`."""
    if unknown:
        raise stray("zeros_like", (input,), unknown)
    return _like(_ZEROS_LIKE, (input,), dtype, layout, device, pin_memory, memory_format, requires_grad)


def ones_like(
    input: Any = _MISSING,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """Ones with the shape and layout of `input`."""
    if unknown:
        raise stray("ones_like", (input,), unknown)
    return _like(_ONES_LIKE, (input,), dtype, layout, device, pin_memory, memory_format, requires_grad)


def full_like(
    input: Any = _MISSING,
    fill_value: Any = _MISSING,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """`fill_value` everywhere, with the shape and layout of `input`."""
    if unknown:
        raise stray("full_like", (input, fill_value), unknown)
    _given("full_like", input=input, fill_value=fill_value)
    value = _number("full_like", "fill_value", 2, fill_value)
    return _like(_FULL_LIKE, (input, value), dtype, layout, device, pin_memory, memory_format, requires_grad)
