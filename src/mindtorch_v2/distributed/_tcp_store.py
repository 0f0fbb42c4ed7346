"""`TCPStore`: the keys of one process, asked for by all others over a socket.

Invariant: a message is a length, a kind and fields of bytes, nothing is ever unpickled; a client's request that waits
holds up nobody but that client.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._errors import DistNetworkError, DistStoreError, QueueEmptyError
from ._store import DEFAULT_TIMEOUT, Store, Table, TableStore, WaitTimeout, milliseconds

__all__ = ["TCPStore", "receive_exactly"]

# What travels: the table's methods, and the kinds of their arguments and results.
_METHODS: dict[str, tuple[str, str]] = {
    "set": ("kv", ""),
    "append": ("kv", ""),
    "add": ("ki", "i"),
    "compare_set": ("kvv", "v"),
    "wait": ("Kt", ""),
    "multi_get": ("Kt", "V"),
    "multi_set": ("KV", ""),
    "check": ("K", "i"),
    "delete_key": ("k", "i"),
    "list_keys": ("", "K"),
    "queue_push": ("kv", ""),
    "queue_pop": ("kit", "v"),
    "queue_len": ("k", "i"),
}
_NAMES = list(_METHODS)
_HEAD = struct.Struct("<IB")
_LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct("<q")
_SECONDS = struct.Struct("<d")
_OK, _LATE, _EMPTY, _BAD = 0, 1, 2, 3
_INIT_KEY = "init/"
_CLOSED = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"


def receive_exactly(connection: socket.socket, size: int) -> bytearray:
    """So many bytes; `DistNetworkError` if the other side ends before."""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        got = connection.recv_into(view[at:])
        if not got:
            raise DistNetworkError(_CLOSED)
        at += got
    return data


def _pack(kinds: str, values: Sequence[Any]) -> bytes:
    parts: list[bytes] = []
    for kind, value in zip(kinds, values):
        if kind == "i":
            parts.append(_NUMBER.pack(int(value)))
            continue
        if kind == "t":
            parts.append(_SECONDS.pack(value))
            continue
        fields = [value] if kind in "kv" else value
        if kind in "KV":
            parts.append(_LENGTH.pack(len(fields)))
        for field in fields:
            raw = field.encode() if kind in "kK" else field
            parts += (_LENGTH.pack(len(raw)), raw)
    return b"".join(parts)


def _unpack(kinds: str, data: bytes) -> list[Any]:
    at = 0

    def field(as_text: bool) -> Any:
        nonlocal at
        (length,) = _LENGTH.unpack_from(data, at)
        raw = data[at + 4 : at + 4 + length]
        if len(raw) != length:
            raise ValueError("a field is longer than its message")
        at += 4 + length
        return raw.decode() if as_text else raw

    values: list[Any] = []
    for kind in kinds:
        if kind in "it":
            values.append((_NUMBER if kind == "i" else _SECONDS).unpack_from(data, at)[0])
            at += 8
        elif kind in "kv":
            values.append(field(kind == "k"))
        else:
            (count,) = _LENGTH.unpack_from(data, at)
            at += 4
            if count > len(data):
                raise ValueError("more fields than bytes")
            values.append([field(kind == "K") for _ in range(count)])
    return values


class _Server:
    """Answers for a table: a thread that accepts, and one for each client."""

    def __init__(self, host: str, port: int, listen_fd: int | None) -> None:
        self.table = Table()
        self.clients: set[socket.socket] = set()
        self.closed = False
        self.users = 0
        self.guard = threading.Lock()
        if listen_fd is not None:
            self.socket = socket.socket(fileno=listen_fd)
        else:
            self.socket = self._listening(host, port)
        self.port: int = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, name="pt_tcpstore", daemon=True).start()

    @staticmethod
    def _listening(host: str, port: int) -> socket.socket:
        # A name of this machine for itself needs no door to the network; any other one is reached from outside.
        local = host in ("127.0.0.1", "localhost", "::1", "ip6-localhost")
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1" if local else "", port))
            listening.listen(2048)
        except OSError as error:
            listening.close()
            name = {98: "EADDRINUSE", 13: "EACCES"}.get(error.errno or 0, str(error.errno))
            raise DistNetworkError(
                "The server socket has failed to listen on any local network address. "
                f"port: {port}, useIpv6: false, code: -{error.errno}, name: {name}, message: "
                f"{os.strerror(error.errno or 0).lower()}"
            ) from None
        return listening

    def _accept(self) -> None:
        while not self.closed:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.guard:
                self.clients.add(client)
            threading.Thread(target=self._serve, args=(client,), name="pt_tcpstore_uv", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            while True:
                length, number = _HEAD.unpack(receive_exactly(client, _HEAD.size))
                data = bytes(receive_exactly(client, length))
                status, reply = self._answer(number, data)
                client.sendall(_HEAD.pack(len(reply), status) + reply)
        except (OSError, DistNetworkError, ValueError, struct.error, IndexError):
            pass  # a client that ended, or that does not speak as ours: its connection ends
        finally:
            with self.guard:
                self.clients.discard(client)
            client.close()

    def _answer(self, number: int, data: bytes) -> tuple[int, bytes]:
        name = _NAMES[number]
        takes, gives = _METHODS[name]
        arguments = _unpack(takes, data)
        try:
            result = getattr(self.table, name)(*arguments)
        except WaitTimeout:
            return _LATE, b""
        except QueueEmptyError:
            return _EMPTY, b""
        except ValueError as error:
            return _BAD, str(error).encode()
        return _OK, _pack(gives, [result]) if gives else b""

    def close(self) -> None:
        with self.guard:
            self.closed = True
            clients = list(self.clients)
        # Closing does not wake a thread that waits in accept or recv; shutting down does.
        for each in (self.socket, *clients):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.socket.close()


_SHARED: dict[int, _Server] = {}


class TCPStore(TableStore):
    """A store in one process, the master, that all others reach by its host and port."""

    __module__ = "torch.distributed"

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._server: _Server | None = None
        self._socket: socket.socket | None = None
        self._timeout, self._host, self._guard = timeout, host_name, threading.Lock()
        self._libuv = bool(use_libuv)
        if not isinstance(port, int) or not 0 <= port <= 65535:
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported: "
                f"TCPStore(host_name: str, port: int of 16 bits, ...), got {port!r} for the port"
            )
        if is_master:
            self._server = self._served(host_name, port, multi_tenant, master_listen_fd)
            port = self._server.port
        self._port = port
        self._owner = os.getpid()
        self._socket = self._connected()
        if world_size is not None and world_size >= 0 and wait_for_workers:
            self._meet(world_size, is_master)

    @staticmethod
    def _served(host: str, port: int, multi_tenant: bool, listen_fd: int | None) -> _Server:
        shared = _SHARED.get(port) if multi_tenant else None
        server = _Server(host, port, listen_fd) if shared is None or shared.closed else shared
        server.users += 1
        if multi_tenant:
            _SHARED[server.port] = server
        return server

    def _connected(self) -> socket.socket:
        limit = time.monotonic() + self.timeout.total_seconds()
        pause = 0.02
        while True:
            left = limit - time.monotonic()
            try:
                connection = socket.create_connection((self._host, self._port), max(left, 0.01))
            except OSError:
                if time.monotonic() + pause < limit:
                    time.sleep(pause)
                    pause = min(pause * 1.5, 0.5)
                    continue
                raise DistNetworkError(
                    f"The client socket has timed out after {milliseconds(self.timeout)}ms while trying to connect to "
                    f"({self._host}, {self._port})."
                ) from None
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection

    def _meet(self, world_size: int, is_master: bool) -> None:
        """Every process says that it is here; the master waits for all."""
        self.add(_INIT_KEY, 1)
        if not is_master:
            return
        started = time.monotonic()
        while True:
            here = self.add(_INIT_KEY, 0)
            if here >= world_size:
                return
            waited = time.monotonic() - started
            if waited > self.timeout.total_seconds():
                raise DistStoreError(
                    f"Timed out after {int(waited) + 1} seconds waiting for clients. "
                    f"{here}/{world_size} clients joined."
                )
            time.sleep(0.01)

    @property
    def host(self) -> str:
        """The master's name or address."""
        return self._host

    @property
    def port(self) -> int:
        """The master's port."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """Whether PyTorch's newer server was asked for; here there is one."""
        return self._libuv

    def __repr__(self) -> str:
        address = f"remote=[{self._host}]:{self._port}"
        server = f"TCPServer(port={self._port})" if self._server is not None else "<nullptr>"
        return f"TCPStore(client=TCPClient(SocketImpl({address})), server={server})"

    def local_address(self) -> str:
        """The address by which this process reaches the master: others reach this process by it."""
        assert self._socket is not None
        address: str = self._socket.getsockname()[0]
        return address

    def clone(self) -> Store:
        return TCPStore(self._host, self._port, None, False, self.timeout, wait_for_workers=False)

    def _late(self, keys: Sequence[str], timeout: timedelta) -> DistStoreError:
        names = ", ".join(f"/{key}" for key in keys)
        return DistStoreError(f"wait timeout after {milliseconds(timeout)}ms, keys: {names}")

    def _ask(self, method: str, timeout: timedelta | None, *arguments: Any) -> Any:
        takes, gives = _METHODS[method]
        values = arguments if timeout is None else (*arguments, timeout.total_seconds())
        body = _pack(takes, values)
        with self._guard:
            connection = self._of_this_process()
            try:
                connection.sendall(_HEAD.pack(len(body), _NAMES.index(method)) + body)
                length, status = _HEAD.unpack(receive_exactly(connection, _HEAD.size))
                reply = bytes(receive_exactly(connection, length))
            except OSError as error:
                raise DistNetworkError(error.strerror or str(error)) from None
        if status == _LATE:
            raise WaitTimeout
        if status == _EMPTY:
            raise QueueEmptyError("queue is empty")
        if status == _BAD:
            raise ValueError(reply.decode())
        return _unpack(gives, reply)[0] if gives else None

    def _of_this_process(self) -> socket.socket:
        """The connection; a child made by fork gets its own, since two cannot speak over one."""
        if self._owner != os.getpid():
            self._owner, self._server = os.getpid(), None
            self._socket = self._connected()
        if self._socket is None:
            raise DistNetworkError("the store is closed")
        return self._socket

    def __del__(self) -> None:
        connection: socket.socket | None = getattr(self, "_socket", None)
        server: _Server | None = getattr(self, "_server", None)
        if connection is not None:
            connection.close()
        if server is not None and self._owner == os.getpid():
            server.users -= 1
            if server.users == 0:
                if _SHARED.get(server.port) is server:
                    del _SHARED[server.port]
                server.close()
