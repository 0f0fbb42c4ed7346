"""Memory that the ranks of one machine share: large tensors are reduced, gathered and broadcast without sending them.

Each rank has an anonymous file (memfd) that the others find through /proc while it lives. It has no name anywhere, so
nothing is left behind, whoever is killed when. Invariant: nobody writes to memory that another rank may still read; the
barriers between are messages, so that a rank that is gone is noticed as in any other collective.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ._sockets import Call

__all__ = ["LARGE", "Shared"]

# From here on shared memory is faster than sockets, though ranks wait for each other twice.
LARGE = 1 << 18
# Small enough that what one rank writes is still in a cache when another reads it.
_BLOCK = 1 << 22
# What the root of a broadcast is ahead of the others.
_PIECE = 1 << 21

Combine = Callable[[Any, Any], Any]


def _mapped(file: int) -> Any:
    """A tensor of bytes over a file's memory."""
    torch: Any = sys.modules[__name__.partition(".")[0]]
    return torch.frombuffer(mmap.mmap(file, 2 * _BLOCK), dtype=torch.uint8)


class Shared:
    """Two halves of shared memory of every rank."""

    def __init__(
        self, rank: int, tensors: Sequence[Any], barrier: Callable[[Call], None], count: Callable[[Call, int], None]
    ) -> None:
        self.rank, self.size, self.barrier, self.count = rank, len(tensors), barrier, count
        self.others = [other for other in range(self.size) if other != rank]
        self.halves = [tensor.split(_BLOCK) for tensor in tensors]

    @staticmethod
    def made() -> tuple[str, Any]:
        """Memory of this rank: what others find it by, and its tensor."""
        file = os.memfd_create("mindtorch_gloo", os.MFD_CLOEXEC)
        os.ftruncate(file, 2 * _BLOCK)
        tensor = _mapped(file)
        return f"/proc/{os.getpid()}/fd/{file}", (file, tensor)

    @staticmethod
    def found(path: str) -> Any:
        """Another rank's memory, or None where it cannot be seen."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _mapped(file)
        finally:
            os.close(file)

    def _half(self, rank: int, which: int, dtype: Any, count: int, start: int = 0) -> Any:
        return self.halves[rank][which].view(dtype)[start : start + count]

    def _cuts(self, total: int) -> list[tuple[int, int]]:
        each, more = divmod(total, self.size)
        ends = [each * (rank + 1) + min(rank + 1, more) for rank in range(self.size)]
        return list(zip([0, *ends[:-1]], ends))

    def allreduce(self, call: Call, flat: Any, combine: Combine) -> None:
        """Every rank reduces one part of each block, and takes the other parts from the others."""
        dtype, step = flat.dtype, _BLOCK // flat.element_size()
        for start in range(0, flat.numel(), step):
            block = flat[start : start + step]
            cuts = self._cuts(block.numel())
            for other in self.others:
                first, last = cuts[other]
                self._half(self.rank, 0, dtype, last - first, first).copy_(block[first:last])
            self.barrier(call)
            first, last = cuts[self.rank]
            own = block[first:last]
            for other in self.others:
                combine(own, self._half(other, 0, dtype, last - first, first))
            self._half(self.rank, 1, dtype, last - first).copy_(own)
            self.barrier(call)
            for other in self.others:
                first, last = cuts[other]
                block[first:last].copy_(self._half(other, 1, dtype, last - first))
            # Others have read their parts of what was written first, and each of them all of this rank's part.
            given = block.numel() + (self.size - 2) * own.numel()
            self.count(call, given * flat.element_size())

    def allgather(self, call: Call, outs: Sequence[Any], flat: Any) -> None:
        """Halves in turn: who writes to one again has met all others since they read it."""
        dtype, step = flat.dtype, _BLOCK // flat.element_size()
        for turn, start in enumerate(range(0, flat.numel(), step)):
            block = flat[start : start + step]
            self._half(self.rank, turn % 2, dtype, block.numel()).copy_(block)
            self.barrier(call)
            for other in self.others:
                outs[other][start : start + step].copy_(self._half(other, turn % 2, dtype, block.numel()))
        self.barrier(call)
        if outs[self.rank].data_ptr() != flat.data_ptr():
            outs[self.rank].copy_(flat)
        self.count(call, flat.numel() * flat.element_size() * len(self.others))

    def broadcast(self, call: Call, flat: Any, root: int) -> None:
        """Halves in turn: while the others read one, the root writes the next."""
        dtype, step = flat.dtype, _PIECE // flat.element_size()
        for turn, start in enumerate(range(0, flat.numel(), step)):
            block = flat[start : start + step]
            half = self._half(root, turn % 2, dtype, block.numel())
            if self.rank == root:
                half.copy_(block)
            self.barrier(call)
            if self.rank != root:
                block.copy_(half)
        self.barrier(call)
        if self.rank == root:
            self.count(call, flat.numel() * flat.element_size() * len(self.others))

    def reduce_scatter(self, call: Call, out: Any, parts: Sequence[Any], combine: Combine) -> None:
        dtype, step = out.dtype, _BLOCK // self.size // out.element_size()
        for turn, start in enumerate(range(0, out.numel(), step)):
            total = out[start : start + step]
            count = total.numel()
            for other in self.others:
                self._half(self.rank, turn % 2, dtype, count, other * step).copy_(parts[other][start : start + step])
            total.copy_(parts[self.rank][start : start + step])
            self.barrier(call)
            for other in self.others:
                combine(total, self._half(other, turn % 2, dtype, count, self.rank * step))
        self.barrier(call)
        self.count(call, out.numel() * out.element_size() * len(self.others))
