"""The element types, the default floating type, and their NumPy counterparts.

Invariant: there is exactly one object per element type, so that identity is equality, also after pickling and copying.
NumPy and ml_dtypes are imported when a NumPy counterpart is first asked for, never by importing this module.
"""

# The public names `bool`, `int` and `float` are defined below and hide the built-in types in this whole module.
from builtins import bool as PyBool
from builtins import complex as PyComplex
from builtins import float as PyFloat
from builtins import int as PyInt
from typing import TYPE_CHECKING, Any, Final, final

from ._mypyc import i64

if TYPE_CHECKING:
    import numpy

__all__ = [
    "bfloat16",
    "bit",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bool",
    "cdouble",
    "cfloat",
    "chalf",
    "complex128",
    "complex32",
    "complex64",
    "double",
    "dtype",
    "float",
    "float16",
    "float32",
    "float4_e2m1fn_x2",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "get_default_dtype",
    "half",
    "int",
    "int1",
    "int16",
    "int2",
    "int3",
    "int32",
    "int4",
    "int5",
    "int6",
    "int64",
    "int7",
    "int8",
    "long",
    "qint32",
    "qint8",
    "quint2x4",
    "quint4x2",
    "quint8",
    "set_default_dtype",
    "short",
    "uint1",
    "uint16",
    "uint2",
    "uint3",
    "uint32",
    "uint4",
    "uint5",
    "uint6",
    "uint64",
    "uint7",
    "uint8",
]

CATEGORY_BOOL: Final = 0
CATEGORY_INT: Final = 1
CATEGORY_FLOAT: Final = 2
CATEGORY_COMPLEX: Final = 3
# Bits without a meaning; below the others, so that comparisons of categories treat them as no number.
CATEGORY_BITS: Final = -1
# Numbers with a scale: there are no tensors of them here. Programs ask for the names.
CATEGORY_QUANTIZED: Final = -2


@final
class dtype:
    """An element type. The only instances are the constants of this module."""

    def __init__(
        self,
        name: object = "",
        scalar_name: object = "",
        code: object = -1,
        itemsize: object = 0,
        category: object = 0,
        is_signed: object = False,
    ) -> None:
        # Compiled, types of arguments are checked before the first line: anything is let in here, and refused.
        if (
            _REGISTRY.sealed
            or not (isinstance(name, str) and isinstance(scalar_name, str) and isinstance(code, PyInt))
            or not (isinstance(itemsize, PyInt) and isinstance(category, PyInt) and isinstance(is_signed, PyBool))
        ):
            raise TypeError("cannot create 'torch.dtype' instances")
        self.name: Final[str] = name
        # The spelling PyTorch uses in error texts ("Float", "Long").
        self.scalar_name: Final = scalar_name
        self.code: Final[i64] = code
        self.itemsize: Final[i64] = itemsize
        self.category: Final[i64] = category
        self.is_bool: Final = category == CATEGORY_BOOL
        self.is_integer: Final = category == CATEGORY_INT
        self.is_floating_point: Final = category == CATEGORY_FLOAT
        self.is_complex: Final = category == CATEGORY_COMPLEX
        # Floating or complex: what rounds, and what gradients are of.
        self.is_inexact: Final = category >= CATEGORY_FLOAT
        self._has_sign: Final = is_signed
        self._np: numpy.dtype[Any] | None = None

    @property
    def is_signed(self) -> PyBool:
        """Whether there are negative numbers."""
        if self.category == CATEGORY_BITS:
            raise RuntimeError("Bits types are undefined")
        if self.category == CATEGORY_QUANTIZED:
            raise RuntimeError("isSignedType not supported for quantized types")
        return self._has_sign

    @property
    def np(self) -> "numpy.dtype[Any]":
        """The NumPy dtype with the same memory layout."""
        found = self._np
        if found is None:
            found = _numpy_dtype(self.name)
            self._np = found
        return found

    def to_real(self) -> "dtype":
        """The type of the real part: itself unless complex."""
        if self.code == 9:
            return float32
        if self.code == 10:
            return float64
        if self.category == CATEGORY_COMPLEX:
            return float16
        return self

    def to_complex(self) -> "dtype":
        """The complex type whose parts hold this floating type."""
        code = self.code
        if code == 6 or code == 9 or code == 12:
            return complex64
        if code == 7 or code == 10:
            return complex128
        if self.category == CATEGORY_COMPLEX:
            return self
        if code == 5:
            return complex32
        raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        # A plain string makes pickle and copy look the constant up by name in this module.
        return self.name


