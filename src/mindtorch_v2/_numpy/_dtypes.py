"""Scalar types and dtypes by NumPy's names, each with the tensor dtype that stands for it.

Invariant: a scalar type is never instantiated; calling one makes an array without dimensions. What can be cast and what
two dtypes promote to is NumPy's own answer.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy

import mindtorch_v2 as torch


class generic:
    """The root of scalar types."""

    name: ClassVar[str] = "generic"
    typecode: ClassVar[str]
    torch_dtype: ClassVar[torch.dtype]

    def __new__(cls, value: Any) -> Any:
        from ._ndarray import asarray, ndarray

        if isinstance(value, ndarray):
            return ndarray(value.tensor.to(cls.torch_dtype))
        return asarray(value, dtype=cls.torch_dtype)


class number(generic):
    """Numbers."""

    name = "number"


class integer(number):
    """Whole numbers."""

    name = "integer"


class inexact(number):
    """Numbers that are rounded."""

    name = "inexact"


class signedinteger(integer):
    """Whole numbers of both signs."""

    name = "signedinteger"


class unsignedinteger(integer):
    """Whole numbers from zero up."""

    name = "unsignedinteger"


class floating(inexact):
    """Real numbers."""

    name = "floating"


class complexfloating(inexact):
    """Complex numbers."""

    name = "complexfloating"


def _scalar(name: str, base: type[generic], code: str, dtype: torch.dtype) -> type[generic]:
    space = {"name": name, "typecode": code, "torch_dtype": dtype, "__module__": __name__, "__doc__": f"{dtype}."}
    return type(name, (base,), space)


int8 = _scalar("int8", signedinteger, "b", torch.int8)
int16 = _scalar("int16", signedinteger, "h", torch.int16)
int32 = _scalar("int32", signedinteger, "i", torch.int32)
int64 = _scalar("int64", signedinteger, "l", torch.int64)
uint8 = _scalar("uint8", unsignedinteger, "B", torch.uint8)
uint16 = _scalar("uint16", unsignedinteger, "H", torch.uint16)
# As in PyTorch, where the two widest stand among the signed ones.
uint32 = _scalar("uint32", signedinteger, "I", torch.uint32)
uint64 = _scalar("uint64", signedinteger, "L", torch.uint64)
float16 = _scalar("float16", floating, "e", torch.float16)
float32 = _scalar("float32", floating, "f", torch.float32)
float64 = _scalar("float64", floating, "d", torch.float64)
complex64 = _scalar("complex64", complexfloating, "F", torch.complex64)
complex128 = _scalar("complex128", complexfloating, "D", torch.complex128)
bool_ = _scalar("bool_", generic, "?", torch.bool)

_concrete = (
    *(int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float16, float32, float64, complex64, complex128, bool_),
)
_names: dict[str, type[generic]] = {kind.name: kind for kind in _concrete}
_name_aliases: dict[str, type[generic]] = {
    "intp": int64,
    "int_": int64,
    "intc": int32,
    "byte": int8,
    "short": int16,
    "longlong": int64,
    "ulonglong": uint64,
    "ubyte": uint8,
    "half": float16,
    "single": float32,
    "double": float64,
    "float_": float64,
    "csingle": complex64,
    "singlecomplex": complex64,
    "cdouble": complex128,
    "cfloat": complex128,
    "complex_": complex128,
}
_aliases: dict[str, type[generic]] = {
    "u1": uint8,
    "i1": int8,
    "i2": int16,
    "i4": int32,
    "i8": int64,
    "b": int8,
    "f2": float16,
    "f4": float32,
    "f8": float64,
    "c8": complex64,
    "c16": complex128,
    "bool": bool_,
    "int": int64,
    "float": float64,
    "complex": complex128,
}
_typecodes: dict[str, type[generic]] = {
    kind.typecode: kind for kind in _concrete if kind not in (uint16, uint32, uint64)
}
_torch_dtypes: dict[torch.dtype, type[generic]] = {kind.torch_dtype: kind for kind in _concrete}
_python_types: dict[type, type[generic]] = {int: int64, float: float64, complex: complex128, bool: bool_}
_abstract_dtypes = (
    *("generic", "number", "integer", "signedinteger", "unsignedinteger"),
    *("inexact", "floating", "complexfloating"),
)

sctypes: dict[str, list[type[generic]]] = {
    "int": [int8, int16, int32, int64],
    "uint": [uint8, uint16, uint32, uint64],
    "float": [float16, float32, float64],
    "complex": [complex64, complex128],
    "others": [bool_],
}
typecodes = {
    "All": "efdFDBbhil?",
    "AllFloat": "efdFD",
    "AllInteger": "Bbhil",
    "Integer": "bhil",
    "UnsignedInteger": "B",
    "Float": "efd",
    "Complex": "FD",
}
globals().update(_name_aliases)

NAMES = [
    *("DType", "dtype", "issubdtype", "sctypes", "set_default_dtype", "typecodes"),
    *_abstract_dtypes,
    *_names,
    *_name_aliases,
]


def sctype_from_string(s: str) -> type[generic]:
    """The scalar type of a name, an alias or a letter."""
    for table in (_names, _name_aliases, _aliases, _typecodes):
        if s in table:
            return table[s]
    raise TypeError(f"data type {s!r} not understood")


def sctype_from_torch_dtype(torch_dtype: torch.dtype) -> type[generic]:
    """The scalar type that a tensor dtype stands for."""
    return _torch_dtypes[torch_dtype]


def _sctype(arg: Any) -> type[generic]:
    if isinstance(arg, torch.dtype):
        return sctype_from_torch_dtype(arg)
    if isinstance(arg, type) and issubclass(arg, generic):
        return arg
    if isinstance(arg, type) and arg in _python_types:
        return _python_types[arg]
    if isinstance(arg, DType):
        return arg._scalar_type
    if isinstance(arg, str):
        return sctype_from_string(arg)
    inner = getattr(arg, "dtype", None)
    if isinstance(inner, DType):
        return inner._scalar_type
    raise TypeError(f"data type {arg!r} not understood")


class DType:
    """A dtype: equal to whatever names the same scalar type."""

    def __init__(self, arg: Any) -> None:
        self._scalar_type = _sctype(arg)

    @property
    def name(self) -> str:
        """Its name."""
        return self._scalar_type.name

    @property
    def type(self) -> Any:
        """Its scalar type."""
        return self._scalar_type

    @property
    def kind(self) -> str:
        """NumPy's letter for its kind."""
        dtype = self.torch_dtype
        if dtype is torch.bool:
            return "b"
        if dtype.is_complex:
            return "c"
        return "f" if dtype.is_floating_point else "i" if dtype.is_signed else "u"

    @property
    def typecode(self) -> str:
        """NumPy's letter for it."""
        return self._scalar_type.typecode

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of tensors that stands for it."""
        return self._scalar_type.torch_dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.torch_dtype.itemsize

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self._scalar_type is other._scalar_type
        try:
            return self._scalar_type is DType(other)._scalar_type
        except (TypeError, KeyError):
            return False

    def __hash__(self) -> int:
        return hash(self._scalar_type.name)

    def __repr__(self) -> str:
        return f'dtype("{self.name}")'

    __str__ = __repr__

    def __getstate__(self) -> Any:
        return self._scalar_type

    def __setstate__(self, value: Any) -> None:
        self._scalar_type = value


def dtype(arg: Any) -> DType:
    """The dtype of a name, a type or a tensor's dtype; the default one of None."""
    return DType(default_dtypes().float_dtype if arg is None else arg)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether one dtype is below another in the tree of types."""

    def kind(arg: Any) -> type[generic]:
        return arg if isinstance(arg, type) and issubclass(arg, generic) else dtype(arg).type

    return issubclass(kind(arg1), kind(arg2))


# -- defaults ---------------------------------------------------------------------------------------------------------
class DefaultDTypes(NamedTuple):
    """What Python's numbers become."""

    float_dtype: torch.dtype
    complex_dtype: torch.dtype
    int_dtype: torch.dtype


