"""Collectives of bytes and numbers over a store alone, for what must be agreed on before there is a group.

Invariant: a key serves one collective of an object; who waits too long is told which ranks are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ._errors import DistStoreError
from ._store import Store

__all__ = ["_ControlCollectives", "_StoreCollectives", "_test_python_store"]

_LIMIT = timedelta(seconds=300)


class _ControlCollectives:
    """Base class of collectives of bytes and numbers."""

    __module__ = "torch.distributed"

    def __init__(self) -> None:
        raise TypeError("torch.distributed._ControlCollectives: No constructor defined!")


class _StoreCollectives(_ControlCollectives):
    """Collectives of bytes and numbers by a store."""

    __module__ = "torch.distributed"

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store, self._rank, self._size = store, rank, world_size
        self._seen: set[str] = set()

    @contextmanager
    def _use(self, key: str, timeout: timedelta) -> Iterator[None]:
        if key in self._seen:
            raise RuntimeError(f"Key {key} has already been used.")
        self._seen.add(key)
        before = self._store.timeout
        self._store.set_timeout(timeout)
        try:
            yield
        finally:
            self._store.set_timeout(before)

    def _all_of(self, name: str, key: str, ask: Callable[[], Any]) -> Any:
        """What the store answers; if some rank is late, who."""
        try:
            return ask()
        except DistStoreError as error:
            missing = [each for each in range(self._size) if not self._store.check([f"{key}/{each}"])]
            # The root's own part need not be in the store.
            ranks = ", ".join(str(each) for each in missing if name != "gather" or each != self._rank)
            raise RuntimeError(f"{name} failed -- missing ranks: {ranks}, {error}") from None

    def barrier(self, key: str, timeout: timedelta = _LIMIT, block: bool = True) -> None:
        """Wait for all ranks; without `block` only tell them that this one has come."""
        with self._use(key, timeout):
            self._store.set(f"{key}/{self._rank}", "joined")
            if self._store.add(f"{key}/num_members", 1) == self._size:
                self._store.set(f"{key}/last_member", "joined")
            if block:
                self._all_of("barrier", key, lambda: self._store.wait([f"{key}/last_member"]))

    def broadcast_send(self, key: str, data: str | bytes, timeout: timedelta = _LIMIT) -> None:
        """Give data to all other ranks."""
        with self._use(key, timeout):
            self._store.set(key, data)

    def broadcast_recv(self, key: str, timeout: timedelta = _LIMIT) -> bytes:
        """What the root has sent."""
        with self._use(key, timeout):
            return self._store.get(key)

    def gather_send(self, key: str, data: str | bytes, timeout: timedelta = _LIMIT) -> None:
        """Give data to the root."""
        with self._use(key, timeout):
            self._store.set(f"{key}/{self._rank}", data)

    def gather_recv(self, key: str, data: str | bytes, timeout: timedelta = _LIMIT) -> list[bytes]:
        """What all ranks have sent, with this one's own in its place."""
        others = [f"{key}/{each}" for each in range(self._size) if each != self._rank]
        with self._use(key, timeout):
            found = list(self._all_of("gather", key, lambda: self._store.multi_get(others)) if others else [])
        found.insert(self._rank, data.encode() if isinstance(data, str) else bytes(data))
        return found

    def scatter_send(self, key: str, data: Sequence[str | bytes], timeout: timedelta = _LIMIT) -> bytes:
        """Give each rank its part; the answer is this one's."""
        if len(data) != self._size:
            raise RuntimeError(f"scatter_send: expected {self._size} parts, one for each rank, got {len(data)}")
        with self._use(key, timeout):
            others = [each for each in range(self._size) if each != self._rank]
            if others:
                self._store.multi_set([f"{key}/{each}" for each in others], [data[each] for each in others])
        own = data[self._rank]
        return own.encode() if isinstance(own, str) else bytes(own)

    def scatter_recv(self, key: str, timeout: timedelta = _LIMIT) -> bytes:
        """This rank's part of what the root has."""
        with self._use(key, timeout):
            return self._store.get(f"{key}/{self._rank}")

    def all_gather(self, key: str, data: str | bytes, timeout: timedelta = _LIMIT) -> list[bytes]:
        """What all ranks give."""
        with self._use(key, timeout):
            self._store.set(f"{key}/{self._rank}", data)
            keys = [f"{key}/{each}" for each in range(self._size)]
            return list(self._all_of("all_gather", key, lambda: self._store.multi_get(keys)))

    def all_sum(self, key: str, data: int, timeout: timedelta = _LIMIT) -> int:
        """The sum of what all ranks give."""
        with self._use(key, timeout):
            self._store.add(key, data)
            self.barrier(f"{key}/barrier", timeout)
            return int(self._store.get(key))


def _test_python_store(store: Store) -> None:
    """Use a store that is written in Python as this package does."""
    for amount in (1, 2, 3):
        store.add("key", amount)
    for index in range(3):
        store.set(f"key{index}", f"value{index}".encode())
        store.add("key3", index + 1)
    for amount in (4, 3, 2):
        store.add("key3", amount)
    wanted = {"key": b"6", "key0": b"value0", "key1": b"value1", "key2": b"value2", "key3": b"15"}
    for key, value in wanted.items():
        found = store.get(key)
        if found != value:
            raise RuntimeError(f"Expected get({key!r}) to be {value!r}, got {found!r}")
