"""Messages between the processes of a group: a connection to each of them, and who waits for what.

Invariant: a message carries a tag, and goes to whoever asked for that tag from that process, in order. What nobody has
asked for yet is kept, so that a process that sends never waits for one that does not read. Every wait ends: by the
message, by its time limit, or by the end of the connection.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from datetime import timedelta
from typing import Any

from ._store import PrefixStore, Store
from ._tcp_store import TCPStore, receive_exactly

__all__ = ["Call", "Mesh", "Slot"]

_HEAD = struct.Struct("<QQ")
_HELLO = struct.Struct("<16sI")
# What nobody has asked for is read in parts, so that memory grows with what came and not with what was announced.
_PART = 1 << 24
# Tags below this are of collectives, which need everybody; those above are between two.
SHARED_TAGS = 1 << 61
_GOODBYE = (1 << 64) - 1
# How far a rank has come: a question, and the answer, which its reading thread gives whatever the others do.
_ASK, _TELL = _GOODBYE - 1, _GOODBYE - 2
_NUMBER = struct.Struct("<Q")
_PATIENCE = 2.0  # seconds that others get for the answer; on a busy machine they come late
_GRACE = 1.0  # seconds for what others have sent, when a process is gone


class Call:
    """One operation: what errors say of it, and how its messages are told from others'."""

    __slots__ = ("name", "seconds", "sequence", "tag")

    def __init__(self, name: str, sequence: int, tag: int, timeout: timedelta) -> None:
        self.name, self.sequence, self.tag, self.seconds = name, sequence, tag, timeout.total_seconds()


class Slot:
    """Memory that a message is waited for with."""

    __slots__ = ("done", "error", "keep", "source", "view")

    def __init__(self, view: memoryview, keep: Any) -> None:
        self.view, self.keep = view, keep
        self.done = threading.Event()
        self.error: str | None = None
        self.source = -1

    def settle(self, source: int, error: str | None = None) -> None:
        self.source, self.error = source, error
        self.done.set()


class _Peer:
    def __init__(self, rank: int, connection: socket.socket) -> None:
        self.rank, self.socket = rank, connection
        self.sending = threading.Lock()
        self.posted: defaultdict[int, deque[Slot]] = defaultdict(deque)
        self.kept: defaultdict[int, deque[bytearray]] = defaultdict(deque)
        self.error: str | None = None
        self.left = False  # it said goodbye: what it has sent is all that anybody waits for
        self.thread: threading.Thread | None = None


def machine() -> str:
    """The same for processes of one user that see each other's /proc, on one kernel, and may share memory."""
    try:
        if os.environ.get("MINDTORCH_SHARED_MEMORY") == "0":
            raise OSError
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot}:{os.readlink('/proc/self/ns/pid')}:{os.getuid()}"
    except OSError:
        return f"unknown:{socket.gethostname()}:{os.getpid()}"


def _own_address(store: Store) -> str:
    """Where other processes find this one: a named interface, or the way on which the store is reached."""
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if interface:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            request = struct.pack("256s", interface.encode()[:15])
            try:
                return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])
            except OSError as error:
                raise RuntimeError(f"GLOO_SOCKET_IFNAME: no address of interface {interface}: {error}") from None
    below = store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store
    return below.local_address() if isinstance(below, TCPStore) else "127.0.0.1"


