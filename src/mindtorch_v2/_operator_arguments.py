"""What may stand for an argument where an operator is called by its schema: PyTorch casts there by the schema alone,
which takes other things than its public functions do (a float's worth of a tensor for an int, no number for a tensor).

Invariant: what comes out has the types that `bind` takes. Whatever an object of a user raises when it is asked means
that it does not fit.
"""

from __future__ import annotations

from collections.abc import KeysView, Set
from operator import index
from types import GeneratorType
from typing import Any

from . import _dtype
from ._dispatch.binding import BAD, held
from ._dispatch.schema import Arg, Schema
from ._dtype import dtype
from ._layout import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from ._numbers import is_number
from ._sizes import is_long, is_ragged
from ._tensor_base import TensorBase

# Operators whose tensors numbers may stand for.
_NUMBERS_AS_TENSORS = frozenset(
    """_conj _to_copy add add_ copy copy_ div div_ divide divide_ floor_divide floor_divide_ mul mul_ multiply multiply_
    sub sub_ subtract subtract_ to true_divide true_divide_""".split()
)
# Here handlers see PyTorch's overloads for numbers under the name of the one for tensors.
_SERVED_BY_TENSORS = frozenset(("bernoulli", "bernoulli_", "normal"))
# A schema's dtypes and memory formats are ints, in this order.
_DTYPES = """uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8
    qint32 bfloat16""".split()
_FORMATS = (contiguous_format, preserve_format, channels_last, channels_last_3d)


def takes_numbers(name: str) -> bool:
    """Whether numbers may stand for the tensors of the operator of this name, without a namespace."""
    return name in _NUMBERS_AS_TENSORS or name in _SERVED_BY_TENSORS


def cast_all(
    schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: bool
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call as the schema has them, or None where one does not fit. What the schema does not name is
    left to whoever binds them."""
    place: list[Any] = []
    for i, v in enumerate(args):
        got = cast(schema.args[i], v, numbers) if i < len(schema.args) else v
        if got is BAD:
            return None
        place.append(got)
    by_name = {a.name: a for a in schema.args}
    named: dict[str, Any] = {}
    for name, v in kwargs.items():
        a = by_name.get(name)
        got = v if a is None else cast(a, v, numbers)
        if got is BAD:
            return None
        named[name] = got
    return tuple(place), named


def cast(a: Arg, v: Any, numbers: bool) -> Any:
    """A value as the schema's type, or BAD."""
    if v is None:
        if a.kind == "bool" and not a.is_list and not a.optional:
            return False
        # A list that is empty by default may be None.
        return None if a.optional or (a.is_list and a.default == ()) else BAD
    if a.is_list:
        return _list(a, v)
    if a.kind == "Tensor":
        return v if isinstance(v, TensorBase) or (numbers and is_number(v) and _scalar(v) is not None) else BAD
    if a.symbolic and isinstance(v, dtype):
        return BAD
    one = _CASTS.get(a.kind)
    return v if one is None else one(v)


def _int(v: Any) -> Any:
    if type(v) is int:
        return v if is_long(v) else BAD
    if isinstance(v, float):
        return BAD
    if is_ragged(v):
        return v
    if isinstance(v, dtype) and v.name in _DTYPES:
        return _DTYPES.index(v.name)
    try:
        n = index(v)
    except Exception:
        if not hasattr(type(v), "__int__"):
            return BAD
        try:
            n = int(v)
        except Exception:
            return BAD
    return n if is_long(n) else BAD


def _bool(v: Any) -> Any:
    if v is True or v is False:
        return v
    if v is None:
        return False
    if not hasattr(type(v), "__bool__"):
        return BAD
    try:
        return bool(v)
    except Exception:
        return BAD


def _float(v: Any) -> Any:
    if type(v) is float or is_ragged(v):
        return v
    if isinstance(v, (str, bytes, bytearray)) or not (hasattr(type(v), "__float__") or hasattr(type(v), "__index__")):
        return BAD
    try:
        return float(v)
    except Exception:
        return BAD


def _scalar(v: Any) -> Any:
    if isinstance(v, dtype) and v.name in _DTYPES:
        return _DTYPES.index(v.name)
    if isinstance(v, int) and not -(1 << 63) <= v < 1 << 64:
        raise OverflowError("int too big to convert")
    return v if isinstance(v, (int, float, complex)) or is_ragged(v) else BAD


def _text(v: Any) -> Any:
    return v if isinstance(v, (str, bytes)) else BAD


def _scalar_type(v: Any) -> Any:
    if isinstance(v, dtype):
        return v
    n = _int(v)
    return getattr(_dtype, _DTYPES[n]) if n is not BAD and 0 <= n < len(_DTYPES) else BAD


def _memory_format(v: Any) -> Any:
    if isinstance(v, memory_format):
        return v
    n = _int(v)
    return _FORMATS[n] if n is not BAD and 0 <= n < len(_FORMATS) else BAD


_CASTS: dict[str, Any] = {
    "int": _int,
    "bool": _bool,
    "float": _float,
    "Scalar": _scalar,
    "str": _text,
    "ScalarType": _scalar_type,
    "MemoryFormat": _memory_format,
}


def _list(a: Arg, v: Any) -> Any:
    if a.kind == "Tensor":
        rows: Any = v
        return list(rows) if isinstance(v, TensorBase) and a.holes and v.dim() > 0 else v
    if a.kind == "int" and a.size > 0 and isinstance(v, int):
        n = BAD if a.symbolic else _int(v)  # one size does not stand for several
        return BAD if n is BAD else (n,)
    one = _CASTS.get(a.kind)
    if one is None or (a.kind == "float" and a.size > 0 and is_number(v)):
        return v
    if not _is_listed(a, v):
        return BAD
    # Elements are counted, not believed: a length may lie.
    if isinstance(v, range):
        v = tuple(v)  # one that is too long is refused before it is counted
    found = []
    try:
        for x in held(v) if isinstance(v, (list, tuple)) else v:
            # Sizes are asked what they are, not what they come to.
            stray = a.symbolic and isinstance(x, TensorBase) and x.dtype.is_inexact
            found.append(BAD if stray else one(x))
    except Exception:
        return BAD
    return BAD if any(x is BAD for x in found) else tuple(found)


def _is_listed(a: Arg, v: Any) -> bool:
    """Whether this is taken for a list of numbers."""
    if isinstance(v, (list, tuple)):
        return True
    if a.symbolic or a.kind == "Scalar":
        return hasattr(type(v), "__iter__") or hasattr(type(v), "__getitem__")
    if isinstance(v, (str, bytes, dict, TensorBase)):
        return False
    if isinstance(v, (Set, KeysView, GeneratorType)):
        return True
    try:
        return hasattr(type(v), "__getitem__") and len(v) >= 0
    except Exception:
        return False
