"""Rules of copies, creation and operators that only move elements: shape, strides and dtype of what they make.

Invariant: strides follow PyTorch's memory formats; `preserve_format` keeps a dense layout and orders any other one.
"""
from __future__ import annotations

from math import ceil, isfinite
from typing import Any, Final, final

from ..._device import CPU, META, PLACES, can_pin, device
from ..._dispatch.op import Rule, Spec
from ..._dtype import (
    CATEGORY_QUANTIZED,
    DEFAULTS,
    FIRST_STORED,
    complex32,
    complex64,
    dtype,
    dtype_or_none,
    float32,
    float64,
    int64,
)
from ..._dtype_names import c_name
from ..._layout import channels_last, channels_last_3d, contiguous_format, preserve_format, strided
from ..._layout import layout as layout_type
from ..._mypyc import i64
from ..._promotion import number_dtype, promote, result_type_of
from ..._sizes import LONG_MAX, SHORT, expect_sizes, numel_of, too_large
from ..._strides import contiguous_strides, format_of, format_strides, view_strides
from ..._tensor_base import TensorBase
from .base import wrap_dim, wrap_dims
from .dtype_checks import check_number, not_implemented
from .layout import kept_strides, preserved_strides, suggested_format
from .pointwise import broadcast_shapes

Ints = tuple[int, ...]

_PRESERVE: Final[Any] = preserve_format
_CONTIGUOUS: Final[Any] = contiguous_format
_CHANNELS_LAST: Final[Any] = channels_last
_CHANNELS_LAST_3D: Final[Any] = channels_last_3d


# -- copies -------------------------------------------------------------------------------------------------------
@final
class CloneRule(Rule):
    """clone(self, memory_format)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        return Spec(t._shape, kept_strides(t, args[1], t._dtype), t._dtype, t._dtype, t._device)


@final
class LazyCloneRule(Rule):
    """_lazy_clone(self)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        return Spec(t._shape, kept_strides(t, None, t._dtype), t._dtype, t._dtype, t._device)


@final
class ToCopyRule(Rule):
    """to_copy(self, dtype, device, memory_format, non_blocking)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        dt: dtype = t._dtype if args[1] is None else args[1]
        dev: device = t._device if args[2] is None else placed(args[2])
        return Spec(t._shape, kept_strides(t, args[3], dt), dt, dt, dev)


@final
class CopyRule(Rule):
    """copy(self, src, non_blocking): the result is `self` with other values."""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        src = args[1]
        assert isinstance(t, TensorBase)
        if isinstance(src, TensorBase) and src._shape != t._shape:
            check_copy(t._shape, src._shape)
        return Spec(t._shape, preserved_strides(t), t._dtype, t._dtype, t._device)


def check_copy(to: Ints, source: Ints) -> None:
    """What is copied must broadcast to where it goes."""
    shape = broadcast_shapes(to, source)
    if shape != to:
        raise RuntimeError(f"output with shape {list(to)} doesn't match the broadcast shape {list(shape)}")


def check_fill(value: TensorBase) -> None:
    if len(value._shape) != 0:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value._shape)} dimensions.")


@final
class FillRule(Rule):
    """fill(self, value), zero(self)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        if len(args) > 1:
            v = args[1]
            if isinstance(v, TensorBase):
                check_fill(v)
            else:
                check_value(v, t._dtype)
        return Spec(t._shape, preserved_strides(t), t._dtype, t._dtype, t._device)


# -- creation -----------------------------------------------------------------------------------------------------
_STRIDED: Final[Any] = strided
_PIN: Final = (
    "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this "
    "system."
)


def check_options(name: str, layout: Any, pin_memory: Any) -> None:
    """Refuse what no device here can make."""
    if layout is not None and layout is not _STRIDED:
        if not isinstance(layout, layout_type):
            raise TypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
        raise NotImplementedError(f"{name}(): argument 'layout' must be torch.strided, not {layout}")
    if pin_memory:
        if not isinstance(pin_memory, bool):
            raise TypeError(f"{name}(): argument 'pin_memory' must be bool, not {type(pin_memory).__name__}")
        # Factories of the CPU have dealt with it, if there is such memory, before they ask.
        raise RuntimeError("Only dense CPU tensors can be pinned" if can_pin() else _PIN)


def check_sizes(name: str, size: Ints) -> None:
    """Refuse negative sizes; what is too large is refused where strides and bytes are worked out."""
    for n in size:
        if n < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            expect_sizes(size)


def held(dt: dtype) -> dtype:
    """A dtype that tensors have."""
    if dt.category == CATEGORY_QUANTIZED:
        dtype_or_none(dt)  # refuses it by name
    return dt


