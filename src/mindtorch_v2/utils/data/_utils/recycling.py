"""Shared memory that goes to and fro between a worker and its loader: new pages cost more than the bytes in them.

Invariant: a worker writes into a segment again only when it holds no storage in it and the loader has let go of it as
often as it was sent. The loader says so with its next task. What a fork of the loader's process has seen stays as it
is: it is never let go of.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from typing import Any, Final

from ...._shared_memory import Segment, new_segment

# Segments that a worker keeps, whatever their sizes.
_MOST: Final = 16


# -- in a worker --------------------------------------------------------------------------------------------------
class Slot:
    """Memory of a worker that can be used again."""

    def __init__(self, number: int, segment: Segment) -> None:
        self.number = number
        self.segment = segment
        self.held = False
        self.known = False
        self.sent = 0
        self.released = 0

    def is_free(self) -> bool:
        return not self.held and self.sent == self.released


class Lent(Segment):
    """A segment for one batch; its memory is the slot's."""

    __slots__ = ("slot",)

    def __init__(self, slot: Slot) -> None:
        own = slot.segment
        self.address = own.address
        self.nbytes = own.nbytes
        self.fd = own.fd
        self.handle = self.manager = b""
        self.slot = slot
        slot.held = True

    def __del__(self) -> None:
        self.slot.held = False


class Pool:
    """The segments that this worker uses again. None in a process that was forked from it."""

    def __init__(self) -> None:
        self.pid = 0
        self.slots: dict[int, Slot] = {}
        self.forgotten: list[int] = []
        self.count = 0

    def start(self) -> None:
        """This process is a worker."""
        self.pid = os.getpid()

    def take(self, nbytes: int) -> Segment:
        """Memory of this size, used before if there is some."""
        if self.pid != os.getpid():
            return new_segment(nbytes)
        for slot in self.slots.values():
            if slot.segment.nbytes == nbytes and slot.is_free():
                return Lent(slot)
        if len(self.slots) >= _MOST:
            old = next((slot for slot in self.slots.values() if slot.is_free()), None)
            if old is None:
                return new_segment(nbytes)
            del self.slots[old.number]
            self.forgotten.append(old.number)
        self.count += 1
        slot = self.slots[self.count] = Slot(self.count, new_segment(nbytes))
        return Lent(slot)

    def returned(self, counts: list[tuple[int, int]]) -> None:
        """The loader has let go of segments so many times."""
        for number, count in counts:
            if number in self.slots:
                self.slots[number].released += count


POOL: Final = Pool()


# -- in the loader's process --------------------------------------------------------------------------------------
class _Mapping:
    """Memory of a worker as this process sees it."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.storage: Any = None


class Borrowed(Segment):
    """A batch in memory of a worker, which gets it back afterwards."""

    __slots__ = ("kept", "mapping", "number", "receipts", "returns")

    def __init__(self, mapping: _Mapping, number: int, returns: deque[tuple[int, int]]) -> None:
        self.address = mapping.segment.address
        self.nbytes = mapping.segment.nbytes
        self.fd = -1
        self.handle = self.manager = b""
        self.mapping = mapping
        self.number = number
        self.returns = returns
        self.receipts = 1
        self.kept = False
        _Alive.borrowed.add(self)

    def __del__(self) -> None:
        if not self.kept:
            self.returns.append((self.number, self.receipts))


class _Alive:
    borrowed: weakref.WeakSet[Borrowed] = weakref.WeakSet()


def _keep_all() -> None:
    """A child will see this memory too, and nobody knows how long."""
    for segment in list(_Alive.borrowed):
        segment.kept = True


os.register_at_fork(before=_keep_all)


class Table:
    """What this process has of the memory of one worker, and what goes back with the next task."""

    def __init__(self) -> None:
        self.mappings: dict[int, _Mapping] = {}
        self.returns: deque[tuple[int, int]] = deque()

    def receive(self, number: int, nbytes: int, fd: int) -> Any:
        """The storage of a segment; `fd` is -1 where it was seen before."""
        from ...._device import CPU
        from ...._storage import _wrap

        if fd >= 0:
            segment = Segment(fd, nbytes)
            segment.close_descriptor()
            self.mappings[number] = _Mapping(segment)
        mapping = self.mappings[number]
        storage = None if mapping.storage is None else mapping.storage()
        if storage is not None and isinstance(storage._raw.owner, Borrowed):
            storage._raw.owner.receipts += 1
            return storage
        storage = _wrap(Borrowed(mapping, number, self.returns).storage(), CPU)
        mapping.storage = weakref.ref(storage)
        return storage

    def take_returns(self) -> list[tuple[int, int]]:
        taken = []
        while self.returns:
            taken.append(self.returns.popleft())
        return taken

    def forget(self, numbers: list[int]) -> None:
        """The worker has no use for these any more."""
        for number in numbers:
            self.mappings.pop(number, None)