class _State:
    """The defaults of this process."""

    defaults = DefaultDTypes(torch.float64, torch.complex128, torch.int64)


def default_dtypes() -> DefaultDTypes:
    """What Python's numbers become now."""
    return _State.defaults


def set_default_dtype(fp_dtype: Any = "numpy", int_dtype: Any = "numpy") -> Any:
    """Choose what Python's numbers become: "numpy", "pytorch" or a dtype."""
    if fp_dtype == "numpy":
        real = torch.float64
    elif fp_dtype == "pytorch":
        real = torch.float32
    else:
        real = dtype(fp_dtype).torch_dtype
    # As in PyTorch, where half precision has single complex numbers beside it.
    complex_ = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex64}[real]
    whole = torch.int64 if int_dtype in ("numpy", "pytorch") else dtype(int_dtype).torch_dtype
    _State.defaults = DefaultDTypes(real, complex_, whole)
    return default_dtypes


def default_dtype_for(given: torch.dtype) -> torch.dtype:
    """The default dtype of the kind of another."""
    if given is torch.bool:
        return torch.bool
    if given.is_complex:
        return default_dtypes().complex_dtype
    return default_dtypes().float_dtype if given.is_floating_point else default_dtypes().int_dtype


# -- casting ----------------------------------------------------------------------------------------------------------
def _of_numpy(given: torch.dtype) -> Any:
    return numpy.dtype(sctype_from_torch_dtype(given).name.rstrip("_"))


