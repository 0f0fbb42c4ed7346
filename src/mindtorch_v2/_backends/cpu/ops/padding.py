"""CPU lines of padding: planes and their surroundings, in one native call each way.

Invariant: sizes and pads were checked by the row's rule; the kernel compares every place with its plane once more.
Images with channels last are volumes of height, width and channels, whose last dimension has no surroundings.
"""
from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._sizes import dense_bytes
from ...._tensor_base import TensorBase, numel
from ..kernels.dense import deliver, dense_as, is_last, last_as, operand, target, target_last, triple, wide_dtype
from ..lines import cpu, into

Ints = tuple[int, ...]
_MIRROR, _EDGE = 0, 1
_pad_planes: Final[Any] = _native.pad_planes
_pad_planes_backward: Final[Any] = _native.pad_planes_backward


def _lies_last(x: TensorBase, rank: int) -> bool:
    return rank == 2 and len(x._shape) == 4 and is_last(x)


@final
class Pads:
    """The kernels of one kind and rank, and where the last planes lay: layers ask for the same again and again."""

    def __init__(self, rank: int, mode: int) -> None:
        self.rank: Final = rank
        self.mode: Final = mode
        self.last: tuple[Any, ...] = ()

    def geometry(self, shape: Ints, padded: Ints, padding: Ints) -> tuple[int, Ints, Ints, Ints]:
        """Planes, their sizes before and behind, and what comes before each dimension."""
        last = self.last
        if len(last) == 4 and shape is last[0] and padded is last[1] and padding is last[2]:
            kept: tuple[int, Ints, Ints, Ints] = last[3]
            return kept
        rank = self.rank
        planes = 1
        for n in shape[: len(shape) - rank]:
            planes *= n
        before = tuple([padding[2 * (rank - 1 - d)] for d in range(rank)])
        found = planes, triple(shape[-rank:], 1), triple(padded[-rank:], 1), triple(before, 0)
        self.last = shape, padded, padding, found
        return found

    def last_geometry(self, shape: Ints, padded: Ints, padding: Ints) -> tuple[int, Ints, Ints, Ints]:
        """The same of images with channels last."""
        channels = shape[1]
        return shape[0], (*shape[2:], channels), (*padded[2:], channels), (padding[2], padding[0], 0)

    def forward(self, out: TensorBase, x: TensorBase, padding: Ints) -> None:
        if numel(out) == 0:
            return
        dt = x._dtype
        if _lies_last(x, self.rank):
            y = target_last(out, dt)
            planes, sizes, places, before = self.last_geometry(x._shape, out._shape, padding)
            x = last_as(x, dt)
        else:
            y = target(out, dt)
            planes, sizes, places, before = self.geometry(x._shape, out._shape, padding)
            x = dense_as(x, dt)
        _pad_planes(x._storage, int(x._offset), dt.code, y._storage, int(y._offset), dt.code, planes, sizes, places,
                    before, self.mode)
        deliver(out, y)

    def backward(self, out: TensorBase, grad_output: TensorBase, x: TensorBase, padding: Ints) -> None:
        if numel(out) == 0:
            return
        dt = wide_dtype(x._dtype)
        dense_bytes(out._shape, dt.itemsize)
        if _lies_last(x, self.rank):
            y, g = target_last(out, dt), last_as(grad_output, dt)
            planes, sizes, places, before = self.last_geometry(x._shape, grad_output._shape, padding)
        else:
            y, g = target(out, dt), dense_as(grad_output, dt)
            planes, sizes, places, before = self.geometry(x._shape, grad_output._shape, padding)
        _pad_planes_backward(*operand(g), *operand(y), planes, sizes, places, before, self.mode)
        deliver(out, y)


def _serve(kind: str, rank: int, mode: int) -> None:
    pads = Pads(rank, mode)
    cpu(f"{kind}_pad{rank}d", into(pads.forward))
    cpu(f"{kind}_pad{rank}d_backward", into(pads.backward))


for _rank in (1, 2, 3):
    _serve("reflection", _rank, _MIRROR)
    _serve("replication", _rank, _EDGE)
