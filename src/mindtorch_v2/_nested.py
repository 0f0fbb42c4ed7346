"""Nested Python sequences to memory: the shape and dtype PyTorch infers, and the numbers stored in that dtype.

Invariant: nothing is returned unless every leaf was checked and stored; errors carry PyTorch's text.
"""

from __future__ import annotations

from _struct import pack_into
from typing import Any, Final, final

from . import _native
from ._device import CPU
from ._dispatch.keys import CPU as CPU_KEY
from ._dispatch.op import c_type_name
from ._dtype import DEFAULTS, dtype, float64, from_np, int64, uint64
from ._dtype import bool as bool_
from ._mypyc import i64
from ._numbers import no_number
from ._ops.rules.shape import fits
from ._promotion import promote
from ._sizes import is_long, is_ragged
from ._strides import contiguous_strides
from ._tensor_base import TensorBase, make, numel

_Storage: Final[Any] = _native.Storage
_copy: Final[Any] = _native.copy
_fill: Final[Any] = _native.fill
_pack_into: Final[Any] = pack_into
_list_shape: Final[Any] = _native.list_shape
_from_list: Final[Any] = _native.from_list

MAX_DIMS: Final[i64] = 128
LARGE: Final = 1 << 24


@final
class Parsed:
    """What was read: the sizes, the numbers in row-major order, and the dtype their types suggest."""

    def __init__(self) -> None:
        self.shape: list[int] = []
        self.flat: list[Any] = []
        self.dtype: dtype | None = None


def is_sequence(x: Any) -> bool:
    """What PyTorch descends into: anything with Python's sequence protocol except tensors."""
    if isinstance(x, (list, tuple)):
        return True
    if isinstance(x, (float, int, complex, TensorBase, dict, set, type)) or x is None:
        return False
    return hasattr(x, "__getitem__") and hasattr(x, "__len__") and not hasattr(x, "keys")


def from_data(data: Any, wanted: dtype | None) -> TensorBase:
    """A new CPU tensor from a number or nested sequences."""
    if type(data) is float:
        dt = DEFAULTS.dtype if wanted is None else wanted
        if dt.is_floating_point:
            one_element = _Storage(dt.itemsize)
            _fill(one_element, 0, (), dt.code, (), data)
            return make(one_element, 0, (), (), dt, CPU, CPU_KEY)
    elif isinstance(data, (list, tuple)):
        quick = from_lists(data, wanted)
        if quick is not None:
            return quick
    p = read(data, wanted)
    shape = tuple(p.shape)
    found = p.dtype
    assert found is not None
    return make(store(p), 0, shape, contiguous_strides(shape), found, CPU, CPU_KEY)


def from_lists(data: Any, wanted: dtype | None) -> TensorBase | None:
    """Lists of plain numbers, read by the native module; None where something needs a closer look, or an error."""
    try:
        found = _list_shape(data)
    except (TypeError, ValueError):
        return None
    shape: tuple[int, ...] = found[0]
    kind: i64 = found[1]
    if kind > 3:
        return None
    dt: dtype
    if wanted is None:
        if kind == 2 or kind < 0:
            dt = DEFAULTS.dtype
        elif kind == 1:
            dt = int64
        elif kind == 0:
            dt = bool_
        else:
            dt = DEFAULTS.complex_dtype()
    else:
        # Numbers that may not fit are checked one by one.
        if wanted.is_integer and not (wanted is int64 and kind < 2) or kind == 3 and not wanted.is_complex:
            return None
        dt = wanted
    return make(_from_list(data, shape, dt.code), 0, shape, contiguous_strides(shape), dt, CPU, CPU_KEY)


def read(data: Any, wanted: dtype | None) -> Parsed:
    """Flatten `data`; `wanted` is the dtype asked for, if any."""
    p = Parsed()
    if isinstance(data, (float, int, complex)):
        p.flat.append(data)
    elif isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    elif is_sequence(data):
        sizes(data, p.shape)
        if 0 in p.shape:
            # Of no elements nothing is stored; what else the lists hold only says something about the dtype.
            p.dtype = element_dtype(data, 0) if wanted is None else wanted
            return p
        check_room(p.shape)
        gather(data, p.shape, 0, p.flat, wanted)
    else:
        p.flat.append(data)
    if wanted is None:
        wanted = common_dtype(p.flat, 0)
        if wanted is None:
            wanted = DEFAULTS.dtype
    p.dtype = wanted
    return p


