"""Memory that several processes see: what stands behind `share_memory_` and the sharing strategies.

Invariant: a `Segment` owns one mapping, and a raw storage whose owner it is lies in it; when the last such storage
goes, mapping and descriptor go with it. A segment without a name is gone with the last process that has it. One with a
name begins with a counter of its mappings and of the messages that are under way; who counts down to zero removes the
name, and Python's resource tracker does so for processes that were killed.
"""

from __future__ import annotations

import errno
import os
import weakref
from importlib import import_module
from itertools import count
from typing import Any, Final

from . import _native
from ._backends.common.pinning import root_owner

# What stands before the data of a segment with a name; data stays aligned to cache lines.
_HEADER: Final = 64
_NUMBERS = count()


class Segment:
    """A mapping of shared memory."""

    __slots__ = ("__weakref__", "address", "base", "fd", "handle", "manager", "nbytes", "old", "pid")

    def __init__(self, fd: int, nbytes: int, handle: bytes = b"", manager: bytes = b"") -> None:
        """Map what a descriptor stands for, and own the descriptor; -1 where there is nothing to map."""
        self.address = 0
        self.nbytes = nbytes
        self.fd = fd
        self.handle = handle
        self.manager = manager
        self.pid = os.getpid()
        self.old: Any = None
        self.base = 0
        if self.mapped_bytes():
            try:
                self.base = _native.map_shared(fd, self.mapped_bytes())
            except OSError as error:
                self.fd = -1
                os.close(fd)
                raise _no_memory("mmap", nbytes, error) from None
            self.address = self.base + (_HEADER if handle else 0)
        if handle:
            _remember(self)

    def mapped_bytes(self) -> int:
        return self.nbytes + _HEADER if self.handle else self.nbytes

    def storage(self) -> _native.Storage:
        """A raw storage over the whole of it."""
        return _native.Storage.wrap(self.address, self.nbytes, self)

    def count(self, more: int) -> None:
        """Note another user of a name, or one less; the last one removes it."""
        if self.handle and _native.add_at(self.base, more) <= 0:
            _unlink(self.handle, self.manager)

    def let_go(self) -> None:
        """This process no longer counts as a user of the name. A forked child was never counted."""
        if self.handle and self.base and self.pid == os.getpid():
            self.count(-1)
            self.pid = 0

    def close_descriptor(self) -> None:
        """Keep the mapping only; the segment can no longer be sent on."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if self.base:
            self.let_go()
            _native.unmap(self.base, self.mapped_bytes())
        self.close_descriptor()


def _no_memory(what: str, nbytes: int, error: OSError) -> RuntimeError:
    return RuntimeError(f"unable to {what} {nbytes} bytes of shared memory: {error.strerror} ({error.errno})")


# -- making them --------------------------------------------------------------------------------------------------
def _shm() -> Any:
    return import_module("_posixshmem")


def _new_name() -> bytes:
    return f"/torch_{os.getpid()}_{os.urandom(4).hex()}_{next(_NUMBERS)}".encode()


def _open_new(name: bytes) -> int:
    return int(_shm().shm_open(name.decode(), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode=0o600))


def new_segment(nbytes: int) -> Segment:
    """Shared memory without a name."""
    if nbytes == 0:
        return Segment(-1, 0)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("torch", os.MFD_CLOEXEC)
    else:
        name = _new_name()
        fd = _open_new(name)
        _shm().shm_unlink(name.decode())
    try:
        os.ftruncate(fd, nbytes)
    except OSError as error:
        os.close(fd)
        raise _no_memory("allocate", nbytes, error) from None
    return Segment(fd, nbytes)


def segment_of(fd: int, nbytes: int) -> Segment:
    """The memory that a descriptor stands for; the descriptor is the segment's from now on."""
    return Segment(fd, nbytes)


def new_named(nbytes: int) -> Segment:
    """Shared memory with a name, counted once for this process."""
    from multiprocessing import resource_tracker

    name = _new_name()
    fd = _open_new(name)
    try:
        # Taken now: what the file system has not got would be a bus error later.
        os.posix_fallocate(fd, 0, nbytes + _HEADER)
    except OSError as error:
        os.close(fd)
        _shm().shm_unlink(name.decode())
        raise _no_memory("allocate", nbytes, error) from None
    resource_tracker.register(name.decode(), "shared_memory")
    made = Segment(fd, nbytes, name, _tracker())
    made.close_descriptor()
    made.count(1)
    return made


