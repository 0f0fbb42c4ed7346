"""Stores: keys and values that all processes of a job see. `TCPStore` is beside.

Invariant: values are bytes; every waiting call ends by the store's timeout, or by the one it is given.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ._errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "Table", "as_bytes", "milliseconds"]

DEFAULT_TIMEOUT = timedelta(seconds=300)


def as_bytes(method: str, value: Any) -> bytes:
    """A value as the store keeps it."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{method}(): incompatible function arguments. A value is str or bytes, got {type(value).__name__}")


def as_key(method: str, key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{method}(): incompatible function arguments. A key is str, got {type(key).__name__}")
    return key


def as_keys(method: str, keys: Any) -> list[str]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Sequence):
        raise TypeError(f"{method}(): incompatible function arguments. Keys are a list of str, got {keys!r}")
    return [as_key(method, key) for key in keys]


def milliseconds(timeout: timedelta) -> int:
    return int(timeout.total_seconds() * 1000)


class WaitTimeout(Exception):
    """A key was not there in time; each store says it in its own words."""


class Table:
    """Keys and values in the memory of one process, with everything that a store can do with them."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def append(self, key: str, value: bytes) -> None:
        with self.changed:
            self.values[key] = self.values.get(key, b"") + value
            self.changed.notify_all()

    def multi_set(self, keys: Sequence[str], values: Sequence[bytes]) -> None:
        with self.changed:
            self.values.update(zip(keys, values))
            self.changed.notify_all()

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        with self.changed:
            present = self.values.get(key)
            if present is None and expected or present is not None and present != expected:
                return expected if present is None else present
            self.values[key] = desired
            self.changed.notify_all()
            return desired

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            try:
                total = int(self.values.get(key, b"0")) + amount
            except ValueError:
                raise ValueError("stoll") from None
            self.values[key] = str(total).encode()
            self.changed.notify_all()
            return total

    def wait(self, keys: Sequence[str], seconds: float | None) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: all(key in self.values for key in keys), seconds):
                raise WaitTimeout

    def multi_get(self, keys: Sequence[str], seconds: float | None) -> list[bytes]:
        with self.changed:
            self.wait(keys, seconds)
            return [self.values[key] for key in keys]

    def check(self, keys: Sequence[str]) -> bool:
        with self.changed:
            return all(key in self.values for key in keys)

    def delete_key(self, key: str) -> bool:
        with self.changed:
            return self.values.pop(key, None) is not None

    def list_keys(self) -> list[str]:
        with self.changed:
            return list(self.values)

    def queue_push(self, key: str, value: bytes) -> None:
        with self.changed:
            self.queues.setdefault(key, deque()).append(value)
            self.changed.notify_all()

    def queue_pop(self, key: str, block: bool, seconds: float | None) -> bytes:
        with self.changed:
            if not block and not self.queues.get(key):
                raise QueueEmptyError("queue is empty")
            if not self.changed.wait_for(lambda: bool(self.queues.get(key)), seconds):
                raise WaitTimeout
            return self.queues[key].popleft()

    def queue_len(self, key: str) -> int:
        with self.changed:
            return len(self.queues.get(key, ()))


class Store:
    """Base class of all stores. A store of one's own overrides the methods it can serve."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long waiting calls wait."""
        return getattr(self, "_timeout", DEFAULT_TIMEOUT)

    def set_timeout(self, timeout: timedelta) -> None:
        """Let waiting calls wait that long from now on."""
        if not isinstance(timeout, timedelta):
            raise TypeError(
                f"set_timeout(): incompatible function arguments. A timeout is timedelta, got {type(timeout).__name__}"
            )
        self._timeout = timeout

    def _no(self, name: str) -> Any:
        raise NotImplementedError(f'Tried to call pure virtual function "Store::{name}"')

    def set(self, key: str, value: Any) -> None:
        """Set a value; one that is there is replaced."""
        self._no("set")

    def get(self, key: str) -> bytes:
        """The value of a key, as soon as there is one."""
        found: bytes = self._no("get")
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins as 0; the sum."""
        found: int = self._no("add")
        return found

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        self._no("wait")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        found: bool = self._no("check")
        return found

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a value if the present one is the expected one; the value that is there then."""
        found: bytes = self._no("compareSet")
        return found

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        found: bool = self._no("deleteKey")
        return found

    def num_keys(self) -> int:
        """How many keys there are."""
        found: int = self._no("getNumKeys")
        return found

    def list_keys(self) -> list[str]:
        """All keys."""
        raise NotImplementedError("listKeys support is not implemented.")

    def clone(self) -> Store:
        """Another way to the same keys."""
        found: Store = self._no("clone")
        return found

    def append(self, key: str, value: Any) -> None:
        """Append to a value, which begins empty."""
        self._no("append")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in as_keys("multi_get", keys)]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Set several values."""
        for key, value in zip(as_keys("multi_set", keys), values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are one step each."""
        return False

    def queue_push(self, key: str, value: Any) -> None:
        """Put a value at the end of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` callers have come with this key."""
        last = f"{key}/last"
        if self.add(f"{key}/count", 1) >= world_size:
            self.set(last, b"1")
        self.wait([last], self.timeout if timeout is None else timeout)