class _Registry:
    """What the constructor needs to know before the constants exist."""

    def __init__(self) -> None:
        self.sealed = False


_REGISTRY: Final = _Registry()

uint8: Final = dtype("uint8", "Byte", 0, 1, CATEGORY_INT, False)
int8: Final = dtype("int8", "Char", 1, 1, CATEGORY_INT, True)
int16: Final = dtype("int16", "Short", 2, 2, CATEGORY_INT, True)
int32: Final = dtype("int32", "Int", 3, 4, CATEGORY_INT, True)
int64: Final = dtype("int64", "Long", 4, 8, CATEGORY_INT, True)
float16: Final = dtype("float16", "Half", 5, 2, CATEGORY_FLOAT, True)
float32: Final = dtype("float32", "Float", 6, 4, CATEGORY_FLOAT, True)
float64: Final = dtype("float64", "Double", 7, 8, CATEGORY_FLOAT, True)
complex64: Final = dtype("complex64", "ComplexFloat", 9, 8, CATEGORY_COMPLEX, True)
complex128: Final = dtype("complex128", "ComplexDouble", 10, 16, CATEGORY_COMPLEX, True)
bool: Final = dtype("bool", "Bool", 11, 1, CATEGORY_BOOL, False)
bfloat16: Final = dtype("bfloat16", "BFloat16", 12, 2, CATEGORY_FLOAT, True)
float8_e5m2: Final = dtype("float8_e5m2", "Float8_e5m2", 13, 1, CATEGORY_FLOAT, True)
float8_e4m3fn: Final = dtype("float8_e4m3fn", "Float8_e4m3fn", 14, 1, CATEGORY_FLOAT, True)
uint16: Final = dtype("uint16", "UInt16", 15, 2, CATEGORY_INT, False)
uint32: Final = dtype("uint32", "UInt32", 16, 4, CATEGORY_INT, False)
uint64: Final = dtype("uint64", "UInt64", 17, 8, CATEGORY_INT, False)

float8_e5m2fnuz: Final = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", 18, 1, CATEGORY_FLOAT, True)
float8_e4m3fnuz: Final = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", 19, 1, CATEGORY_FLOAT, True)
float8_e8m0fnu: Final = dtype("float8_e8m0fnu", "Float8_e8m0fnu", 20, 1, CATEGORY_FLOAT, False)
complex32: Final = dtype("complex32", "ComplexHalf", 21, 4, CATEGORY_COMPLEX, True)

# Element types that no operator computes with: tensors of them can be made (`empty`), seen as others (`view`), copied.
bits1x8: Final = dtype("bits1x8", "Bits1x8", 22, 1, CATEGORY_BITS, False)
bits2x4: Final = dtype("bits2x4", "Bits2x4", 23, 1, CATEGORY_BITS, False)
bits4x2: Final = dtype("bits4x2", "Bits4x2", 24, 1, CATEGORY_BITS, False)
bits8: Final = dtype("bits8", "Bits8", 25, 1, CATEGORY_BITS, False)
bits16: Final = dtype("bits16", "Bits16", 26, 2, CATEGORY_BITS, False)
uint1: Final = dtype("uint1", "UInt1", 27, 1, CATEGORY_INT, False)
uint2: Final = dtype("uint2", "UInt2", 28, 1, CATEGORY_INT, False)
uint3: Final = dtype("uint3", "UInt3", 29, 1, CATEGORY_INT, False)
uint4: Final = dtype("uint4", "UInt4", 30, 1, CATEGORY_INT, False)
uint5: Final = dtype("uint5", "UInt5", 31, 1, CATEGORY_INT, False)
uint6: Final = dtype("uint6", "UInt6", 32, 1, CATEGORY_INT, False)
uint7: Final = dtype("uint7", "UInt7", 33, 1, CATEGORY_INT, False)
int1: Final = dtype("int1", "Int1", 34, 1, CATEGORY_INT, True)
int2: Final = dtype("int2", "Int2", 35, 1, CATEGORY_INT, True)
int3: Final = dtype("int3", "Int3", 36, 1, CATEGORY_INT, True)
int4: Final = dtype("int4", "Int4", 37, 1, CATEGORY_INT, True)
int5: Final = dtype("int5", "Int5", 38, 1, CATEGORY_INT, True)
int6: Final = dtype("int6", "Int6", 39, 1, CATEGORY_INT, True)
int7: Final = dtype("int7", "Int7", 40, 1, CATEGORY_INT, True)
float4_e2m1fn_x2: Final = dtype("float4_e2m1fn_x2", "Float4_e2m1fn_x2", 41, 1, CATEGORY_FLOAT, True)

