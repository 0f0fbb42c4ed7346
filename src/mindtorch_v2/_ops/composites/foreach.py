"""Loops over lists of tensors, one call of a row for each.

Invariant: lengths are compared before anything is computed; results, derivatives and errors are the row's own.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Kernel, Op
from ..._mypyc import i64
from ..._tensor_base import TensorBase, numel


def check_lengths(first: Any, other: Any, numbers: bool) -> None:
    """`numbers`: PyTorch takes `other` for a list of numbers."""
    if len(first) == 0:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if other is not None and len(other) != len(first):
        if numbers:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(first)} and {len(other)}")


@final
class Each(Kernel):
    """`row(x, ...)` for each tensor x of the first list: with the elements of `lists` further lists, then the other
    arguments and `end` as they are. `numbers` says of which lists PyTorch takes their elements for numbers; a list
    without elements is one by itself where `numbers` is None. `writes`: there is no result."""

    def __init__(self, row: Op, lists: i64, end: tuple[Any, ...], writes: bool, numbers: Any = ()) -> None:
        self.row: Final = row
        self.lists: Final = lists
        self.end: Final = end
        self.writes: Final = writes
        self.numbers: Final[Any] = numbers
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        first = args[0]
        lists = self.lists
        check_lengths(first, None, False)
        i: i64 = 1
        while i <= lists:
            check_lengths(first, args[i], len(args[i]) == 0 if self.numbers is None else int(i) in self.numbers)
            i += 1
        end: tuple[Any, ...] = args[lists + 1 :] + self.end
        made: list[Any] = []
        row = self.row
        k: i64 = 0
        for x in first:
            if lists == 0:
                given: tuple[Any, ...] = (x,)
            elif lists == 1:
                given = (x, args[1][k])
            elif lists == 2:
                given = (x, args[1][k], args[2][k])
            else:
                given = (x, args[1][k], args[2][k], args[3][k])
            made.append(row.call(given + end))
            k += 1
        return None if self.writes else tuple(made)


@final
class WithOne(Kernel):
    """`row(x, other, ...)` for each tensor x of a list, with one tensor that holds a number."""

    def __init__(self, row: Op, end: tuple[Any, ...], writes: bool) -> None:
        self.row: Final = row
        self.end: Final = end
        self.writes: Final = writes
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        other = args[1]
        assert isinstance(other, TensorBase)
        if len(other._shape) != 0 or numel(other) != 1:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {len(other._shape)} dimensions and {numel(other)} "
                "elements."
            )
        end: tuple[Any, ...] = args[1:] + self.end
        row = self.row
        made: list[Any] = [row.call((x,) + end) for x in args[0]]
        return None if self.writes else tuple(made)


@final
class Norms(Kernel):
    """(self, ord, dtype): the norm of all elements of each tensor."""

    def __init__(self, row: Op) -> None:
        self.row: Final = row
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        check_lengths(args[0], None, False)
        largest = args[1] == float("inf")
        for x in args[0]:
            t: TensorBase = x
            if largest and numel(t) == 0:
                raise RuntimeError(
                    "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not "
                    "have an identity"
                )
            if not t._dtype.is_inexact:
                raise RuntimeError(
                    "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                    f"{t._dtype.scalar_name}"
                )
        row = self.row
        made: list[Any] = [row.call((x, args[1], None, False, args[2])) for x in args[0]]
        return tuple(made)
