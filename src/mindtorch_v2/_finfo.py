"""`finfo` and `iinfo`: the numerical limits of the element types.

Invariant: the numbers are stated here, so that asking for them imports nothing.
"""

from typing import Final

from ._dtype import DEFAULTS, STORED, dtype, dtype_or_none

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


def _dtype_argument(caller: str, value: object) -> dtype:
    found = dtype_or_none(value)
    if found is None:
        got = type(value).__name__
        raise TypeError(f"{caller}(): argument 'type' (position 1) must be torch.dtype, not {got}")
    return found


class _Limits:
    """What the limits of floating and integer types have in common: read-only, and equal when their dtypes are."""

    __slots__ = ("_of",)

    def __init__(self, of: dtype) -> None:
        object.__setattr__(self, "_of", of)

    _of: dtype

    @property
    def bits(self) -> int:
        """The number of bits of one element."""
        return self._of.itemsize * 8

    @property
    def dtype(self) -> str:
        """The name of the type."""
        return self._of.name

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
    """The limits of a floating type; those of its parts for a complex type; by default of the default dtype."""

    __slots__ = ()

    def __init__(self, type: object = _MISSING) -> None:
        of = DEFAULTS.dtype if type is _MISSING else _dtype_argument("finfo", type)
        if not of.is_floating_point and not of.is_complex:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        super().__init__(of.to_real())

    def _limit(self, place: int) -> float:
        found = _FLOATS.get(self._of.name)
        if found is None:  # PyTorch has no limits of packed types either
            raise TypeError("bad argument type for built-in operation")
        return found[place]

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number."""
        return self._limit(0)

    @property
    def max(self) -> float:
        """The largest finite number."""
        return self._limit(1)

    @property
    def min(self) -> float:
        """The smallest finite number, the negative of `max`; of a type without sign the smallest at all."""
        return -self.max if self._of.is_signed else self.smallest_normal

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with full precision."""
        return self._limit(2)

    @property
    def tiny(self) -> float:
        """The older name of `smallest_normal`."""
        return self.smallest_normal

    @property
    def resolution(self) -> float:
        """The decimal resolution of the type."""
        return self._limit(3)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer type."""

    __slots__ = ()

    def __init__(self, type: object = _MISSING) -> None:
        if type is _MISSING:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        of = _dtype_argument("iinfo", type)
        if of.is_floating_point or of.is_complex or of in STORED:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if of.name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        super().__init__(of)

    @property
    def max(self) -> int:
        """The largest number."""
        top: int = 1 << (self.bits - (1 if self._of.is_signed else 0))
        return top - 1

    @property
    def min(self) -> int:
        """The smallest number."""
        return -self.max - 1 if self._of.is_signed else 0

    def __repr__(self) -> str:
        # PyTorch prints integers as its C++ streams print doubles.
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# What a user sees of a class is where it is found.
for _public in (finfo, iinfo):
    setattr(_public, "__module__", "mindtorch_v2")