def check_room(shape: list[int]) -> None:
    """Refuse what memory has no room for before the first number of it is asked for: `range(2**40)` is a sequence."""
    count = 1
    for n in shape:
        count *= n
    if count > LARGE:
        if not is_long(8 * count):
            raise RuntimeError("Storage size calculation overflowed with sizes=" + str(shape))
        _Storage(8 * count)


def sizes(data: Any, out: list[int]) -> None:
    """Sizes along the first elements."""
    x = data
    while is_sequence(x):
        n = len(x)
        out.append(n)
        if isinstance(x, str) or len(out) > MAX_DIMS:
            raise ValueError(f"too many dimensions '{type(x).__name__}'")
        if n == 0:
            return
        if isinstance(x, bytes):
            raise TypeError("new(): invalid data type 'bytes'")
        try:
            x = x[0]
        except Exception:
            raise ValueError(f"could not determine the shape of object type '{type(x).__name__}'") from None


def gather(data: Any, shape: list[int], dim: i64, out: list[Any], wanted: dtype | None) -> None:
    """Append the leaves of `data`, whose sizes must agree everywhere."""
    if isinstance(data, list):
        if len(data) != shape[dim]:
            raise wrong_length(shape, dim, len(data))
        if dim + 1 == len(shape):
            out.extend(data)
            return
        for x in data:
            gather(x, shape, dim + 1, out, wanted)
        return
    if not is_sequence(data):
        if wanted is None:
            element_dtype(data, 0)
        raise TypeError("not a sequence")
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    items = list(data)
    if len(items) != shape[dim]:
        raise wrong_length(shape, dim, len(items))
    if dim + 1 == len(shape):
        out.extend(items)
    else:
        for x in items:
            gather(x, shape, dim + 1, out, wanted)


def wrong_length(shape: list[int], dim: i64, got: int) -> ValueError:
    return ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {got})")


def common_dtype(flat: list[Any], depth: int) -> dtype | None:
    """The promotion of the leaves' types; None when there are none. `depth`: lists around them."""
    seen: i64 = 0
    found: dtype | None = None
    for x in flat:
        kind = type(x)
        if kind is float:
            seen |= 4
            continue
        if kind is bool:
            seen |= 1
            continue
        if kind is int:
            seen |= 2
            continue
        d = element_dtype(x, depth)
        found = d if found is None else promote(found, d)
    if seen & 1:
        found = bool_ if found is None else promote(found, bool_)
    if seen & 2:
        found = int64 if found is None else promote(found, int64)
    if seen & 4:
        found = DEFAULTS.dtype if found is None else promote(found, DEFAULTS.dtype)
    return found


def is_array_number(x: Any) -> bool:
    """Whether x is a number or an array of NumPy's; an object may answer to every name."""
    return hasattr(type(x), "item") and hasattr(getattr(x, "dtype", None), "isnative")


def element_dtype(x: Any, depth: int) -> dtype:
    """The dtype one leaf suggests, or all that are in a list."""
    if isinstance(x, TensorBase):
        return x._dtype
    if hasattr(x, "dtype") and hasattr(x, "item") and not isinstance(x, type) and hasattr(x.dtype, "isnative"):
        # NumPy's float64 is also a float, so this comes before the plain types.
        kind: Any = x.dtype
        if isinstance(kind.name, str):  # an object may answer to every name
            return from_np(kind)
    if isinstance(x, bool):
        return bool_
    if is_ragged(x):
        raise no_number()
    if isinstance(x, int):
        return int64
    if isinstance(x, float):
        return DEFAULTS.dtype
    if isinstance(x, complex):
        return DEFAULTS.complex_dtype()
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    if is_sequence(x):
        if depth > MAX_DIMS or any([y is x for y in x]):
            raise TypeError("new(): self-referential lists are incompatible")
        inner = common_dtype(list(x), depth + 1)
        return DEFAULTS.dtype if inner is None else inner
    raise RuntimeError(f"Could not infer dtype of {c_type_name(type(x))}")


