"""What goes between a data loader and its workers: objects with tensors in them, over one socket per worker.

Invariant: a message is a header (what it is about, how many bytes, how many descriptors), the descriptors, the bytes.
Descriptors travel with it inside the kernel, so a sender may end, or be killed, at any point: what was sent whole
arrives, and what was not is an end of file. Nothing has a name in the file system.

Storages up to `INLINE` bytes are copied into the message: a segment of shared memory costs more than their bytes.
Larger ones are sent as memory, and the same memory arrives as one storage however often it is sent.
"""

from __future__ import annotations

import array
import io
import os
import pickle
import select
import socket
import struct
import threading
import weakref
from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

import mindtorch_v2 as torch

from .... import _native
from ...._device import CPU
from ...._dtype import by_code
from ...._shared_memory import Segment, move, segment_of, segment_under, share_fd
from ...._storage import UntypedStorage, _wrap
from ...._tensor_base import make, requires_grad
from ....multiprocessing.reductions import StorageWeakRef, fd_id, reduce_tensor, shared_cache, storage_from_cache
from . import recycling

INLINE: Final = 1 << 16
# What a message that is not about a task is about.
CONTROL: Final = -1
FORGET: Final = -2
_HEADER: Final = struct.Struct("<qQI")
# The kernel takes 253 descriptors at a time.
_MOST: Final = 250
_Tensor: Final = torch.Tensor


class Ended(EOFError):
    """The other side is gone."""


# -- objects and bytes --------------------------------------------------------------------------------------------
class _Pickler(ForkingPickler):
    """Pickles as for any other process, but tensors and storages as described above."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.segments: list[Segment] = []
        self.lent: list[recycling.Slot] = []

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Tensor:
            if obj._device is not CPU or (requires_grad(obj) and not obj.is_leaf):
                return reduce_tensor(obj)
            place = (obj._dtype.code, int(obj._offset), tuple(obj._shape), tuple(obj._stride), requires_grad(obj))
            return _tensor, (obj.untyped_storage(), *place)
        if kind is UntypedStorage and obj._device is CPU:
            return self._storage(obj._raw)
        return NotImplemented

    def _storage(self, raw: _native.Storage) -> Any:
        if raw.nbytes <= INLINE and not isinstance(raw.owner, Segment):
            return _copied, (bytes(raw) if raw.nbytes else b"",)
        segment = segment_under(raw)
        if segment is None:
            segment = recycling.POOL.take(raw.nbytes)
            move(raw, segment)
        elif segment.fd < 0:
            segment = share_fd(raw)
            if segment.fd < 0:
                return _copied, (b"",)
        if not isinstance(segment, recycling.Lent):
            self.segments.append(segment)
            return _sent, (len(self.segments) - 1, segment.nbytes)
        slot = segment.slot
        self.lent.append(slot)
        if slot.known:
            return _lent, (slot.number, segment.nbytes, -1)
        self.segments.append(segment)
        return _lent, (slot.number, segment.nbytes, len(self.segments) - 1)


def dumps(obj: Any) -> tuple[bytes, list[Segment]]:
    """An object as bytes, and the memory that must be sent with them."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(obj)
    # Only now: what failed on the way is not sent.
    for slot in pickler.lent:
        slot.known = True
        slot.sent += 1
    return file.getvalue(), pickler.segments


def shared_storage(nbytes: int) -> UntypedStorage:
    """Memory of a worker that need not be copied to be sent; what it holds at first is undefined."""
    return _wrap(recycling.POOL.take(nbytes).storage(), CPU)


class _Arriving(threading.local):
    """Descriptors of the message that this thread unpickles, and what is known of its sender's memory."""

    descriptors: list[int] = []
    table: recycling.Table | None = None


_ARRIVING = _Arriving()


def loads(data: Any, descriptors: list[int], table: recycling.Table | None = None) -> Any:
    """The object again. All descriptors are closed, also where that fails."""
    _ARRIVING.descriptors = descriptors
    _ARRIVING.table = table
    try:
        return pickle.loads(data)
    finally:
        _ARRIVING.descriptors = []
        _ARRIVING.table = None
        for fd in descriptors:
            if fd >= 0:
                os.close(fd)


def _tensor(storage: Any, code: int, offset: int, shape: Any, stride: Any, needs_grad: bool) -> Any:
    t: Any = make(storage._raw, offset, shape, stride, by_code(code), CPU, 1)
    if needs_grad:
        t.requires_grad = True
    return t


def _copied(data: bytes) -> UntypedStorage:
    raw = _native.Storage(len(data))
    if data:
        memoryview(raw).cast("B")[:] = data
    return _wrap(raw, CPU)


def _sent(index: int, nbytes: int) -> UntypedStorage:
    fd = _ARRIVING.descriptors[index]
    key = fd_id(fd)
    storage: UntypedStorage | None = storage_from_cache(UntypedStorage, key)
    if storage is None:
        _ARRIVING.descriptors[index] = -1
        segment = segment_of(fd, nbytes)
        # A loader's batches are many and rarely sent on: they do not hold descriptors.
        segment.close_descriptor()
        storage = _wrap(segment.storage(), CPU)
        shared_cache[key] = StorageWeakRef(storage)
    return storage


def _lent(number: int, nbytes: int, index: int) -> Any:
    table = _ARRIVING.table
    assert table is not None
    if index < 0:
        return table.receive(number, nbytes, -1)
    fd, _ARRIVING.descriptors[index] = _ARRIVING.descriptors[index], -1
    return table.receive(number, nbytes, fd)


