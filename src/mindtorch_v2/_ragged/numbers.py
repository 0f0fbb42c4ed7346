"""The size of a ragged dimension: a number of which only its identity is known.

Invariant: two such sizes are equal if they stand for the same offsets. It is an `int` too, so that a shape is a tuple
of ints; its value as one is above all sizes that memory has, and operators are given that value.
"""

from __future__ import annotations

from typing import Any

from .._sizes import RAGGED
from .._symbolic_types import SymInt

# How far apart the values of one size and of its double are.
_TIMES = 1 << 40


class NestedIntNode:
    """What a `SymInt` says of a ragged size: which one it is, and how many times."""

    def __init__(self, t_id: int, coeff: int) -> None:
        self.t_id = t_id
        self.coeff = coeff

    def nested_int(self) -> int:
        return self.t_id

    def nested_int_coeff(self) -> int:
        return self.coeff

    def maybe_as_int(self) -> None:
        return None

    def is_int(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"j{self.t_id}" if self.coeff == 1 else f"{self.coeff}*j{self.t_id}"

    __repr__ = __str__


class NestedInt(SymInt, int):
    """A ragged size, printed as `j1`."""

    __module__ = "torch"

    def __new__(cls, node: NestedIntNode) -> NestedInt:
        return int.__new__(cls, RAGGED + (node.coeff - 1) % (1 << 19) * _TIMES + node.t_id % _TIMES)

    def __init__(self, node: NestedIntNode) -> None:
        super().__init__(node)

    def __str__(self) -> str:
        return str(self.node)

    __repr__ = __str__

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NestedInt):
            return self.node.t_id == other.node.t_id and bool(self.node.coeff == other.node.coeff)
        return isinstance(other, int) and int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> bool:
        return _at_least(self, other)

    def __le__(self, other: Any) -> bool:
        return _at_least(other, self)

    def __lt__(self, other: Any) -> bool:
        return not _at_least(self, other)

    def __gt__(self, other: Any) -> bool:
        return not _at_least(other, self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, NestedInt):
            raise ValueError("cannot multiply two nested ints")
        if not isinstance(other, int):
            return NotImplemented
        return NestedInt(NestedIntNode(self.node.t_id, self.node.coeff * other))

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        raise TypeError("a ragged size cannot be pickled; pickle the nested tensor")


def _without(name: str, attribute: str) -> Any:
    """A method of an int that a ragged size has not: what is no number cannot be counted with."""

    def refused(self: NestedInt, *others: Any) -> Any:
        raise AttributeError(f"'NestedIntNode' object has no attribute '{attribute}'", name=attribute, obj=self.node)

    refused.__name__ = name
    return refused


# By the attributes of a node that PyTorch asks for. `__index__` of an int is never asked.
_WITHOUT = {
    "add": "add radd",
    "sub": "sub",
    "neg": "rsub neg",
    "pos": "pos",
    "abs": "abs",
    "int_floordiv": "floordiv rfloordiv",
    "int_truediv": "truediv rtruediv",
    "mod": "mod rmod",
    "pow_by_natural": "pow rpow",
    "bitwise_and": "and rand",
    "bitwise_or": "or ror",
    "bitwise_xor": "xor rxor",
    "lshift": "lshift rlshift",
    "rshift": "rshift rrshift",
    "int_": "int float",
    "trunc": "trunc",
    "floor": "floor",
    "ceil": "ceil",
}
for _attribute, _names in _WITHOUT.items():
    for _name in _names.split():
        setattr(NestedInt, f"__{_name}__", _without(f"__{_name}__", _attribute))


def _at_least(a: Any, b: Any) -> bool:
    """Whether a >= b: known of the same size, and of numbers below the smallest that a ragged size may be."""
    if isinstance(a, NestedInt) and isinstance(b, NestedInt):
        if a.node.t_id == b.node.t_id:
            return bool(a.node.coeff >= b.node.coeff)
    elif isinstance(a, NestedInt):
        if b <= 2:
            return True
    elif a < 2:
        return False
    raise ValueError("ge: relation is indeterminate")


class _Numbering:
    """Which ragged size belongs to which offsets, and to which lists of sizes."""

    def __init__(self) -> None:
        from ..utils.weak import WeakTensorKeyDictionary

        self.of_tensors: Any = WeakTensorKeyDictionary()
        self.of_sizes: dict[tuple[int, ...], NestedInt] = {}
        # PyTorch takes the first for a tensor of its own.
        self.count = 1

    def new(self) -> NestedInt:
        self.count += 1
        return NestedInt(NestedIntNode(self.count - 1, 1))


_NUMBERING = _Numbering()


def size_of(tensor: Any) -> NestedInt:
    """The ragged size that offsets (or lengths) stand for."""
    found: NestedInt | None = _NUMBERING.of_tensors.get(tensor)
    if found is None:
        found = _NUMBERING.new()
        _NUMBERING.of_tensors[tensor] = found
    return found


def same_size(new: Any, known: Any) -> None:
    """Let `new` stand for the same ragged size as `known`: the same offsets elsewhere."""
    if new is not known:
        _NUMBERING.of_tensors[new] = size_of(known)


def size_of_list(sizes: tuple[int, ...]) -> int:
    """The size of a dimension by those of the many: a number if all are equal."""
    if not sizes or all(n == sizes[0] for n in sizes):
        return sizes[0] if sizes else 0
    return _NUMBERING.of_sizes.setdefault(sizes, _NUMBERING.of_sizes.get(sizes) or _NUMBERING.new())