_PROMOTED: dict[tuple[torch.dtype, torch.dtype], torch.dtype] = {}


def promote(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    """NumPy's promotion of two dtypes."""
    found = _PROMOTED.get((one, other))
    if found is None:
        name = numpy.promote_types(_of_numpy(one), _of_numpy(other)).name
        found = _PROMOTED[one, other] = DType(name).torch_dtype
    return found


def can_cast_dtypes(one: torch.dtype, other: torch.dtype, casting: Any) -> bool:
    """NumPy's answer to whether one dtype can be cast to another."""
    if casting not in CASTINGS:
        raise KeyError(casting)
    return bool(numpy.can_cast(_of_numpy(one), _of_numpy(other), casting))


CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


# -- Python's numbers beside arrays -----------------------------------------------------------------------------------
def is_scalar(x: object) -> bool:
    """Whether it is one of Python's numbers."""
    return isinstance(x, (int, float, complex))


def dtype_of_scalar(kind: type) -> torch.dtype:
    """The default dtype of one of Python's number types."""
    if issubclass(kind, bool):
        return torch.bool
    if issubclass(kind, int):
        return default_dtypes().int_dtype
    return default_dtypes().float_dtype if issubclass(kind, float) else default_dtypes().complex_dtype


def _category(given: torch.dtype) -> int:
    if given is torch.bool:
        return 0
    return 3 if given.is_complex else 2 if given.is_floating_point else 1


def scalar_beside(number_: Any, tensor: torch.Tensor) -> torch.dtype:
    """The dtype of a Python number beside a tensor: the tensor's, unless its kind is too low (NEP 50)."""
    own = dtype_of_scalar(type(number_))
    beside = tensor.dtype
    if _category(own) > _category(beside):
        if own.is_complex and beside.is_floating_point:
            return torch.complex64 if beside in (torch.float16, torch.float32) else torch.complex128
        return own
    if isinstance(number_, int) and not isinstance(number_, bool) and _category(beside) == 1:
        bounds = torch.iinfo(beside)
        if not bounds.min <= number_ <= bounds.max:
            raise OverflowError(f"Python integer {number_} out of bounds for {beside}")
    return beside