# -- storing ------------------------------------------------------------------------------------------------------
def store(p: Parsed) -> Any:
    """A new row-major storage with the numbers in the dtype that was decided."""
    dt = p.dtype
    assert dt is not None
    flat = p.flat
    n = len(flat)
    out = _Storage(n * dt.itemsize)
    if n > 0:
        pack(out, flat, n, dt)
    return out


def pack(out: Any, flat: list[Any], n: int, dt: dtype) -> None:
    if dt.is_floating_point:
        spread(out, plain(flat, dt), n, "d", float64.code, dt)
    elif dt.is_complex:
        parts: list[Any] = []
        for x in plain(flat, dt):
            z = complex(x)
            parts.append(z.real)
            parts.append(z.imag)
        spread(out, parts, 2 * n, "d", float64.code, dt.to_real())
    elif dt.is_bool:
        spread(out, [bool(x) for x in flat], n, "?", bool_.code, bool_)
    else:
        ints(out, flat, n, dt)


def plain(flat: list[Any], dt: dtype) -> list[Any]:
    """The leaves as Python numbers; refuses what is no number."""
    ok = True
    for x in flat:
        if not isinstance(x, (float, int)):
            ok = False
            break
    if ok:
        return flat
    out: list[Any] = []
    for x in flat:
        if isinstance(x, TensorBase):
            x = one(x)
        elif isinstance(x, complex):
            if not dt.is_complex:
                raise TypeError("must be real number, not complex")
        elif is_array_number(x):
            x = x.item()
        if not isinstance(x, (float, int, complex)):
            if hasattr(x, "__float__"):
                x = x.__float__()
            else:
                raise TypeError(f"must be real number, not {c_type_name(type(x))}")
        out.append(x)
    return out


def one(t: TensorBase) -> Any:
    """The number in a tensor of one element."""
    if numel(t) != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return TensorBase.item(t)


def ints(out: Any, flat: list[Any], n: int, dt: dtype) -> None:
    """Integers, checked against the dtype's range."""
    whole: list[int] = []
    for x in flat:
        if isinstance(x, TensorBase):
            x = one(x)
        elif is_array_number(x):
            x = x.item()
        if isinstance(x, float):
            if not fits(x, dt):
                raise RuntimeError(f"value cannot be converted to type {dt.name} without overflow")
            whole.append(int(x))
        elif is_ragged(x):
            raise no_number()
        elif isinstance(x, int):
            whole.append(int(x))
        elif hasattr(type(x), "__index__"):
            whole.append(x.__index__())
        else:
            raise TypeError(f"'{type(x).__name__}' object cannot be interpreted as an integer")
    if dt is uint64:
        for v in whole:
            if v < 0:
                raise OverflowError("can't convert negative int to unsigned")
            if v > 18446744073709551615:
                raise OverflowError("int too big to convert")
        spread(out, whole, n, "Q", uint64.code, uint64)
        return
    for v in whole:
        if v > 9223372036854775807 or v < -9223372036854775808:
            raise ValueError("Overflow when unpacking long long")
    if dt is not int64:
        for v in whole:
            if not fits(v, dt):
                raise RuntimeError(f"value cannot be converted to type {dt.name} without overflow")
    spread(out, whole, n, "q", int64.code, dt)


def spread(out: Any, numbers: list[Any], n: int, letter: str, code: i64, dt: dtype) -> None:
    """Write C numbers of type `letter` (dtype `code`), cast to `dt`."""
    if letter == "d":
        numbers = [float(x) for x in numbers]  # Python's own error for an int that no float holds
    raw = out if dt.code == code else _Storage(n * (1 if letter == "?" else 8))
    if n <= 64 or letter == "?":
        _pack_into(str(n) + letter, raw, 0, *numbers)
    else:
        from array import array

        memoryview(raw)[:] = memoryview(array(letter, numbers)).cast("B")
    if raw is not out:
        stride = contiguous_strides((n,))
        _copy(out, 0, stride, dt.code, raw, 0, stride, code, (n,))
