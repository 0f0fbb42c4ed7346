"""Launches of operators that place elements: joining, flipping, triangles.

Invariant: the rule has agreed to the shapes; a dimension is only counted from the front here.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._mypyc import i64
from ...._ops.rules.shape import skipped
from ...._tensor_base import TensorBase, is_contiguous, numel
from ...common.transfer import surround
from .base import Filled, OneResult

_join: Final[Any] = _native.join
_flip: Final[Any] = _native.flip
_tri: Final[Any] = _native.tri
_pad_number: Final[Any] = _native.pad_number


def shares(out: TensorBase, tensors: tuple[Any, ...]) -> bool:
    """Whether the storage is that of one of the tensors."""
    for t in tensors:
        if t._storage is out._storage:
            return True
    return False


@final
class Cat(OneResult):
    """(tensors, dim)"""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return not shares(out, args[0])

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        tensors: tuple[Any, ...] = args[0]
        parts: list[Any] = [None] * (5 * len(tensors))
        at: i64 = 0
        for x in tensors:
            t: TensorBase = x
            if not skipped(t) or len(s.shape) == 1:
                parts[at] = t._storage
                parts[at + 1] = int(t._offset)
                parts[at + 2] = t._stride
                parts[at + 3] = t._dtype.code
                parts[at + 4] = t._shape
                at += 5
        if at < len(parts):
            del parts[at:]
        dim: i64 = args[1]
        if dim < 0:
            dim += len(s.shape)
        if not 0 <= dim < len(s.shape):
            # Of tensors of shape (0,) alone any dimension will do.
            dim = 0
        return _join(out, offset, stride, code, s.shape, int(dim), parts)


@final
class Stack(OneResult):
    """(tensors, dim): each tensor gets a dimension of size one, then they are joined along it."""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return not shares(out, args[0])

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        dim: int = args[1]
        if dim < 0:
            dim += len(s.shape)
        sizes = list(s.shape)
        sizes[dim] = 1
        shape = tuple(sizes)
        tensors: tuple[Any, ...] = args[0]
        parts: list[Any] = [None] * (5 * len(tensors))
        at: i64 = 0
        last: tuple[int, ...] = ()
        widened: tuple[int, ...] = (1,)
        for x in tensors:
            t: TensorBase = x
            if t._stride is not last and t._stride != last:
                last = t._stride
                steps = list(last)
                steps.insert(dim, 1)
                widened = tuple(steps)
            parts[at] = t._storage
            parts[at + 1] = int(t._offset)
            parts[at + 2] = widened
            parts[at + 3] = t._dtype.code
            parts[at + 4] = shape
            at += 5
        return _join(out, offset, stride, code, s.shape, dim, parts)


@final
class Flip(OneResult):
    """(self, dims)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        return _flip(
            t._storage, int(t._offset), t._stride, t._dtype.code,
            out, offset, stride, code,
            s.shape, args[1])


@final
class ConstantPad(Filled):
    """(self, pad, value): dense tensors in one pass; of others the surroundings are written first."""

    def fill(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        t = args[0]
        assert isinstance(t, TensorBase)
        pad: tuple[int, ...] = args[1]
        rank: i64 = len(pad) // 2
        if rank > 3 or not is_contiguous(t) or not is_contiguous(out) or not numel(t) or not numel(out):
            surround(out, t, pad, args[2])
            return
        first: i64 = len(t._shape) - rank
        planes: i64 = 1
        before = [0, 0, 0]
        sizes = [1, 1, 1]
        padded = [1, 1, 1]
        d: i64 = 0
        for n in t._shape:
            if d < first:
                planes *= n
            else:
                at = d - first + 3 - rank
                sizes[at] = n
                padded[at] = out._shape[d]
                before[at] = pad[2 * (rank - 1 - d + first)]
            d += 1
        _pad_number(
            t._storage, int(t._offset), t._dtype.code,
            out._storage, int(out._offset), out._dtype.code,
            int(planes), tuple(sizes), tuple(padded), tuple(before), args[2])


def near_diagonal(shape: tuple[int, ...], diagonal: int) -> int:
    """A diagonal beyond the matrix is as good as the one next to it, and can be counted with."""
    n = len(shape)
    return max(min(diagonal, shape[n - 1]), -shape[n - 2])


@final
class Triangle(OneResult):
    """tril and triu: (self, diagonal)"""

    def __init__(self, upper: bool) -> None:
        self.upper: Final = upper

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return out._dtype is spec.dtype

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        diagonal = near_diagonal(s.shape, args[1])
        if out is t._storage and offset == t._offset and stride == t._stride and self._keeps(s.shape, diagonal):
            return out  # in place nothing is written, however large the tensor is said to be
        return _tri(
            t._storage, int(t._offset), t._stride, t._dtype.code,
            out, offset, stride, code,
            s.shape, diagonal, self.upper)

    def _keeps(self, shape: tuple[int, ...], diagonal: int) -> bool:
        return diagonal <= 1 - shape[-2] if self.upper else diagonal >= shape[-1] - 1