class Mesh:
    """The connections of one process to all others of its group."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        # Bytes given to other ranks by name of operation: of messages without their heads, and of shared memory.
        self.sent: defaultdict[str, int] = defaultdict(int)
        self._counting = threading.Lock()
        self.guard = threading.Lock()
        self.any_posted: defaultdict[int, deque[Slot]] = defaultdict(deque)
        self.peers: dict[int, _Peer] = {}
        self.together = True  # all ranks are processes of one machine
        self.closed = False
        self.host = "127.0.0.1"  # by which others reach this process
        self.begun = 0  # the number of the last collective that this rank was asked for
        self._told: dict[int, int] = {}
        self._heard = threading.Condition()
        if size > 1:
            self._connect(store)

    def _connect(self, store: Store) -> None:
        deadline = time.monotonic() + self.timeout.total_seconds()
        host, cookie, here = _own_address(store), secrets.token_bytes(16), machine()
        self.host = host
        with socket.create_server((host, 0), backlog=self.size) as listening:
            port = listening.getsockname()[1]
            store.set(f"{self.rank}", f"{host}|{port}|{cookie.hex()}|{here}".encode())
            for rank in range(self.rank):
                self._adopt(rank, self._call(store, rank, deadline))
            while len(self.peers) < self.size - 1:
                listening.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    connection, _ = listening.accept()
                except TimeoutError:
                    missing = sorted(set(range(self.rank + 1, self.size)) - set(self.peers))
                    raise RuntimeError(
                        f"Gloo connectFullMesh failed: rank {self.rank} waited {self.timeout} for ranks {missing}"
                    ) from None
                self._welcome(connection, cookie, deadline)
        places = [store.get(f"{rank}").decode().split("|")[3] for rank in range(self.size)]
        self.together = all(place == here for place in places)

    def _call(self, store: Store, rank: int, deadline: float) -> socket.socket:
        host, port, cookie, _ = store.get(f"{rank}").decode().split("|")
        try:
            connection = socket.create_connection((host, int(port)), max(deadline - time.monotonic(), 0.001))
            connection.settimeout(None)
            connection.sendall(_HELLO.pack(bytes.fromhex(cookie), self.rank))
        except OSError as error:
            raise RuntimeError(
                f"Gloo connectFullMesh failed: rank {self.rank} cannot connect to rank {rank} at {host}:{port}: {error}"
            ) from None
        return connection

    def _welcome(self, connection: socket.socket, cookie: bytes, deadline: float) -> None:
        """Take in who knows the word that only the store tells; anybody else is sent away."""
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            word, rank = _HELLO.unpack(receive_exactly(connection, _HELLO.size))
        except (OSError, RuntimeError):
            connection.close()
            return
        if not secrets.compare_digest(word, cookie) or rank in self.peers or not self.rank < rank < self.size:
            connection.close()
            return
        connection.settimeout(None)
        self._adopt(rank, connection)

    def _adopt(self, rank: int, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._limit_sending(connection)
        peer = self.peers[rank] = _Peer(rank, connection)
        peer.thread = threading.Thread(target=self._read, args=(peer,), name=f"pt_gloo_{rank}", daemon=True)
        peer.thread.start()

    def _limit_sending(self, connection: socket.socket) -> None:
        # The kernel's own limit: Python's would make the socket of the reading thread a non-blocking one as well.
        seconds = max(self.timeout.total_seconds(), 0.001)
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def set_timeout(self, timeout: timedelta) -> None:
        self.timeout = timeout
        for peer in self.peers.values():
            self._limit_sending(peer.socket)

    # The reading side: a thread for each connection.

    def _read(self, peer: _Peer) -> None:
        try:
            while True:
                tag, length = _HEAD.unpack(receive_exactly(peer.socket, _HEAD.size))
                if tag == _GOODBYE:
                    peer.left = True
                    continue
                if tag in (_ASK, _TELL):
                    self._about_progress(peer, tag, length)
                    continue
                slot = self._wanted(peer, tag)
                if slot is None:
                    self._keep(peer, tag, self._read_parts(peer.socket, length))
                elif length == len(slot.view):
                    view, at = slot.view, 0
                    while at < length:
                        # One wait for the whole of it: this thread comes back to Python once, not for every packet.
                        got = peer.socket.recv_into(view[at:], 0, socket.MSG_WAITALL)
                        if not got:
                            slot.settle(peer.rank, "the connection ended")
                            raise OSError("ended")
                        at += got
                    slot.settle(peer.rank)
                else:
                    self._read_parts(peer.socket, length)
                    slot.settle(peer.rank, f"rank {peer.rank} sent {length} bytes where {len(slot.view)} were expected")
        except (OSError, RuntimeError):
            self._ended(peer)

    def _about_progress(self, peer: _Peer, tag: int, length: int) -> None:
        if tag == _TELL:
            number = _NUMBER.unpack(receive_exactly(peer.socket, length))[0]
            with self._heard:
                self._told[peer.rank] = number
                self._heard.notify_all()
        else:
            self._note(peer, _HEAD.pack(_TELL, _NUMBER.size) + _NUMBER.pack(self.begun))

    @staticmethod
    def _note(peer: _Peer, data: bytes) -> None:
        """Send a few bytes, unless the connection is stuck."""
        if peer.sending.acquire(timeout=0.2):
            try:
                peer.socket.sendall(data)
            except OSError:
                pass
            finally:
                peer.sending.release()

    def arrivals(self, call: Call) -> str:
        """Who has begun a collective and who has not, by asking; a rank that does not answer has not. When a process is
        gone, those that live are asked again for a while: they may be on their way, and are not what is missing."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            living = [peer for peer in self.peers.values() if peer.error is None]
            arrived = self._arrived(call, living, deadline)
            late = any(peer.rank not in arrived for peer in living)
            if not late or len(living) == len(self.peers) or time.monotonic() >= deadline:
                break
            time.sleep(0.02)
        missing = sorted(set(range(self.size)) - arrived)
        return f"ranks arrived: {sorted(arrived)}, missing: {missing}"

    def _arrived(self, call: Call, living: list[_Peer], deadline: float) -> set[int]:
        with self._heard:
            self._told.clear()
        for peer in living:
            self._note(peer, _HEAD.pack(_ASK, 0))
        with self._heard:
            self._heard.wait_for(lambda: len(self._told) == len(living), max(deadline - time.monotonic(), 0.0))
            return {self.rank, *(rank for rank, number in self._told.items() if number >= call.sequence)}

    @staticmethod
    def _read_parts(connection: socket.socket, length: int) -> bytearray:
        data = bytearray()
        while len(data) < length:
            data += receive_exactly(connection, min(length - len(data), _PART))
        return data

    def _wanted(self, peer: _Peer, tag: int) -> Slot | None:
        with self.guard:
            return self._first(peer, tag)

    def _first(self, peer: _Peer, tag: int) -> Slot | None:
        for waiting in (peer.posted, self.any_posted):
            slots = waiting.get(tag)
            if slots:
                slot = slots.popleft()
                if not slots:
                    del waiting[tag]
                return slot
        return None

    def _keep(self, peer: _Peer, tag: int, data: bytearray) -> None:
        """Nobody waited when the message began; perhaps somebody does by now."""
        with self.guard:
            slot = self._first(peer, tag)
            if slot is None:
                peer.kept[tag].append(data)
        if slot is not None:
            self._fill(slot, peer.rank, data)

    @staticmethod
    def _take(peer: _Peer, tag: int) -> bytearray:
        kept = peer.kept[tag]
        data = kept.popleft()
        if not kept:
            del peer.kept[tag]
        return data

    @staticmethod
    def _fill(slot: Slot, source: int, data: bytearray) -> None:
        if len(data) != len(slot.view):
            slot.settle(source, f"rank {source} sent {len(data)} bytes where {len(slot.view)} were expected")
            return
        if data:  # the memory of nothing cannot be written
            slot.view[:] = data
        slot.settle(source)

    def _ended(self, peer: _Peer) -> None:
        with self.guard:
            peer.error = "Connection closed by peer" if not self.closed else "the process group is closed"
            lost = [slot for slots in peer.posted.values() for slot in slots]
            peer.posted.clear()
            if all(each.error for each in self.peers.values()):
                lost += [slot for slots in self.any_posted.values() for slot in slots]
                self.any_posted.clear()
        for slot in lost:
            slot.settle(peer.rank, peer.error)
        if not peer.left:
            self._let_go(peer)

    def _let_go(self, peer: _Peer) -> None:
        """A process that is gone without a word takes part in no collective: nobody needs to wait for others. What
        others have sent already is still read, since it may be all that a collective lacks."""
        deadline = time.monotonic() + _GRACE
        while not self.closed and time.monotonic() < deadline:
            with self.guard:
                if not any(tag < SHARED_TAGS for each in self.peers.values() for tag in each.posted):
                    break
            time.sleep(0.02)
        lost: list[Slot] = []
        with self.guard:
            for other in self.peers.values():
                for tag in [each for each in other.posted if each < SHARED_TAGS]:
                    lost += other.posted.pop(tag)
        for slot in lost:
            slot.settle(peer.rank, peer.error)

    # The side of those who call.

    def _say(self, call: Call, text: str, rank: int | None) -> RuntimeError:
        other = "" if rank is None else f", other rank {rank}"
        if call.tag < SHARED_TAGS:
            other += f"; {self.arrivals(call)}"
        return RuntimeError(
            f"{text} (operation {call.name}, sequence number {call.sequence}, rank {self.rank} of {self.size}{other})"
        )

    def send(self, call: Call, rank: int, view: memoryview) -> None:
        """Hand a message to a connection."""
        peer = self.peers[rank]
        head: Any = _HEAD.pack(call.tag, len(view))
        failure = ""
        with peer.sending:
            try:
                sent = peer.socket.sendmsg([head, view]) - _HEAD.size
                while sent < 0:
                    sent += peer.socket.send(head[sent:])
                while sent < len(view):
                    sent += peer.socket.send(view[sent:])
            except BlockingIOError:
                limit = int(self.timeout.total_seconds() * 1000)
                failure = f"[gloo] Timed out waiting {limit}ms for send operation to complete"
            except OSError as error:
                failure = peer.error or f"Connection closed by peer: {error.strerror or error}"
        if failure:
            raise self._say(call, failure, rank)
        self.count(call, len(view))

    def count(self, call: Call, size: int) -> None:
        """Remember that an operation has given bytes to other ranks."""
        with self._counting:
            self.sent[call.name] += size

    def post(self, call: Call, rank: int, view: memoryview, keep: Any) -> Slot:
        """Say where the next message with this tag from `rank` is to go."""
        peer, slot = self.peers[rank], Slot(view, keep)
        gone: _Peer | None = None
        with self.guard:
            data = self._take(peer, call.tag) if peer.kept.get(call.tag) else None
            if data is None:
                gone = peer if peer.error is not None else self._gone(call.tag)
                if gone is None:
                    peer.posted[call.tag].append(slot)
        if gone is not None:
            raise self._say(call, gone.error or "", gone.rank)
        if data is not None:
            self._fill(slot, rank, data)
        return slot

    def _gone(self, tag: int) -> _Peer | None:
        """A process without which a collective cannot end."""
        if tag >= SHARED_TAGS:
            return None
        return next((each for each in self.peers.values() if each.error is not None and not each.left), None)

    def post_any(self, call: Call, view: memoryview, keep: Any) -> Slot:
        """Say where the next message with this tag is to go, whoever sends it."""
        slot = Slot(view, keep)
        with self.guard:
            source, data = -1, None
            for rank, peer in self.peers.items():
                if peer.kept.get(call.tag):
                    source, data = rank, self._take(peer, call.tag)
                    break
            if data is None:
                self.any_posted[call.tag].append(slot)
        if data is not None:
            self._fill(slot, source, data)
        return slot

    def wait(self, call: Call, slot: Slot, rank: int | None) -> int:
        """Until the message is there; the rank that sent it."""
        if not slot.done.wait(call.seconds):
            self._withdraw(call.tag, slot, rank)
            text = f"[gloo] Timed out waiting {int(call.seconds * 1000)}ms for recv operation to complete"
            raise self._say(call, text, rank)
        if slot.error is not None:
            raise self._say(call, slot.error, slot.source)
        return slot.source

    def _withdraw(self, tag: int, slot: Slot, rank: int | None) -> None:
        with self.guard:
            slots = (self.any_posted if rank is None else self.peers[rank].posted).get(tag)
            if slots is not None and slot in slots:
                slots.remove(slot)

    def close(self, goodbye: bool = True) -> None:
        """End all connections and their threads; the others are told, unless they are to notice."""
        with self.guard:
            self.closed = True
        for peer in self.peers.values():
            try:
                if goodbye and peer.sending.acquire(timeout=1.0):
                    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 1, 0))
                    peer.socket.send(_HEAD.pack(_GOODBYE, 0))
                peer.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for peer in self.peers.values():
            if peer.thread is not None and peer.thread is not threading.current_thread():
                peer.thread.join(5.0)
            peer.socket.close()