qint8: Final = dtype("qint8", "QInt8", 42, 1, CATEGORY_QUANTIZED, True)
quint8: Final = dtype("quint8", "QUInt8", 43, 1, CATEGORY_QUANTIZED, False)
qint32: Final = dtype("qint32", "QInt32", 44, 4, CATEGORY_QUANTIZED, True)
quint4x2: Final = dtype("quint4x2", "QUInt4x2", 45, 1, CATEGORY_QUANTIZED, False)
quint2x4: Final = dtype("quint2x4", "QUInt2x4", 46, 1, CATEGORY_QUANTIZED, False)

_REGISTRY.sealed = True

half: Final = float16
float: Final = float32
double: Final = float64
short: Final = int16
int: Final = int32
long: Final = int64
cfloat: Final = complex64
cdouble: Final = complex128
chalf: Final = complex32
bit: Final = uint1

ALL: Final[tuple[dtype, ...]] = (
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    float32,
    float64,
    complex64,
    complex128,
    bool,
    bfloat16,
    float8_e5m2,
    float8_e4m3fn,
    uint16,
    uint32,
    uint64,
    float8_e5m2fnuz,
    float8_e4m3fnuz,
    float8_e8m0fnu,
    complex32,
)
FIRST_STORED: Final = 22
STORED: Final[tuple[dtype, ...]] = (
    bits1x8,
    bits2x4,
    bits4x2,
    bits8,
    bits16,
    uint1,
    uint2,
    uint3,
    uint4,
    uint5,
    uint6,
    uint7,
    int1,
    int2,
    int3,
    int4,
    int5,
    int6,
    int7,
    float4_e2m1fn_x2,
)


def _index_by_code() -> list[dtype | None]:
    table: list[dtype | None] = [None] * 64
    for item in ALL + STORED:
        table[item.code] = item
    return table


_BY_CODE: Final = _index_by_code()


def by_code(code: PyInt) -> dtype:
    """The dtype with this code (the codes are shared with the native module)."""
    found = _BY_CODE[code] if 0 <= code < 64 else None
    if found is None:
        raise ValueError(f"no dtype has code {code}")
    return found


def _numpy_dtype(name: str) -> "numpy.dtype[Any]":
    import numpy

    if name == "complex32":
        raise TypeError("Got unsupported ScalarType ComplexHalf")
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes

        found: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, name))
        return found
    return numpy.dtype(name)


def _index_by_name() -> dict[str, dtype]:
    table: dict[str, dtype] = {}
    for item in ALL:
        table[item.name] = item
    return table


_BY_NAME: Final = _index_by_name()


def from_np(npdtype: "numpy.dtype[Any]") -> dtype:
    """The dtype with the memory layout of a NumPy dtype."""
    # NumPy's canonical names equal ours, and ml_dtypes' types carry their own names.
    found = _BY_NAME.get(npdtype.name)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {npdtype.type.__module__}.{npdtype.type.__name__}. "
            "The only supported types are: float64, float32, float16, complex64, complex128, "
            "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    if not npdtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    return found


def dtype_or_none(value: object) -> dtype | None:
    """The dtype meant by a `dtype=` argument: a dtype, or one of Python's number types; None for anything else."""
    if isinstance(value, dtype):
        if value.category == CATEGORY_QUANTIZED:
            raise NotImplementedError(f"{value!r}: there are no quantized tensors here; use integers and a scale")
        return value
    if value is PyFloat:
        return float64
    if value is PyInt:
        return int64
    if value is PyBool:
        return bool
    if value is PyComplex:
        return complex128
    return None


@final
class Defaults:
    """The default floating type, as one attribute read from compiled code."""

    def __init__(self) -> None:
        self.dtype = float32

    def complex_dtype(self) -> dtype:
        """The type of a Python complex number."""
        return self.dtype.to_complex()


DEFAULTS: Final = Defaults()


def get_default_dtype() -> dtype:
    """The type of Python floats and of factory functions that are given no dtype."""
    return DEFAULTS.dtype


def set_default_dtype(d: object) -> None:
    """Make `d` the type of Python floats and of factory functions that are given no dtype."""
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if d.category != CATEGORY_FLOAT:
        raise TypeError("only floating-point types are supported as the default type")
    if d.itemsize == 1:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    DEFAULTS.dtype = d


# What a user sees of a class is where it is found.
setattr(dtype, "__module__", "mindtorch_v2")
