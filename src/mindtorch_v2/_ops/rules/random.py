"""Rules of random numbers: which dtypes and parameters a distribution accepts, and the shape of what is drawn.

Invariant: parameters are refused here, with PyTorch's text, before a generator advances.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Rule, Spec
from ..._dtype import dtype, int64
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, numel
from ..._warn import warn
from .layout import preserved_strides
from .shape import FactoryRule, LikeRule, check_options, check_sizes, placed

Ints = tuple[int, ...]


@final
class Bounds:
    """Smallest and largest value of a dtype, and its name in C++."""

    def __init__(self, least: float, most: float, name: str) -> None:
        self.least: Final = least
        self.most: Final = most
        self.name: Final = name


@final
class IntBounds:
    def __init__(self, least: int, most: int, name: str) -> None:
        self.least: Final = least
        self.most: Final = most
        self.name: Final = name


FLOATS: Final[dict[str, Bounds]] = {
    "float32": Bounds(-3.4028234663852886e38, 3.4028234663852886e38, "float"),
    "float64": Bounds(-1.7976931348623157e308, 1.7976931348623157e308, "double"),
    "float16": Bounds(-65504.0, 65504.0, "c10::Half"),
    "bfloat16": Bounds(-3.3895313892515355e38, 3.3895313892515355e38, "c10::BFloat16"),
}
INTS: Final[dict[str, IntBounds]] = {
    "uint8": IntBounds(0, 255, "unsigned char"), "int8": IntBounds(-128, 127, "signed char"),
    "int16": IntBounds(-32768, 32767, "short"), "int32": IntBounds(-2147483648, 2147483647, "int"),
    "int64": IntBounds(-9223372036854775808, 9223372036854775807, "long"), "bool": IntBounds(0, 1, "bool"),
    "uint16": IntBounds(0, 65535, "short unsigned int"), "uint32": IntBounds(0, 4294967295, "unsigned int"),
    "uint64": IntBounds(0, 18446744073709551615, "long unsigned int"),
}


# Integers that only ranges are drawn in.
UNSIGNED: Final[frozenset[str]] = frozenset({"uint16", "uint32", "uint64"})


def check_float(kernel: str, dt: dtype) -> None:
    """Continuous numbers are drawn in floating types of two bytes and more, some also in complex ones."""
    if not dt.is_inexact or (dt.is_floating_point and dt.itemsize == 1):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


def check_sized(kernel: str, s: Spec) -> None:
    """A uniform range is refused by its dtype first; of normal numbers the dtype is asked when there is one to draw."""
    if kernel == "check_uniform_bounds" or 0 not in s.shape:
        check_float(kernel, s.dtype)


# Integers up to 2 ** digits are exact in these; narrower types are reached over float32.
DIGITS: Final[dict[str, int]] = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8}
LEAST_INT64: Final[int] = -9223372036854775808


def rounded(n: int, digits: int) -> int:
    """The number of `digits` binary digits nearest to `n`, ties to even."""
    size = abs(n)
    surplus = size.bit_length() - digits
    if surplus <= 0:
        return n
    quotient = size >> surplus
    rest = size - (quotient << surplus)
    half = 1 << (surplus - 1)
    if rest > half or (rest == half and quotient & 1):
        quotient += 1
    return quotient << surplus if n >= 0 else -(quotient << surplus)


def stored(n: int, digits: int) -> int:
    return rounded(rounded(n, 24), digits) if digits < 24 else rounded(n, digits)


def raised(low: int, digits: int) -> int:
    """The first bound moved up where storing what follows it would give something smaller."""
    after = stored(low + 1, digits)
    if after < low:
        return after + (1 << (abs(low + 1).bit_length() - digits))
    return low


def lowered(high: int, digits: int) -> int:
    """The last bound moved down where storing what precedes it would reach it."""
    before = stored(high - 1, digits)
    if before >= high:
        return before - (1 << (abs(high - 1).bit_length() - digits))
    return high


def integer_range(low: int, high: int | None, dt: dtype) -> tuple[int, int]:
    """The first and the last integer that `random_` and `randint` draw; without `high`, up to what `dt` holds."""
    digits = DIGITS.get(dt.name, 0)
    if high is not None:
        if low >= high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        if digits > 0:
            low, high = raised(low, digits), lowered(high, digits)
            if low >= high:
                raise RuntimeError("random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                                   f"got from={low} >= to={high}")
        last = high - 1
    elif digits > 0:
        last = 1 << digits
        low = raised(low, digits)
        if low >= last:
            raise RuntimeError("random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
                               f"dtype, but got from={low} > to_inc={last}")
    else:
        held = INTS.get(dt.name)
        last = 0 if held is None else held.most
    check_inside("from", low, dt, "random_update_from_to" if high is not None else "random_from_to_range_calc")
    check_inside("to - 1", last, dt, "")
    return low, last


def check_inside(what: str, n: int, dt: dtype, kernel: str) -> None:
    exact = INTS.get(dt.name)
    if exact is not None:
        # Bounds are 64 bits wide and signed.
        if n < exact.least or n > min(exact.most, 9223372036854775807):
            raise RuntimeError(f"{what} is out of bounds for {exact.name}")
        return
    wide = FLOATS.get(dt.name)
    if wide is None:
        if dt.is_complex:
            raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")
    if not wide.least <= float(n) <= wide.most:
        raise RuntimeError(f"{what} is out of bounds for {wide.name}")


def check_integers(low: int, high: int | None, dt: dtype) -> None:
    """Refuse a range of `random_` and `randint`, and warn where `dt` cannot hold each of its integers."""
    first, last = integer_range(low, high, dt)
    digits = DIGITS.get(dt.name, 0)
    if digits > 0 and (abs(first) > 1 << digits or abs(last) > 1 << digits):

        for what, n in (("from", first), ("to - 1", last)):
            if abs(n) > 1 << digits:
                warn(
                    f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                    f"{FLOATS[dt.name].name} can support discrete uniform distribution only within this range. This "
                    "warning will become an error in version 1.7 release, please fix the code in advance")


def check_random(low: int | None, high: int | None, dt: dtype) -> None:
    """The arguments of `random_`."""
    if low is None and high is None:
        if dt.name not in DIGITS and (dt.name not in INTS or dt.name in UNSIGNED):
            raise NotImplementedError(f"\"random_kernel_cpu\" not implemented for '{dt.scalar_name}'")
    elif high is None and low == LEAST_INT64:
        if dt.name not in INTS and dt.name not in DIGITS or dt.name in UNSIGNED or dt.name in ("bool", "float16"):
            raise NotImplementedError(
                f"\"random_full_64_bits_range_kernel_cpu\" not implemented for '{dt.scalar_name}'")
        if dt.name in INTS and dt is not int64:
            raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
    else:
        check_integers(0 if low is None else low, high, dt)


@final
class SizedRule(Rule):
    """(size, generator, dtype, layout, device, pin_memory)"""

    def __init__(self, name: str, kernel: str) -> None:
        self.rule: Final = FactoryRule(name, 2, 0)
        self.kernel: Final = kernel

    def infer(self, args: tuple[Any, ...]) -> Any:
        s = self.rule.infer(args)
        assert isinstance(s, Spec)
        check_sized(self.kernel, s)
        return s


@final
class FloatLikeRule(Rule):
    """(self, dtype, layout, device, pin_memory, memory_format)"""

    def __init__(self, name: str, kernel: str) -> None:
        self.rule: Final = LikeRule(name, 1)
        self.kernel: Final = kernel

    def infer(self, args: tuple[Any, ...]) -> Any:
        s = self.rule.infer(args)
        assert isinstance(s, Spec)
        check_sized(self.kernel, s)
        check_drawn_here(self.rule.name, args[0], s)
        return s


def check_drawn_here(name: str, t: Any, s: Spec) -> None:
    """A row draws where its argument is; `torch.rand_like` and its like go elsewhere first."""
    assert isinstance(t, TensorBase)
    if s.device.type != t._device.type:
        raise NotImplementedError(
            f"aten::{name}() draws where its argument is, {t._device}, and not on {s.device}; torch.{name}() does"
        )


@final
class RandintRule(Rule):
    """(low, high, size, generator, dtype, layout, device, pin_memory)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        size: Ints = args[2]
        check_options("randint", args[5], args[7])
        check_sizes("randint", size)
        dt: dtype = int64
        if args[4] is not None:
            dt = args[4]
        check_integers(args[0], args[1], dt)
        return Spec(size, contiguous_strides(size), dt, dt, placed(args[6]))