def placed(dev: Any) -> device:
    """Where a factory puts its result; a CPU has no index, and an accelerator always has one."""
    if dev is None or dev is CPU:
        return CPU
    got: device = dev
    if got.type in ("cuda", "xpu"):
        raise AssertionError(f"Torch not compiled with {got.type.upper()} enabled")
    place = PLACES.get(got.type)
    if place is not None:
        there: device = place(got.index)
        return there
    return CPU if got.type == "cpu" else META if got.type == "meta" else got


@final
class FactoryRule(Rule):
    """(size, ..., dtype, layout, device, pin_memory[, memory_format]); `at` is the position of dtype, `value` that of
    the number whose type decides the dtype when none is given (0: there is none)."""

    def __init__(self, name: str, at: int, value: int) -> None:
        self.name: Final = name
        self.at: Final = at
        self.value: Final = value

    def infer(self, args: tuple[Any, ...]) -> Any:
        at = self.at
        size: Ints = args[0]
        check_sizes(self.name, size)
        if args[at + 1] is not None or args[at + 3]:
            check_options(self.name, args[at + 1], args[at + 3])
        dt: dtype = DEFAULTS.dtype
        if args[at] is not None:
            dt = held(args[at])
            if self.value:
                check_value(args[self.value], dt)
        elif self.value:
            dt = number_dtype(args[self.value])
            if dt is complex32:
                # Other factories follow a default of half precision; this one does not.
                dt = complex64
            check_value(args[self.value], dt)
        stride = contiguous_strides(size)
        if len(args) > at + 4 and args[at + 4] is not None:
            if args[at + 4] is _PRESERVE:
                raise RuntimeError("unsupported memory format Preserve")
            stride = format_strides(size, args[at + 4])
        return Spec(size, stride, dt, dt, placed(args[at + 2]))


@final
class LikeRule(Rule):
    """(self, [value,] dtype, layout, device, pin_memory, memory_format); `at` is the position of dtype."""

    def __init__(self, name: str, at: int) -> None:
        self.name: Final = name
        self.at: Final = at

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        at = self.at
        if args[at + 1] is not None or args[at + 3]:
            check_options(self.name, args[at + 1], args[at + 3])
        dt: dtype = t._dtype if args[at] is None else held(args[at])
        if at == 2:
            check_value(args[1], dt)
        dev = t._device if args[at + 2] is None else placed(args[at + 2])
        return Spec(t._shape, kept_strides(t, args[at + 4], dt), dt, dt, dev)


@final
class NewRule(Rule):
    """(self, size, [value,] dtype, layout, device, pin_memory): a factory with the defaults of a tensor."""

    def __init__(self, name: str, at: int) -> None:
        self.name: Final = name
        self.at: Final = at

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        size: Ints = args[1]
        assert isinstance(t, TensorBase)
        at = self.at
        check_sizes(self.name, size)
        check_options(self.name, args[at + 1], args[at + 3])
        dt: dtype = t._dtype if args[at] is None else held(args[at])
        if at == 3:
            check_value(args[2], dt)
        dev = t._device if args[at + 2] is None else placed(args[at + 2])
        return Spec(size, contiguous_strides(size), dt, dt, dev)


_INT_MAX: Final[dict[str, int]] = {
    "uint8": 255, "int8": 127, "int16": 32767, "int32": 2147483647, "int64": 9223372036854775807, "uint16": 65535,
    "uint32": 4294967295, "uint64": 18446744073709551615,
}
_FLOAT_MAX: Final[dict[str, float]] = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float8_e5m2": 57344.0,
    "float8_e4m3fn": 448.0, "float8_e5m2fnuz": 57344.0, "float8_e4m3fnuz": 240.0, "float8_e8m0fnu": 2.0**127,
}


def fits(value: Any, dt: dtype) -> bool:
    """Whether a Python number can be stored in a dtype; negative integers wrap into unsigned types as in PyTorch."""
    if isinstance(value, bool) or dt.is_bool or dt.code >= FIRST_STORED:
        return True
    if isinstance(value, complex):
        if not dt.is_complex:
            return value.imag == 0 and fits(value.real, dt)
        return True
    if dt.is_integer:
        top = _INT_MAX[dt.name]
        if isinstance(value, float):
            return (0 if not dt.is_signed else -top - 1) <= value <= top
        whole: int = value
        return (-top if not dt.is_signed else -top - 1) <= whole <= top
    if dt.is_floating_point and dt.name in _FLOAT_MAX:
        number = float(value)
        return number != number or abs(number) == float("inf") or abs(number) <= _FLOAT_MAX[dt.name]
    return True


