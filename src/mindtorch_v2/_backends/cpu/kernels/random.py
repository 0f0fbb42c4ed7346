"""Launches of the native generator of random numbers.

Invariant: a call draws from the generator it was given, or from the default one, and from no other source.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._mypyc import i64
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase
from .base import Filled

_fill: Final[Any] = _native.random_fill
_given: Final[Any] = _native.random_given

# What the native module calls its distributions.
UNIFORM: Final[i64] = 0
NORMAL: Final[i64] = 1
INTEGERS: Final[i64] = 2
FULL_RANGE: Final[i64] = 3
BERNOULLI: Final[i64] = 4
EXPONENTIAL: Final[i64] = 5
CAUCHY: Final[i64] = 6
LOG_NORMAL: Final[i64] = 7
GEOMETRIC: Final[i64] = 8
# Those whose parameters are tensors.
GAMMA: Final[i64] = 0
POISSON: Final[i64] = 1
BINOMIAL: Final[i64] = 2


@final
class Source:
    """The state of the default generator."""

    def __init__(self) -> None:
        self.state: Any = None


DEFAULT: Final = Source()


def state_of(generator: Any) -> Any:
    if generator is None:
        return DEFAULT.state
    if generator.device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
    return generator._state


def draw(kind: i64, out: TensorBase, generator: Any, a: Any, b: Any) -> None:
    """Fill `out`; a complex tensor is filled as pairs of real numbers."""
    dt = out._dtype
    if not dt.is_complex:
        _fill(int(kind), state_of(generator), out._storage, int(out._offset), out._stride, dt.code, out._shape, a, b)
        return
    shape = list(out._shape)
    stride = [2 * s for s in out._stride]
    shape.append(2)
    stride.append(1)
    if kind == NORMAL:
        # The variance is that of the complex number.
        b = b / 2**0.5
    _fill(
        int(kind), state_of(generator),
        out._storage, int(2 * out._offset), tuple(stride), dt.to_real().code,
        tuple(shape), a, b)


def draw_given(kind: i64, out: TensorBase, generator: Any, a: TensorBase, b: TensorBase) -> None:
    """Fill `out` from the distributions that `a` (and `b`, if the kind has two parameters) give for each element."""
    _given(
        int(kind), state_of(generator),
        a._storage, int(a._offset), expand_strides(a, out._shape), a._dtype.code,
        b._storage, int(b._offset), expand_strides(b, out._shape), b._dtype.code,
        out._storage, int(out._offset), out._stride, out._dtype.code,
        out._shape)


@final
class Draw(Filled):
    """`kind` with its two numbers at argument positions `at` and `at + 1` (fixed numbers when `at` is -1)."""

    def __init__(self, kind: i64, at: int, generator: int, a: Any, b: Any) -> None:
        self.kind: Final = kind
        self.at: Final = at
        self.generator: Final = generator
        self.a: Final[Any] = a
        self.b: Final[Any] = b

    def fill(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        generator = args[self.generator] if self.generator >= 0 else None
        if self.at < 0:
            draw(self.kind, out, generator, self.a, self.b)
        else:
            draw(self.kind, out, generator, args[self.at], args[self.at + 1])