# -- filling ------------------------------------------------------------------------------------------------------
UNIFORM: Final[i64] = 0
NORMAL: Final[i64] = 1
RANDOM: Final[i64] = 2
EXPONENTIAL: Final[i64] = 3
CAUCHY: Final[i64] = 4
LOG_NORMAL: Final[i64] = 5
GEOMETRIC: Final[i64] = 6


@final
class FillingRule(Rule):
    """(self, parameters..., generator): this tensor's shape and dtype, other values."""

    def __init__(self, kind: i64) -> None:
        self.kind: Final = kind

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        dt = t._dtype
        kind = self.kind
        if kind == UNIFORM:
            check_uniform(args[1], args[2], dt, numel(t) == 0)
        elif kind == NORMAL:
            check_std(args[2])
            if numel(t) > 0:
                check_float("normal_kernel_cpu", dt)
        elif kind == RANDOM:
            if numel(t) > 0 or args[2] is not None or (args[1] is not None and args[1] != LEAST_INT64):
                check_random(args[1], args[2], dt)
        else:
            check_other(kind, args, dt, numel(t) == 0)
        return Spec(t._shape, preserved_strides(t), dt, dt, t._device)


def check_uniform(low: float, high: float, dt: dtype, empty: bool) -> None:
    check_float("check_uniform_bounds", dt)
    if empty and dt.is_complex:
        return
    limits = FLOATS.get(dt.name)
    if limits is not None:
        if not limits.least <= low <= limits.most:
            raise RuntimeError(f"from is out of bounds for {limits.name}")
        if not limits.least <= high <= limits.most:
            raise RuntimeError(f"to is out of bounds for {limits.name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if limits is not None and high - low > limits.most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{dt.scalar_name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit")