def check_value(value: Any, dt: dtype) -> None:
    if isinstance(value, float):
        if dt is float64 or (dt is float32 and -1e38 < value < 1e38):
            return
    if not fits(value, dt):
        raise RuntimeError(f"value cannot be converted to type {c_name(dt)} without overflow")


# -- ranges -------------------------------------------------------------------------------------------------------
def as_double(x: Any) -> float:
    if isinstance(x, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return float(x)


def shown(x: Any) -> str:
    return f"{x:g}" if isinstance(x, float) else str(int(x))


@final
class ArangeRule(Rule):
    """arange(start, end, step, dtype, layout, device, pin_memory)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        start, end, step = args[0], args[1], args[2]
        if args[4] is not None or args[6]:
            check_options("arange", args[4], args[6])
        dt: dtype = int64
        if args[3] is not None:
            dt = held(args[3])
            if dt.is_bool or dt.is_complex or (dt.is_floating_point and dt.itemsize == 1):
                raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dt.scalar_name}'")
        elif not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
            dt = DEFAULTS.dtype
        n: i64 = 0
        if dt is int64 and is_short(start) and is_short(end) and is_short(step):
            n = short_length(start, end, step)
        size = (int(n) if n > 0 else arange_length(start, end, step, dt),)
        return Spec(size, (1,), dt, dt, placed(args[5]))


def is_short(x: object) -> bool:
    return type(x) is int and -SHORT <= x <= SHORT


def short_length(start: i64, end: i64, step: i64) -> i64:
    """How many integers lie from start to end; nothing or less where that needs a closer look."""
    if step > 0:
        return (end - start + step - 1) // step
    return (start - end - step - 1) // -step if step < 0 else 0


def arange_length(start: Any, end: Any, step: Any, dt: dtype) -> int:
    """How many numbers lie from start to end; PyTorch's errors."""
    length: int
    if dt is int64:
        for x in (start, end, step):
            check_value(x, dt)
    if dt is int64 and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        if (step > 0 and end >= start) or (step < 0 and end <= start):
            length = -((start - end) // step)
            if length > LONG_MAX:
                raise RuntimeError("invalid size, possible overflow?")
            return length
    a = as_double(start)
    b = as_double(end)
    by = as_double(step)
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not (isfinite(a) and isfinite(b)):
        raise RuntimeError(f"unsupported range: {shown(start)} -> {shown(end)}")
    if (by > 0 and b < a) or (by < 0 and b > a):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dt is int64:
        # In integers throughout, after each number was cut to one.
        first, last, jump = int(start), int(end), int(step)
        if jump == 0:
            raise ValueError("step must be nonzero")
        length = max(-((first - last) // jump), 0)
    else:
        steps = (b - a) / by
        if not isfinite(steps):
            raise RuntimeError("invalid size, possible overflow?")
        length = ceil(steps)
    if length > LONG_MAX:
        raise RuntimeError("invalid size, possible overflow?")
    return length


def triangle_count(row: int, col: int, offset: int) -> int:
    """Places of a row x col matrix on and below the diagonal `offset`."""
    first = min(max(-offset, 0), row)  # rows in front of it have none
    full = min(max(col - offset - 1, first), row)  # rows from it on have all columns
    return (first + full + 2 * offset + 1) * (full - first) // 2 + (row - full) * col


@final
class PlacesRule(Rule):
    """(row, col, offset, dtype, layout, device, pin_memory): the places of a triangle of a matrix."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.lower: Final = name == "tril_indices"

    def infer(self, args: tuple[Any, ...]) -> Any:
        row: int = args[0]
        col: int = args[1]
        offset: int = args[2]
        if args[4] is not None or args[6]:
            check_options(self.name, args[4], args[6])
        if row < 0:
            raise RuntimeError(f"row must be non-negative, got{row}")
        if col < 0:
            raise RuntimeError(f"col must be non-negative, got{col}")
        dt: dtype = int64 if args[3] is None else args[3]
        if not dt.is_integer:
            raise NotImplementedError(f"\"{self.name}\" not implemented for '{dt.scalar_name}'")
        below = triangle_count(row, col, offset if self.lower else offset - 1)
        shape = (2, below if self.lower else row * col - below)
        return Spec(shape, contiguous_strides(shape), dt, dt, placed(args[5]))


@final
class SpacedRule(Rule):
    """(start, end, steps, ..., dtype, layout, device, pin_memory); `at` is the position of dtype."""

    def __init__(self, name: str, at: int) -> None:
        self.name: Final = name
        self.at: Final = at

    def infer(self, args: tuple[Any, ...]) -> Any:
        at = self.at
        check_options(self.name, args[at + 1], args[at + 3])
        steps: int = args[2]
        if steps < 0:
            raise RuntimeError("number of steps must be non-negative")
        wanted: Any = args[at]
        dt: dtype = DEFAULTS.dtype
        if isinstance(args[0], complex) or isinstance(args[1], complex):
            dt = DEFAULTS.complex_dtype()
            if wanted is not None and not wanted.is_complex:
                raise RuntimeError(f"torch.{self.name}(): inferred dtype {c_name(dt)} can't be safely cast to passed "
                                   f"dtype {wanted.scalar_name}")
        if wanted is not None:
            dt = wanted
        if dt.is_bool:
            raise NotImplementedError(f"\"{self.name}_cpu\" not implemented for 'Bool'")
        where = placed(args[at + 2])
        if where.type != "meta":
            # A single step is at the start; its power is taken of a double.
            for i in range(min(steps, 2) if steps != 1 or self.name == "linspace" else 0):
                check_number(args[i], dt)
        return Spec((steps,), (1,), dt, dt, where)


@final
class EyeRule(Rule):
    """eye(n, m, dtype, layout, device, pin_memory)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        n: int = args[0]
        m: int = args[1]
        check_options("eye", args[3], args[5])
        if n < 0:
            raise RuntimeError(f"n must be greater or equal to 0, got {n}")
        if m < 0:
            raise RuntimeError(f"m must be greater or equal to 0, got {m}")
        dt: dtype = DEFAULTS.dtype
        if args[2] is not None:
            dt = args[2]
        size = (n, m)
        numel_of(size)
        return Spec(size, contiguous_strides(size), dt, dt, placed(args[4]))


# -- joining ------------------------------------------------------------------------------------------------------
def skipped(t: TensorBase) -> bool:
    """PyTorch's cat ignores tensors of shape (0,), whatever the others' shapes are."""
    return len(t._shape) == 1 and t._shape[0] == 0


def joined_dtype(tensors: tuple[Any, ...]) -> dtype:
    first: TensorBase = tensors[0]
    dt = first._dtype
    mixed = False
    for x in tensors:
        t: TensorBase = x
        if t._dtype is not dt:
            mixed = True
    if not mixed:
        return dt
    dim_dt: dtype | None = None
    zero_dt: dtype | None = None
    for x in tensors:
        t = x
        if len(t._shape) > 0:
            dim_dt = t._dtype if dim_dt is None else promote(dim_dt, t._dtype)
        else:
            zero_dt = t._dtype if zero_dt is None else promote(zero_dt, t._dtype)
    return result_type_of(dim_dt, zero_dt, None)


def check_devices(tensors: tuple[Any, ...]) -> device:
    first: TensorBase = tensors[0]
    dev = first._device
    for x in tensors:
        t: TensorBase = x
        if t._device is not dev and t._device != dev:
            raise RuntimeError(f"Tensor on device {t._device} is not on the expected device {dev}!")
    return dev


@final
class CatRule(Rule):
    """cat(tensors, dim)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        tensors: tuple[Any, ...] = args[0]
        if len(tensors) == 0:
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        first = tensors[0]
        if not isinstance(first, TensorBase):
            raise not_a_tensor(first, 0)
        dt = first._dtype
        dev = first._device
        model: TensorBase | None = None
        total: i64 = 0
        d: i64 = -1
        k: i64 = 0
        mixed = False
        for x in tensors:
            if not isinstance(x, TensorBase):
                raise not_a_tensor(x, k)
            t: TensorBase = x
            shape = t._shape
            if len(shape) == 0:
                raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
            if not skipped(t):
                if model is None:
                    model = t
                    d = cat_dim(args[1], len(shape), tensors)
                    total = shape[d]
                else:
                    if shape != model._shape:
                        check_cat(model._shape, shape, d, k)
                    n: i64 = shape[d]
                    total += n
                    if total < 0:
                        raise cat_too_large(tensors, d, model._shape)
            if t._dtype is not dt:
                mixed = True
            if t._device is not dev and t._device != dev:
                raise RuntimeError(f"Tensor on device {t._device} is not on the expected device {dev}!")
            k += 1
        if mixed:
            dt = joined_dtype(tensors)
        if model is None:
            # Tensors of shape (0,) alone: PyTorch does not look at the dimension.
            return Spec((0,), (1,), dt, dt, dev)
        sizes = list(model._shape)
        sizes[d] = int(total)
        out = tuple(sizes)
        if len(out) < 4:
            return Spec(out, contiguous_strides(out), dt, dt, dev)
        return Spec(out, format_strides(out, common_format(tensors)), dt, dt, dev)


def cat_too_large(tensors: tuple[Any, ...], d: i64, model: tuple[int, ...]) -> RuntimeError:
    """The sum, which 64 bits do not hold, in Python's integers."""
    total: int = 0
    for x in tensors:
        if isinstance(x, TensorBase) and len(x._shape) == len(model) and not skipped(x):
            total += x._shape[d]
    sizes = list(model)
    sizes[d] = total
    return too_large(tuple(sizes))


def cat_dim(dim: int, ndim: int, tensors: tuple[Any, ...]) -> int:
    """The dimension; where it is out of range, a tensor without dimensions is named first."""
    if not -ndim <= dim < ndim:
        for k, t in enumerate(tensors):
            if isinstance(t, TensorBase) and len(t._shape) == 0:
                raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    return wrap_dim(dim, ndim)


def not_a_tensor(x: object, k: i64) -> TypeError:
    return TypeError(f"expected Tensor as element {k} in argument 0, but got {type(x).__name__}")


def check_cat(a: Ints, b: Ints, d: i64, k: i64) -> None:
    if len(a) != len(b):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(a)} and {len(b)}")
    for i in range(len(a)):
        if i != d and a[i] != b[i]:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {d}. Expected size {a[i]} but got size {b[i]} for "
                f"tensor number {k} in the list.")


def common_format(tensors: tuple[Any, ...]) -> Any:
    """The memory format all tensors suggest, or None."""
    form: Any = None
    for i, x in enumerate(tensors):
        t: TensorBase = x
        n = len(t._shape)
        if n != 4 and n != 5:
            return None
        here = suggested_format(t)
        if here is None or (i > 0 and here is not form):
            return None
        form = here
    return form



@final
class StackRule(Rule):
    """stack(tensors, dim)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        tensors: tuple[Any, ...] = args[0]
        if len(tensors) == 0:
            raise RuntimeError("stack expects a non-empty TensorList")
        first: TensorBase = tensors[0]
        shape = first._shape
        d = wrap_dim(args[1], len(shape) + 1)
        dev = first._device
        dt = first._dtype
        alike = True
        i: i64 = 0
        for x in tensors:
            t: TensorBase = x
            if t._shape is not shape and t._shape != shape:
                raise RuntimeError(
                    f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                    f"{list(t._shape)} at entry {i}")
            if t._dtype is not dt or t._device is not dev:
                alike = False
            i += 1
        if not alike:
            dev = check_devices(tensors)
            dt = joined_dtype(tensors)
        sizes = list(shape)
        sizes.insert(d, len(tensors))
        out = tuple(sizes)
        return Spec(out, stacked_strides(tensors, d, out), dt, dt, dev)


def stacked_strides(tensors: tuple[Any, ...], d: int, out: Ints) -> Ints:
    """As if the tensors were joined along dimension `d` first and that dimension then divided."""
    if len(out) < 4:
        return contiguous_strides(out)
    if d == len(out) - 1:
        return format_strides(out, stacked_format(tensors, d))
    form = common_format(tensors)
    if form is None:
        return contiguous_strides(out)

    sizes = list(out)
    del sizes[d]
    sizes[d] *= len(tensors)
    joined = tuple(sizes)
    found = view_strides(joined, format_strides(joined, form), out, numel_of(out))
    assert found is not None
    return found


def stacked_format(tensors: tuple[Any, ...], d: int) -> Any:
    """The format that all tensors suggest after they got a last dimension, `d`, of size one."""
    form: Any = None
    for i, x in enumerate(tensors):
        t: TensorBase = x
        n = len(t._shape)
        if n != 3 and n != 4:
            return None
        shape = list(t._shape)
        stride = list(t._stride)
        shape.insert(d, 1)
        stride.insert(d, 1)
        here = format_of(tuple(shape), tuple(stride))
        if here is None or (i > 0 and here is not form):
            return None
        form = here
    return form


@final
class FlipRule(Rule):
    """flip(self, dims)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        wrap_dims(args[1], len(t._shape))
        return Spec(t._shape, preserved_strides(t), t._dtype, t._dtype, t._device)


@final
class TriangleRule(Rule):
    """tril(self, diagonal), triu(self, diagonal)"""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        if len(t._shape) < 2:
            raise RuntimeError(f"{self.name}: input tensor must have at least 2 dimensions")
        name = t._dtype.name
        if (name in ("uint16", "uint32", "uint64") or name.startswith("float8")) and t._device.type == "cpu":
            raise not_implemented(self.name, t._dtype)
        return Spec(t._shape, contiguous_strides(t._shape), t._dtype, t._dtype, t._device)
