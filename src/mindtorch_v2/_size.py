"""`Size`, the shape of a tensor.

Invariant: it is a tuple of ints everywhere a tuple is expected; operations that keep it a shape return a `Size`.
"""

import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

__all__ = ["Size", "size_of"]

_item = tuple.__getitem__


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints as PyTorch's and knows its number of elements."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = (), /) -> "Size":
        if type(sizes) is tuple or type(sizes) is list:
            for item in sizes:
                if type(item) is not int:
                    return size_of(_checked(sizes))
            return tuple.__new__(Size, sizes)
        return size_of(_checked(sizes))

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for length in self:
            count *= length
        return count

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> "Size": ...
    def __getitem__(self, key: Any) -> Any:
        found = _item(self, key)
        return tuple.__new__(Size, found) if type(found) is tuple else found

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            # Returned, NotImplemented would end in the words of the base class.
            reflected = getattr(type(other), "__radd__", None)
            sum_ = NotImplemented if reflected is None else reflected(other, self)
            if sum_ is not NotImplemented:
                return sum_
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        for item in other:
            if type(item) is not int:
                other = _checked(other, len(self))
                break
        return tuple.__new__(Size, tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return size_of(_checked(other) + tuple(self))

    def __mul__(self, count: SupportsIndex) -> "Size":
        if not hasattr(count, "__index__"):
            raise TypeError(f"can't multiply sequence by non-int of type '{type(count).__name__}'")
        return size_of(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


def _checked(sizes: Iterable[SupportsIndex], start: int = 0) -> tuple[int, ...]:
    values = []
    for position, item in enumerate(sizes, start):
        try:
            # operator.index hands a bool back unchanged.
            values.append(int(operator.index(item)))
        except TypeError:
            kind = type(item).__name__
            raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')") from None
    return tuple(values)


def size_of(shape: tuple[int, ...]) -> Size:
    """A `Size` from a tuple already known to hold ints: no checks."""
    return tuple.__new__(Size, shape)


# What a user sees of the class is where it is found.
Size.__module__ = "mindtorch_v2"