# -- sockets ------------------------------------------------------------------------------------------------------
class _Ends:
    """The ends that this process keeps to its workers. A child that is forked must not hold them: the other side would
    never see that this process is gone."""

    kept: weakref.WeakSet[Endpoint] = weakref.WeakSet()


def _close_kept_ends() -> None:
    for end in list(_Ends.kept):
        end.close()


os.register_at_fork(after_in_child=_close_kept_ends)


class Endpoint:
    """One end of a socket for messages. Sending never waits: what does not fit is sent by a thread."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.waiting: deque[tuple[memoryview, list[Segment]]] = deque()
        self.lock = threading.Lock()
        self.feeder: threading.Thread | None = None
        self.failed = False
        self.table = recycling.Table()

    @staticmethod
    def pair() -> tuple[Endpoint, Endpoint]:
        """The end of this process, and that of a worker to come."""
        here, there = (Endpoint(end) for end in socket.socketpair())
        _Ends.kept.add(here)
        return here, there

    def __reduce__(self) -> Any:
        return Endpoint, (self.socket,)

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        """Let go; the other side sees an end of file."""
        self.failed = True
        self.socket.close()

    def hang_up(self) -> None:
        """End both directions; whoever waits on either side stops waiting."""
        self.failed = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was first

    # -- sending --------------------------------------------------------------------------------------------------
    def put(self, about: int, obj: Any) -> None:
        """Send an object. Raises what pickling it raises; an other side that is gone is not an error."""
        self.send(about, *dumps(obj))

    def send(self, about: int, data: bytes, segments: list[Segment]) -> None:
        """Send bytes and memory."""
        head = _HEADER.pack(about, len(data), len(segments))
        if len(segments) <= _MOST:
            parts = [(memoryview(head + data), segments)]
        else:
            parts = [(memoryview(head), segments[:_MOST])]
            parts += [(memoryview(b"+"), segments[i : i + _MOST]) for i in range(_MOST, len(segments), _MOST)]
            parts.append((memoryview(data), []))
        with self.lock:
            while parts and not self.waiting and self.feeder is None:
                rest = self._try_send(*parts[0])
                if rest:
                    parts[0] = rest
                    break
                parts.pop(0)
            if parts and not self.failed:
                self.waiting.extend(parts)
                if self.feeder is None:
                    self.feeder = threading.Thread(target=self._feed, daemon=True)
                    self.feeder.start()

    def _try_send(
        self, view: memoryview, segments: list[Segment], flags: int = socket.MSG_DONTWAIT
    ) -> tuple[memoryview, list[Segment]] | None:
        """What is left when the socket takes no more."""
        while len(view):
            try:
                if segments:
                    rights = array.array("i", [s.fd for s in segments])
                    sent = self.socket.sendmsg([view], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], flags)
                    segments = []
                else:
                    sent = self.socket.send(view, flags)
            except BlockingIOError:
                return view, segments
            except OSError:
                self.failed = True
                return None
            view = view[sent:]
        return None

    def _feed(self) -> None:
        while True:
            with self.lock:
                if not self.waiting or self.failed:
                    self.waiting.clear()
                    self.feeder = None
                    return
                part = self.waiting[0]
            self._try_send(*part, flags=0)
            with self.lock:
                if self.waiting:
                    self.waiting.popleft()

    def flush(self) -> None:
        """Wait until all is sent, or cannot be."""
        feeder = self.feeder
        if feeder is not None:
            feeder.join()

    # -- receiving ------------------------------------------------------------------------------------------------
    def ready(self, timeout: float) -> bool:
        """Whether something arrives in time; an end of file counts."""
        poller = select.poll()
        poller.register(self.socket, select.POLLIN)
        return bool(poller.poll(timeout * 1000))

    def hung_up(self) -> bool:
        """Whether the other side is gone, whatever it has left behind."""
        poller = select.poll()
        poller.register(self.socket, 0)
        return bool(poller.poll(0))

    def receive(self) -> tuple[int, bytearray, list[int]]:
        """What a message is about, its bytes and descriptors; waits for them."""
        descriptors: list[int] = []
        try:
            head = self._part(_HEADER.size, descriptors)
            about, nbytes, count = _HEADER.unpack(head)
            for _ in range(_MOST, count, _MOST):
                self._part(1, descriptors)
            data = bytearray(nbytes)
            view = memoryview(data)
            while len(view):
                got = self.socket.recv_into(view)
                if got == 0:
                    raise Ended
                view = view[got:]
            if len(descriptors) != count:
                raise OSError(f"{count - len(descriptors)} of {count} descriptors did not arrive: too many open files")
            return about, data, descriptors
        except BaseException as error:
            for fd in descriptors:
                os.close(fd)
            if isinstance(error, ConnectionError):
                raise Ended from None
            raise

    def _part(self, size: int, descriptors: list[int]) -> bytes:
        got = b""
        while len(got) < size:
            data, extra, _, _ = self.socket.recvmsg(
                size - len(got), socket.CMSG_SPACE(4 * _MOST), getattr(socket, "MSG_CMSG_CLOEXEC", 0)
            )
            for level, kind, content in extra:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds = array.array("i")
                    fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
                    descriptors.extend(fds)
            if not data:
                raise Ended
            got += data
        return got
