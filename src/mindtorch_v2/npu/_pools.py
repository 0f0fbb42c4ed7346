"""`torch.npu.MemPool`: memory that only those get who ask for it by name, with `torch.cuda.MemPool`'s meaning.

Invariant: a pool's memory stays its own while the pool lives; afterwards it goes back as its tensors do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._backends.npu import memory as _memory
from .._backends.npu import runtime as _runtime
from .._backends.npu.allocator import Room as _Room
from . import graphs as _graphs

__all__ = ["MemPool", "use_mem_pool"]


class _Gone:
    """Rooms whose pools nobody holds: a finaliser may not wait for the device."""

    waiting: list[tuple[int, _Room]] = []
    hooked = False


def _clear() -> None:
    while _Gone.waiting:
        index, room = _Gone.waiting.pop()
        if index not in _runtime.STATE.lost:
            _memory.allocator(index).leave_room(room)


class MemPool:
    """Memory of its own, for `use_mem_pool`, or as `pool=` of a graph's capture (`pool.id`)."""

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        for name, value in (("allocator", allocator), ("use_on_oom", use_on_oom), ("no_split", no_split)):
            if value:
                raise NotImplementedError(f"torch.npu.MemPool(): argument '{name}' is not available")
        self.id: tuple[int, int] = _graphs.graph_pool_handle()
        self.allocator = None
        self._rooms: dict[int, _Room] = {}
        if not _Gone.hooked:
            _Gone.hooked = True
            _memory.add_cache(_clear)

    def _room(self, index: int) -> _Room:
        room = self._rooms.get(index)
        if room is None:
            room = self._rooms[index] = _memory.allocator(index).enter_room(self.id[1])
        return room

    def use_count(self) -> int:
        """How many hold its memory: itself, and graphs that were captured in it."""
        return max([1, *(int(room.graphs) for room in self._rooms.values())])

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Its segments, in the words of `torch.npu.memory_snapshot`."""
        return [s for s in _memory.memory_snapshot() if s["segment_pool_id"] == self.id]

    def __del__(self) -> None:
        if _runtime.alive():
            _Gone.waiting.extend(getattr(self, "_rooms", {}).items())


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """`with torch.npu.use_mem_pool(pool):` memory that this thread asks for inside comes from the pool."""
    if not isinstance(pool, MemPool):
        raise TypeError(f"use_mem_pool(): argument 'pool' must be a MemPool, not {type(pool).__name__}")
    index = _runtime.index_of(device)
    _runtime.check_index(index)
    owner, room = _memory.allocator(index), pool._room(index)
    before = owner.send(room)
    try:
        yield
    finally:
        owner.send(before)
