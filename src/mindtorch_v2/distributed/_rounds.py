"""Collectives over messages: who sends which part of the memory to whom.

Invariant: memory is flat tensors of the CPU; a sum is formed in one order, so that all ranks hold the same bits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

from ._options import RedOpType, ReduceOp
from ._shared import LARGE, Shared
from ._sockets import Call, Mesh

__all__ = ["Rounds", "memory"]

# What a rank sends at most to all others together where everybody sends everything, in one step; above it parts go
# around a ring.
_SMALL = 1 << 18
# A part of the ring travels while the one before it is added.
_PIECE = 1 << 20
_WINDOW = 4  # pieces that may come before they are needed


def _minimum(total: Any, part: Any) -> None:
    total.copy_(total.minimum(part))


def _maximum(total: Any, part: Any) -> None:
    total.copy_(total.maximum(part))


COMBINE: dict[Any, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: lambda total, part: total.add_(part),
    ReduceOp.AVG: lambda total, part: total.add_(part),
    ReduceOp.PRODUCT: lambda total, part: total.mul_(part),
    ReduceOp.MIN: _minimum,
    ReduceOp.MAX: _maximum,
    ReduceOp.BAND: lambda total, part: total.bitwise_and_(part),
    ReduceOp.BOR: lambda total, part: total.bitwise_or_(part),
    ReduceOp.BXOR: lambda total, part: total.bitwise_xor_(part),
}


def memory(flat: Any) -> memoryview:
    """The bytes of a contiguous tensor, which must live as long as they are used."""
    size = flat.numel() * flat.element_size()
    if size == 0:
        return memoryview(bytearray())
    return memoryview((ctypes.c_char * size).from_address(flat.data_ptr())).cast("B")


class Rounds:
    """The collectives of one group."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh, self.rank, self.size = mesh, mesh.rank, mesh.size
        self.others = [rank for rank in range(self.size) if rank != self.rank]
        # Begin with the next rank, so that not all talk to the same one first.
        self._shared: Shared | None = None
        self._asked = not mesh.together or self.size == 1
        self.turn = [(self.rank + step) % self.size for step in range(1, self.size)]

    def close(self) -> None:
        """End what still runs; connections are the mesh's."""

    def _post(self, call: Call, rank: int, flat: Any) -> Any:
        return self.mesh.post(call, rank, memory(flat), flat)

    def shared(self, call: Call, flat: Any) -> Shared | None:
        """The memory that all ranks share, for a tensor that is large enough; ranks agree on whether there is any."""
        if flat.numel() * flat.element_size() < LARGE:
            return None
        if not self._asked:
            self._asked = True
            self._shared = self._share(call)
        return self._shared

    def _share(self, call: Call) -> Shared | None:
        path, (file, own) = Shared.made()
        try:
            paths = self._told(call, path.encode().ljust(64))
            tensors = [own if rank == self.rank else Shared.found(paths[rank]) for rank in range(self.size)]
            # Until here the file must be open; and one rank that cannot see another is enough for all to use sockets.
            seen = self._told(call, b"no" if any(each is None for each in tensors) else b"ok")
        finally:
            os.close(file)
        return Shared(self.rank, tensors, self.barrier, self.mesh.count) if set(seen) == {"ok"} else None

    def _told(self, call: Call, text: bytes) -> list[str]:
        """A short text of every rank; all have the same length."""
        buffers = [bytearray(text) for _ in range(self.size)]
        slots = [(rank, self.mesh.post(call, rank, memoryview(buffers[rank]), None)) for rank in self.others]
        for rank in self.others:
            self.mesh.send(call, rank, memoryview(text))
        for rank, slot in slots:
            self.mesh.wait(call, slot, rank)
        return [bytes(each).decode().strip() for each in buffers]

    def exchange(self, call: Call, sending: Sequence[Any], receiving: Sequence[Any]) -> None:
        """`sending[r]` goes to rank r, `receiving[r]` comes from it."""
        slots = [(rank, self._post(call, rank, receiving[rank])) for rank in self.others]
        for rank in self.turn:
            self.mesh.send(call, rank, memory(sending[rank]))
        for rank, slot in slots:
            self.mesh.wait(call, slot, rank)
        if sending[self.rank].data_ptr() != receiving[self.rank].data_ptr():
            receiving[self.rank].copy_(sending[self.rank])

    def _combined(self, parts: Sequence[Any], kind: RedOpType, out: Any) -> None:
        """All parts in the order of ranks; `out` may be one of them."""
        total = parts[0] if parts[0].data_ptr() != out.data_ptr() and len(parts) > 1 else parts[0].clone()
        for part in parts[1:]:
            COMBINE[kind](total, part)
        out.copy_(total)

    def allreduce(self, call: Call, flat: Any, kind: RedOpType) -> None:
        if self.size == 1:
            return
        if flat.numel() * flat.element_size() * (self.size - 1) < _SMALL or flat.numel() < self.size:
            parts = [flat if rank == self.rank else flat.new_empty(flat.numel()) for rank in range(self.size)]
            self.exchange(call, [flat] * self.size, parts)
            self._combined(parts, kind, flat)
            return
        shared = self.shared(call, flat)
        if shared is not None:
            shared.allreduce(call, flat, COMBINE[kind])
        else:
            self._ring(call, flat, kind)

    def _cuts(self, total: int) -> list[tuple[int, int]]:
        each, more = divmod(total, self.size)
        ends = [each * (rank + 1) + min(rank + 1, more) for rank in range(self.size)]
        return list(zip([0, *ends[:-1]], ends))

    def _ring(self, call: Call, flat: Any, kind: RedOpType) -> None:
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        parts = [flat[start:end] for start, end in self._cuts(flat.numel())]
        piece = max(_PIECE // flat.element_size(), 1)
        spare = [flat.new_empty(min(piece, flat.numel())) for _ in range(_WINDOW)]
        for step in range(self.size - 1):
            out = parts[(self.rank - step) % self.size].split(piece)
            into = parts[(self.rank - step - 1) % self.size].split(piece)
            room = [spare[index % _WINDOW][: each.numel()] for index, each in enumerate(into)]
            slots = [self._post(call, before, each) for each in room[:_WINDOW]]
            for index in range(max(len(out), len(into))):
                if index < len(out):
                    self.mesh.send(call, after, memory(out[index]))
                if index < len(into):
                    self.mesh.wait(call, slots[index], before)
                    COMBINE[kind](into[index], room[index])
                    if index + _WINDOW < len(into):
                        slots.append(self._post(call, before, room[index + _WINDOW]))
        for step in range(self.size - 1):
            slot = self._post(call, before, parts[(self.rank - step) % self.size])
            self.mesh.send(call, after, memory(parts[(self.rank + 1 - step) % self.size]))
            self.mesh.wait(call, slot, before)

    def reduce(self, call: Call, flat: Any, kind: RedOpType, root: int) -> None:
        if self.rank != root:
            self.mesh.send(call, root, memory(flat))
            return
        parts = [flat if rank == root else flat.new_empty(flat.numel()) for rank in range(self.size)]
        self._collect(call, parts)
        self._combined(parts, kind, flat)

    def _collect(self, call: Call, parts: Sequence[Any]) -> None:
        slots = [(rank, self._post(call, rank, parts[rank])) for rank in self.others]
        for rank, slot in slots:
            self.mesh.wait(call, slot, rank)

    def reduce_scatter(self, call: Call, out: Any, parts: Sequence[Any], kind: RedOpType) -> None:
        shared = self.shared(call, out)
        if shared is not None:
            return shared.reduce_scatter(call, out, parts, COMBINE[kind])
        came = [out.new_empty(out.numel()) for _ in range(self.size)]
        self.exchange(call, parts, came)
        self._combined(came, kind, out)

    def broadcast(self, call: Call, flat: Any, root: int) -> None:
        """A tree: whoever has it sends it on, to ranks that are a power of two away; or through memory all share."""
        shared = self.shared(call, flat)
        if shared is not None:
            return shared.broadcast(call, flat, root)
        place = (self.rank - root) % self.size
        step = 1
        while step < self.size:
            if place < step:
                if place + step < self.size:
                    self.mesh.send(call, (self.rank + step) % self.size, memory(flat))
            elif place < 2 * step:
                source = (self.rank - step) % self.size
                self.mesh.wait(call, self._post(call, source, flat), source)
            step *= 2

    def allgather(self, call: Call, outs: Sequence[Any], flat: Any) -> None:
        shared = self.shared(call, flat)
        if shared is not None:
            return shared.allgather(call, outs, flat)
        self.exchange(call, [flat] * self.size, outs)

    def gather(self, call: Call, outs: Sequence[Any], flat: Any, root: int) -> None:
        if self.rank != root:
            self.mesh.send(call, root, memory(flat))
            return
        self._collect(call, outs)
        outs[root].copy_(flat)

    def scatter(self, call: Call, out: Any, parts: Sequence[Any], root: int) -> None:
        if self.rank != root:
            self.mesh.wait(call, self._post(call, root, out), root)
            return
        for rank in self.turn:
            self.mesh.send(call, rank, memory(parts[rank]))
        out.copy_(parts[root])

    def barrier(self, call: Call) -> None:
        """In rounds of growing distance everybody hears of everybody."""
        step, nothing = 1, memoryview(b"")
        while step < self.size:
            source = (self.rank - step) % self.size
            slot = self.mesh.post(call, source, nothing, None)
            self.mesh.send(call, (self.rank + step) % self.size, nothing)
            self.mesh.wait(call, slot, source)
            step *= 2

    def send(self, call: Call, flat: Any, rank: int) -> None:
        self.mesh.send(call, rank, memory(flat))

    def receive(self, call: Call, flat: Any, rank: int | None) -> int:
        """Into `flat`, from a rank or from anyone; who it was."""
        if rank is None:
            return self.mesh.wait(call, self.mesh.post_any(call, memory(flat), flat), None)
        return self.mesh.wait(call, self._post(call, rank, flat), rank)
