"""Queues that pickle with the reductions of this package even where the context has another pickler."""

from __future__ import annotations

import io
import multiprocessing.queues
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _Queue = multiprocessing.queues.Queue[Any]
    _SimpleQueue = multiprocessing.queues.SimpleQueue[Any]
else:  # without subscript before Python 3.12
    _Queue = multiprocessing.queues.Queue
    _SimpleQueue = multiprocessing.queues.SimpleQueue


class ConnectionWrapper:
    """A connection that sends by reduction."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Pickle and send."""
        buffer = io.BytesIO()
        ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(obj)
        self.send_bytes(buffer.getvalue())

    def recv(self) -> Any:
        """Receive and unpickle."""
        return pickle.loads(self.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


class Queue(_Queue):
    """A queue whose messages may hold tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: Any = self
        own._reader = ConnectionWrapper(own._reader)
        own._writer = ConnectionWrapper(own._writer)
        own._send = own._writer.send
        own._recv = own._reader.recv


class SimpleQueue(_SimpleQueue):
    """A pipe with locks whose messages may hold tensors."""

    def _make_methods(self) -> None:
        own: Any = self
        if not isinstance(own._reader, ConnectionWrapper):
            own._reader = ConnectionWrapper(own._reader)
            own._writer = ConnectionWrapper(own._writer)
        before: Any = super()
        make = getattr(before, "_make_methods", None)
        if make is not None:
            make()
