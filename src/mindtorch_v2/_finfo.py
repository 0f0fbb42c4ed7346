"""`finfo` and `iinfo`: the numerical limits of the element types.

Invariant: the numbers are stated here, so that asking for them imports nothing.
"""

from typing import Final

from . import _native
from ._dtype import DEFAULTS, STORED, dtype_or_none
from ._dtype import dtype as DType

__all__ = ["finfo", "iinfo"]

_MISSING: Final = object()

# name: (eps, max, smallest normal, resolution)
_FLOATS: Final[dict[str, tuple[float, float, float, float]]] = {
    "float16": (2.0**-10, 65504.0, 2.0**-14, 1e-3),
    "bfloat16": (2.0**-7, (2.0 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2),
    "float32": (2.0**-23, (2.0 - 2.0**-23) * 2.0**127, 2.0**-126, 1e-6),
    "float64": (2.0**-52, (2.0 - 2.0**-52) * 2.0**1023, 2.0**-1022, 1e-15),
    "float8_e5m2": (0.25, 57344.0, 2.0**-14, 1.0),
    "float8_e4m3fn": (0.125, 448.0, 2.0**-6, 1.0),
    "float8_e5m2fnuz": (0.125, 57344.0, 2.0**-15, 1.0),
    "float8_e4m3fnuz": (0.125, 240.0, 2.0**-7, 1.0),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 1.0),
}


def _dtype_argument(caller: str, value: object) -> DType:
    found = dtype_or_none(value)
    if found is None:
        got = type(value).__name__
        raise TypeError(f"{caller}(): argument 'type' (position 1) must be torch.dtype, not {got}")
    return found


class _Limits:
    """What the limits of floating and integer types have in common: read-only, and equal when their dtypes are."""

    __slots__ = ("_of", "bits", "dtype")

    _of: DType
    # The number of bits of one element, and the name of the type.
    bits: int
    dtype: str

    def _set(self, of: DType, **values: float) -> None:
        facts: dict[str, object] = {"_of": of, "bits": of.itemsize * 8, "dtype": of.name, **values}
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        kind = type(self).__name__
        if not hasattr(self, name):
            raise AttributeError(f"'torch.{kind}' object has no attribute '{name}'")
        raise AttributeError(f"attribute '{name}' of 'torch.{kind}' objects is not writable")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Limits) and other._of is self._of

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._of,))


class finfo(_Limits):
    """The limits of a floating type; those of its parts for a complex type; by default of the default dtype.

    `eps` is the distance from 1 to the next larger number, `max` the largest finite number, `min` the smallest (of a
    type without sign the smallest at all), `smallest_normal` and `tiny` the smallest positive number with full
    precision, `resolution` the decimal resolution.
    """

    __slots__ = ("eps", "max", "min", "resolution", "smallest_normal", "tiny")

    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float

    def __init__(self, type: object = _MISSING) -> None:
        given = DEFAULTS.dtype if type is _MISSING else _dtype_argument("finfo", type)
        if not given.is_floating_point and not given.is_complex:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        of = given.to_real()
        found = _FLOATS.get(of.name)
        if found is None:
            self._set(of)
        else:
            eps, most, tiny, step = found
            least = -most if of.is_signed else tiny
            self._set(of, eps=eps, max=most, min=least, resolution=step, smallest_normal=tiny, tiny=tiny)
        if self.__class__ is finfo:
            _FINFO[given] = self

    def __getattr__(self, name: str) -> float:
        if name in finfo.__slots__:  # PyTorch has no limits of packed types either
            raise TypeError("bad argument type for built-in operation")
        raise AttributeError(f"'torch.finfo' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer type: `max` is the largest number, `min` the smallest."""

    __slots__ = ("max", "min")

    max: int
    min: int

    def __init__(self, type: object = _MISSING) -> None:
        if type is _MISSING:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        of = _dtype_argument("iinfo", type)
        if of.is_floating_point or of.is_complex or of in STORED:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if of.name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        most = (1 << (int(of.itemsize) * 8 - (1 if of.is_signed else 0))) - 1
        self._set(of, max=most, min=-most - 1 if of.is_signed else 0)
        if self.__class__ is iinfo:
            _IINFO[of] = self

    def __repr__(self) -> str:
        # PyTorch prints integers as its C++ streams print doubles.
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# Nobody can change what is known of a type, so asking again gives the same object.
_FINFO: Final[dict[object, finfo]] = {}
_IINFO: Final[dict[object, iinfo]] = {}
_native.keep_instances(finfo, _FINFO)
_native.keep_instances(iinfo, _IINFO)

# What a user sees of a class is where it is found.
for _public in (finfo, iinfo):
    setattr(_public, "__module__", "mindtorch_v2")