def check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def check_discrete(kernel: str, dt: dtype) -> None:
    """Small whole numbers are drawn in every type but bool, the wider unsigned ones, complex and one-byte floats."""
    if dt.name not in DIGITS and (dt.name not in INTS or dt.name in UNSIGNED or dt.name == "bool"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


def check_bernoulli(kernel: str, dt: dtype) -> None:
    if dt.name != "bool":
        check_discrete(kernel, dt)


# The names that C++ itself gives to types.
_DEMANGLED: Final[dict[str, str]] = {
    "int16": "short int", "int64": "long int", "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}


def demangled(dt: dtype) -> str:
    name = _DEMANGLED.get(dt.name)
    return INTS[dt.name].name if name is None else name


def check_other(kind: i64, args: tuple[Any, ...], dt: dtype, empty: bool) -> None:
    a: float = args[1]
    if kind == EXPONENTIAL:
        if not a > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={a:g}")
        if empty:
            return
        if not dt.is_floating_point:
            raise RuntimeError(
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
                f"you specified {dt.scalar_name}")
        check_float("exponential_cpu", dt)
    elif kind == CAUCHY:
        sigma: float = args[2]
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        if not dt.is_floating_point:
            raise RuntimeError(
                "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
                f"specified {demangled(dt)}")
        if not empty:
            check_float("cauchy_cpu", dt)
    elif kind == LOG_NORMAL:
        std: float = args[2]
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        if empty:
            return
        if dt.is_complex:
            raise NotImplementedError(f"\"log_normal_cpu\" not implemented for '{dt.scalar_name}'")
        check_float("log_normal_cpu", dt)
    else:
        if not 0 < a < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={a:g}")
        if not empty:
            check_discrete("geometric_cpu", dt)