class TableStore(Store):
    """A store whose keys are in a `Table` that `_table` answers for: here, or in another process."""

    def _ask(self, method: str, timeout: timedelta | None, *arguments: Any) -> Any:
        raise NotImplementedError

    def _late(self, keys: Sequence[str], timeout: timedelta) -> DistStoreError:
        return DistStoreError("Wait timeout")

    def _waiting(self, method: str, keys: Sequence[str], timeout: timedelta | None, *arguments: Any) -> Any:
        limit = self.timeout if timeout is None else timeout
        try:
            return self._ask(method, limit, *arguments)
        except WaitTimeout:
            raise self._late(keys, limit) from None

    def set(self, key: str, value: Any) -> None:
        self._ask("set", None, as_key("set", key), as_bytes("set", value))

    def get(self, key: str) -> bytes:
        found: list[bytes] = self._waiting("multi_get", [key], None, [as_key("get", key)])
        return found[0]

    def add(self, key: str, amount: int) -> int:
        if not hasattr(amount, "__int__") and not hasattr(amount, "__index__"):
            raise TypeError(f"add(): incompatible function arguments. The amount must be int, not {amount!r}")
        total: int = self._ask("add", None, as_key("add", key), int(amount))
        return total

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._waiting("wait", keys, timeout, as_keys("wait", keys))

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("check", None, as_keys("check", keys)))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        expected, desired = as_bytes("compare_set", expected_value), as_bytes("compare_set", desired_value)
        found: bytes = self._ask("compare_set", None, as_key("compare_set", key), expected, desired)
        return found

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete_key", None, as_key("delete_key", key)))

    def num_keys(self) -> int:
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        found: list[str] = self._ask("list_keys", None)
        return found

    def append(self, key: str, value: Any) -> None:
        self._ask("append", None, as_key("append", key), as_bytes("append", value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        found: list[bytes] = self._waiting("multi_get", keys, None, as_keys("multi_get", keys))
        return found

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        if len(keys) != len(values):
            raise ValueError(f"multi_set(): {len(keys)} keys and {len(values)} values")
        self._ask("multi_set", None, as_keys("multi_set", keys), [as_bytes("multi_set", each) for each in values])

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value: Any) -> None:
        self._ask("queue_push", None, as_key("queue_push", key), as_bytes("queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        found: bytes = self._waiting("queue_pop", [key], None, as_key("queue_pop", key), bool(block))
        return found

    def queue_len(self, key: str) -> int:
        found: int = self._ask("queue_len", None, as_key("queue_len", key))
        return found


class HashStore(TableStore):
    """A store in the memory of one process, for its threads."""

    __module__ = "torch.distributed"

    def __init__(self, _table: Table | None = None) -> None:
        super().__init__()
        if _table is not None and not isinstance(_table, Table):
            raise TypeError("__init__(): incompatible constructor arguments. HashStore() takes none.")
        self._table = Table() if _table is None else _table

    def _ask(self, method: str, timeout: timedelta | None, *arguments: Any) -> Any:
        if timeout is None:
            return getattr(self._table, method)(*arguments)
        return getattr(self._table, method)(*arguments, timeout.total_seconds())

    def clone(self) -> Store:
        return HashStore(self._table)


class FileStore(TableStore):
    """A store in a file that all processes see: a list of changes, read from where one stopped.

    The last of `world_size` stores removes the file.
    """

    __module__ = "torch.distributed"

    _SET, _DELETE = 0, 1
    _HEAD = struct.Struct("<BII")
    _COUNT = "refcount/"

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path, self._world_size = os.fspath(file_name), int(world_size)
        self._table, self._read, self._guard = Table(), 0, threading.RLock()
        self._owner = os.getpid()
        with self._locked() as file:
            self._count(file, 1)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def clone(self) -> Store:
        return FileStore(self._path, self._world_size)

    def has_extended_api(self) -> bool:
        return False

    def queue_push(self, key: str, value: Any) -> None:
        Store.queue_push(self, key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return Store.queue_pop(self, key, block)

    def queue_len(self, key: str) -> int:
        return Store.queue_len(self, key)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file with everything in it read, and nobody else writing."""
        with self._guard:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._catch_up(file)
                yield file
            finally:
                os.close(file)

    def _catch_up(self, file: int) -> None:
        size = os.fstat(file).st_size
        if size < self._read:  # another file by the same name
            self._table.values.clear()
            self._read = 0
        data = os.pread(file, size - self._read, self._read)
        at = 0
        while at + self._HEAD.size <= len(data):
            kind, key_length, value_length = self._HEAD.unpack_from(data, at)
            end = at + self._HEAD.size + key_length + value_length
            if end > len(data):
                break
            key = data[at + self._HEAD.size : end - value_length].decode()
            if kind == self._SET:
                self._table.set(key, data[end - value_length : end])
            else:
                self._table.delete_key(key)
            at = end
        self._read += at

    def _write(self, file: int, kind: int, key: str, value: bytes) -> None:
        name = key.encode()
        entry = self._HEAD.pack(kind, len(name), len(value)) + name + value
        os.pwrite(file, entry, self._read)
        self._read += len(entry)

    def _count(self, file: int, amount: int) -> int:
        total = self._table.add(self._COUNT, amount)
        self._write(file, self._SET, self._COUNT, str(total).encode())
        return total

    def _ask(self, method: str, timeout: timedelta | None, *arguments: Any) -> Any:
        if timeout is not None:
            return self._wait_for(method, arguments[0], timeout)
        with self._locked() as file:
            before = dict(self._table.values)
            result = getattr(self._table, method)(*arguments)
            for key, value in self._table.values.items():
                if before.get(key) is not value:
                    self._write(file, self._SET, key, value)
            for key in before.keys() - self._table.values.keys():
                self._write(file, self._DELETE, key, b"")
            # PyTorch's does not look whether the key was there.
            return True if method == "delete_key" else result

    def _wait_for(self, method: str, keys: list[str], timeout: timedelta) -> list[bytes] | None:
        end = time.monotonic() + timeout.total_seconds()
        while True:
            with self._locked():
                if self._table.check(keys):
                    return [self._table.values[key] for key in keys] if method == "multi_get" else None
            if time.monotonic() > end:
                raise WaitTimeout
            time.sleep(0.01)

    def get(self, key: str) -> bytes:
        try:
            found: list[bytes] = self._ask("multi_get", self.timeout, [as_key("get", key)])
        except WaitTimeout:
            late = milliseconds(self.timeout)
            raise RuntimeError(f"Timeout waiting for key: {key} after {late} ms") from None
        return found[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        try:
            self._ask("wait", self.timeout if timeout is None else timeout, as_keys("wait", keys))
        except WaitTimeout:
            raise RuntimeError("Wait timeout") from None

    def __del__(self) -> None:
        if getattr(self, "_owner", None) != os.getpid() or not os.path.exists(self._path):
            return
        try:
            with self._locked() as file:
                left = self._count(file, -1)
            if left == 0 and self._world_size >= 0:
                os.unlink(self._path)
        except OSError:  # the directory is gone, and the file with it
            pass


class PrefixStore(Store):
    """Another store, every key with a prefix."""

    __module__ = "torch.distributed"

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(prefix, str) or not isinstance(store, Store):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. PrefixStore(prefix: str, store: Store)"
            )
        super().__init__()
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The store whose keys get the prefix."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _name(self, method: str, key: Any) -> str:
        return f"{self._prefix}/{as_key(method, key)}"

    def _names(self, method: str, keys: Any) -> list[str]:
        return [f"{self._prefix}/{key}" for key in as_keys(method, keys)]

    def _one(self, method: str, key: Any, *arguments: Any) -> Any:
        act: Callable[..., Any] = getattr(self._store, method)
        return act(self._name(method, key), *arguments)

    def set(self, key: str, value: Any) -> None:
        self._one("set", key, value)

    def get(self, key: str) -> bytes:
        found: bytes = self._one("get", key)
        return found

    def add(self, key: str, amount: int) -> int:
        found: int = self._one("add", key, amount)
        return found

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = self._names("wait", keys)
        if timeout is None:
            self._store.wait(names)
        else:
            self._store.wait(names, timeout)

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check(self._names("check", keys))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        found: bytes = self._one("compare_set", key, expected_value, desired_value)
        return found

    def delete_key(self, key: str) -> bool:
        found: bool = self._one("delete_key", key)
        return found

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = f"{self._prefix}/"
        return [key[len(start) :] for key in self._store.list_keys() if key.startswith(start)]

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())

    def append(self, key: str, value: Any) -> None:
        self._one("append", key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get(self._names("multi_get", keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        self._store.multi_set(self._names("multi_set", keys), values)

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def queue_push(self, key: str, value: Any) -> None:
        self._one("queue_push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        found: bytes = self._one("queue_pop", key, block)
        return found

    def queue_len(self, key: str) -> int:
        found: int = self._one("queue_len", key)
        return found
