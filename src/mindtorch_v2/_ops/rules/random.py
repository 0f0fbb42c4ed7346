"""Rules of random numbers: which dtypes and parameters a distribution accepts, and the shape of what is drawn.

Invariant: parameters are refused here, with PyTorch's text, before a generator advances.
"""
from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ..._dispatch.op import Rule, Spec
from ..._dtype import dtype, int64
from ..._tensor_base import TensorBase, contiguous_strides
from .shape import FactoryRule, LikeRule, check_options, check_sizes, placed, preserved_strides

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
    "uint16": IntBounds(0, 65535, "unsigned short"), "uint32": IntBounds(0, 4294967295, "unsigned int"),
    "uint64": IntBounds(0, 18446744073709551615, "unsigned long"),
}


def check_float(kernel: str, dt: dtype) -> None:
    """Continuous numbers are drawn in floating types of two bytes and more, and in complex ones."""
    if dt.category < 2 or (dt.category == 2 and dt.itemsize == 1):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


def check_integers(low: int, high: int, dt: dtype) -> None:
    """The range of `random_` and `randint` must not be empty and must fit the dtype."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    exact = INTS.get(dt.name)
    if exact is not None:
        if low < exact.least or low > exact.most:
            raise RuntimeError(f"from is out of bounds for {exact.name}")
        if high - 1 < exact.least or high - 1 > exact.most:
            raise RuntimeError(f"to - 1 is out of bounds for {exact.name}")
        return
    wide = FLOATS.get(dt.name)
    if wide is None:
        raise NotImplementedError(f"\"random_from_to\" not implemented for '{dt.scalar_name}'")
    if not wide.least <= float(low) <= wide.most:
        raise RuntimeError(f"from is out of bounds for {wide.name}")
    if not wide.least <= float(high - 1) <= wide.most:
        raise RuntimeError(f"to - 1 is out of bounds for {wide.name}")


@final
class SizedRule(Rule):
    """(size, generator, dtype, layout, device, pin_memory)"""

    def __init__(self, name: str, kernel: str) -> None:
        self.rule: Final = FactoryRule(name, 2, 0)
        self.kernel: Final = kernel

    def infer(self, args: tuple[Any, ...]) -> Any:
        s = self.rule.infer(args)
        assert isinstance(s, Spec)
        check_float(self.kernel, s.dtype)
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
        check_float(self.kernel, s.dtype)
        return s


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
            check_uniform(args[1], args[2], dt)
        elif kind == NORMAL:
            check_std(args[2])
            check_float("normal_kernel_cpu", dt)
        elif kind == RANDOM:
            if args[1] is not None and args[2] is not None:
                check_integers(args[1], args[2], dt)
            elif dt.name not in INTS and dt.name not in FLOATS:
                raise NotImplementedError(f"\"random_from_to\" not implemented for '{dt.scalar_name}'")
        else:
            check_other(kind, args, dt)
        return Spec(t._shape, preserved_strides(t), dt, dt, t._device)


def check_uniform(low: float, high: float, dt: dtype) -> None:
    check_float("check_uniform_bounds", dt)
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
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def check_other(kind: i64, args: tuple[Any, ...], dt: dtype) -> None:
    a: float = args[1]
    if kind == EXPONENTIAL:
        if not dt.is_floating_point:
            raise RuntimeError(
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
                f"you specified {dt.scalar_name}")
        if not a > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={a:g}")
    elif kind == CAUCHY:
        sigma: float = args[2]
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        if not dt.is_floating_point:
            raise RuntimeError(
                "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
                f"specified {dt.scalar_name}")
    elif kind == LOG_NORMAL:
        std: float = args[2]
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        check_float("log_normal_cpu", dt)
    elif not 0 < a < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={a:g}")
