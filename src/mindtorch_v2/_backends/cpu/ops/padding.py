"""CPU lines of padding: planes and their surroundings, in one native call each way.

Invariant: sizes and pads were checked by the row's rule; the kernel compares every place with its plane once more.
Images with channels last are volumes of height, width and channels, whose last dimension has no surroundings.
"""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._sizes import dense_bytes
from ...._tensor_base import numel
from ..kernels.dense import deliver, dense_as, is_last, last_as, operand, target, target_last, triple, wide_dtype
from ..lines import cpu, into

Ints = tuple[int, ...]
_MIRROR, _EDGE = 0, 1


def _lies_last(x: Any, rank: int) -> bool:
    return rank == 2 and len(x._shape) == 4 and is_last(x)


def _geometry(x: Any, padded: Any, rank: int, padding: Ints, mode: int, last: bool) -> tuple[Any, ...]:
    """The kernel's last arguments: planes, their sizes, what comes before each dimension, and the mode."""
    if last:
        channels = x._shape[1]
        return (x._shape[0], (*x._shape[2:], channels), (*padded._shape[2:], channels), (padding[2], padding[0], 0),
                mode)
    planes = 1
    for n in x._shape[:len(x._shape) - rank]:
        planes *= n
    before = tuple([padding[2 * (rank - 1 - d)] for d in range(rank)])
    return planes, triple(x._shape[-rank:], 1), triple(padded._shape[-rank:], 1), triple(before, 0), mode


def _serve(kind: str, rank: int, mode: int) -> None:
    def forward(out: Any, self: Any, padding: Ints) -> None:
        if numel(out) == 0:
            return
        dt, last = self._dtype, _lies_last(self, rank)
        x, y = (last_as(self, dt), target_last(out, dt)) if last else (dense_as(self, dt), target(out, dt))
        _native.pad_planes(*operand(x), *operand(y), *_geometry(self, out, rank, padding, mode, last))
        deliver(out, y)

    def backward(out: Any, grad_output: Any, self: Any, padding: Ints) -> None:
        if numel(out) == 0:
            return
        dt = wide_dtype(self._dtype)
        dense_bytes(out._shape, dt.itemsize)
        last = _lies_last(self, rank)
        g = last_as(grad_output, dt) if last else dense_as(grad_output, dt)
        y = target_last(out, dt) if last else target(out, dt)
        _native.pad_planes_backward(*operand(g), *operand(y), *_geometry(self, grad_output, rank, padding, mode, last))
        deliver(out, y)

    cpu(f"{kind}_pad{rank}d", into(forward))
    cpu(f"{kind}_pad{rank}d_backward", into(backward))


for _rank in (1, 2, 3):
    _serve("reflection", _rank, _MIRROR)
    _serve("replication", _rank, _EDGE)
