"""`Size`, the shape of a tensor.

Invariant: it is a tuple of ints everywhere a tuple is expected; operations that keep it a shape return a `Size`.
"""

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex

from . import _native

__all__ = ["Size", "size_of"]


class Size(_native.Shape):
    """A shape: a tuple of ints that prints as PyTorch's and knows its number of elements."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({[*self]})"

    __str__ = __repr__

    def __mul__(self, count: SupportsIndex) -> "Size":
        if not hasattr(count, "__index__"):
            raise TypeError(f"can't multiply sequence by non-int of type '{type(count).__name__}'")
        return size_of(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


def _checked(sizes: Iterable[SupportsIndex], start: int = 0) -> tuple[int, ...]:
    values: list[Any] = []
    if isinstance(sizes, range):
        sizes = tuple(sizes)  # one that is too long is refused before it is counted
    for position, item in enumerate(sizes, start):
        try:
            # operator.index hands a bool back unchanged. A symbol, which has a node, stays what it is.
            values.append(item if hasattr(item, "node") else int(operator.index(item)))
        except TypeError:
            kind = type(item).__name__
            raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')") from None
    return tuple(values)


def _joined(left: Any, right: Any) -> Any:
    """A sum of which one operand is a size: elements that are no plain ints, and operands that are no tuples."""
    if not isinstance(left, Size):
        return size_of(_checked(left) + tuple(right)) if isinstance(left, tuple) else NotImplemented
    if not isinstance(right, tuple):
        # Returned, NotImplemented would end in the words of the base class.
        reflected = getattr(type(right), "__radd__", None)
        sum_ = NotImplemented if reflected is None else reflected(right, left)
        if sum_ is not NotImplemented:
            return sum_
        raise TypeError(f"can only concatenate tuple (not {type(right).__name__}) to torch.Size")
    return size_of(tuple(left) + _checked(right, len(left)))


def size_of(shape: tuple[int, ...]) -> Size:
    """A `Size` from a tuple already known to hold ints."""
    return Size(shape)


_native.define_size(Size, _checked, _joined)
# What a user sees of the class is where it is found.
Size.__module__ = "mindtorch_v2"