def open_named(manager: bytes, handle: bytes, nbytes: int) -> Segment:
    """The segment of that name, counted for this process as well."""
    try:
        fd = int(_shm().shm_open(handle.decode(), os.O_RDWR, mode=0o600))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise RuntimeError(
                f"could not open shared memory object <{handle.decode()}> in read-write mode: {error.strerror} "
                f"({error.errno})"
            ) from None
        raise
    have = os.fstat(fd).st_size
    if nbytes < 0 or have < nbytes + _HEADER:
        os.close(fd)
        raise RuntimeError(f"shared memory object <{handle.decode()}> of {have} bytes is smaller than asked: {nbytes}")
    found = Segment(fd, nbytes, handle, manager)
    found.close_descriptor()
    found.count(1)
    return found


def _tracker() -> bytes:
    """Which resource tracker this process talks to."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    fd = resource_tracker.getfd()
    return b"" if fd is None else str(os.fstat(fd).st_ino).encode()


def _unlink(handle: bytes, manager: bytes) -> None:
    from multiprocessing import resource_tracker

    try:
        _shm().shm_unlink(handle.decode())
    except FileNotFoundError:
        return
    if manager == _tracker():
        resource_tracker.unregister(handle.decode(), "shared_memory")


class _Named:
    """Segments with a name in this process: a process that ends without freeing them takes itself off their counts."""

    alive: weakref.WeakSet[Segment] = weakref.WeakSet()
    pid = 0


def _remember(segment: Segment) -> None:
    from multiprocessing import util

    if _Named.pid != os.getpid():
        _Named.pid = os.getpid()
        _Named.alive = weakref.WeakSet()
        util.Finalize(None, _let_all_go, exitpriority=-100)
    _Named.alive.add(segment)


def _let_all_go() -> None:
    for segment in list(_Named.alive):
        segment.let_go()


# -- storages -----------------------------------------------------------------------------------------------------
def is_shared(raw: Any) -> bool:
    """Whether a raw storage lies in shared memory."""
    return isinstance(raw, _native.Storage) and isinstance(root_owner(raw), Segment)


def segment_under(raw: Any) -> Segment | None:
    """The segment that is the whole memory of a raw storage."""
    owner = raw.owner
    return owner if isinstance(owner, Segment) and owner.address == raw.ptr and owner.nbytes == raw.nbytes else None


def move(raw: _native.Storage, segment: Segment) -> None:
    """Let a storage, and every tensor over it, lie in a new segment of its size."""
    other = segment.storage()
    if raw.nbytes:
        _native.copy(other, 0, (1,), _BYTE, raw, 0, (1,), _BYTE, (raw.nbytes,))
    if raw.exchange(other):
        # Buffers and slices made before still show the old memory: it stays as long as the new.
        segment.old = other


def share_fd(raw: _native.Storage) -> Segment:
    """The segment of a storage, with a descriptor that can be sent; the storage is moved into one where needed."""
    segment = segment_under(raw)
    if segment is None or (segment.fd < 0 and segment.nbytes):
        segment = new_segment(raw.nbytes)
        move(raw, segment)
    return segment


def share_name(raw: _native.Storage) -> Segment:
    """The same with a name."""
    segment = segment_under(raw)
    if segment is None or not segment.handle:
        segment = new_named(raw.nbytes)
        move(raw, segment)
    return segment


def _byte_code() -> int:
    from ._dtype import uint8

    return uint8.code


_BYTE: Final = _byte_code()


# -- weak references ----------------------------------------------------------------------------------------------
class _Weak:
    """Storages by the numbers that stand for weak references to them."""

    references: dict[int, weakref.ref[Any]] = {}
    numbers = count(1)


def weak_number(storage: Any) -> int:
    """The number that stands for a storage, one as long as it lives."""
    known = storage.__dict__.get("_weak_number")
    if known is None:
        known = storage.__dict__["_weak_number"] = next(_Weak.numbers)
        _Weak.references[known] = weakref.ref(storage, lambda _: _Weak.references.pop(known, None))
    return int(known)


def from_number(number: int) -> Any:
    """The storage that a number stands for; None if it is gone."""
    found = _Weak.references.get(number)
    return None if found is None else found()
