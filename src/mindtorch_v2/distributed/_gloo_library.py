"""Collectives by the Gloo library itself, where `MINDTORCH_GLOO=library` asks for it.

A small shared library (`make gloo`, of `csrc/gloo_engine`) stands between: Gloo is C++ without a stable interface. It
is found by `MINDTORCH_GLOO_LIBRARY`, or beside this package.

Invariant: all ranks of a group use the same engine. Messages between two ranks, and the question who has arrived when
something is late, stay with this package's own sockets: the library does not serve the latter.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from .. import _dtype as _t
from ._options import RedOpType, ReduceOp
from ._rounds import Rounds
from ._sockets import Call, Mesh
from ._store import PrefixStore, Store

__all__ = ["LibraryRounds"]

NAME = "libmindtorch_gloo.so"
# Numbers that `csrc/gloo_engine` knows dtypes and reductions by; what is not here is exchanged, and added here.
DTYPES: dict[Any, int] = {_t.float32: 0, _t.float64: 1, _t.int32: 2, _t.int64: 3, _t.int8: 4, _t.uint8: 5}
KINDS: dict[Any, int] = {
    ReduceOp.SUM: 0,
    ReduceOp.AVG: 0,
    ReduceOp.PRODUCT: 1,
    ReduceOp.MIN: 2,
    ReduceOp.MAX: 3,
    ReduceOp.BAND: 4,
    ReduceOp.BOR: 5,
    ReduceOp.BXOR: 6,
}
_ROOM = 1024
_SET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_GET = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_POINTER, _INT, _LONG, _TAG = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_uint32
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "allreduce": (_POINTER, _LONG, _INT, _INT),
    "reduce": (_POINTER, _POINTER, _LONG, _INT, _INT, _INT),
    "broadcast": (_POINTER, _LONG, _INT),
    "allgather": (_POINTER, _POINTER, _LONG),
    "gather": (_POINTER, _POINTER, _LONG, _INT),
    "scatter": (_POINTER, _POINTER, _LONG, _INT),
    "exchange": (_POINTER, _POINTER, _POINTER, _POINTER),
    "barrier": (),
}


def _loaded() -> Any:
    place = os.environ.get("MINDTORCH_GLOO_LIBRARY") or str(Path(__file__).parents[1] / NAME)
    try:
        library = ctypes.CDLL(place)
    except OSError as error:
        raise RuntimeError(
            f"MINDTORCH_GLOO=library: {NAME} cannot be loaded ({error}). Install the Gloo library (apt-get install "
            "libgloo-dev), build it (python csrc/gloo_engine/build.py) and let MINDTORCH_GLOO_LIBRARY name it; or "
            "leave MINDTORCH_GLOO unset"
        ) from None
    library.mt_gloo_open.restype = _POINTER
    library.mt_gloo_open.argtypes = [_INT, _INT, ctypes.c_char_p, _SET, _GET, _LONG, _POINTER, _LONG]
    library.mt_gloo_close.argtypes = [_POINTER, _POINTER, _LONG]
    library.mt_gloo_free.argtypes = [_POINTER]
    library.mt_gloo_free.restype = None
    for name, signature in _SIGNATURES.items():
        getattr(library, f"mt_gloo_{name}").argtypes = [_POINTER, *signature, _TAG, _LONG, _POINTER, _LONG]
    return library


def _bytes(flat: Any) -> int:
    return int(flat.numel() * flat.element_size())


class LibraryRounds(Rounds):
    """The collectives of one group, by the Gloo library."""

    def __init__(self, mesh: Mesh, store: Store, timeout: timedelta) -> None:
        super().__init__(mesh)
        self._library = _loaded()
        self._engine = self._open(PrefixStore("library/", store), timeout)

    def _open(self, store: Store, timeout: timedelta) -> int:
        def put(key: bytes, data: int, size: int) -> int:
            try:
                store.set(key.decode(), ctypes.string_at(data, size))
            except Exception:  # told by the number; nothing may pass through the library
                return 1
            return 0

        def get(key: bytes, data: int, room: int, milliseconds: int) -> int:
            try:
                store.wait([key.decode()], timedelta(milliseconds=milliseconds))
                if room == 0:
                    return 0
                found = store.get(key.decode())
            except Exception:  # told by the number
                return -1
            ctypes.memmove(data, found, min(len(found), room))
            return len(found)

        why = ctypes.create_string_buffer(_ROOM)
        limit = int(timeout.total_seconds() * 1000)
        host = self.mesh.host.encode()
        engine = self._library.mt_gloo_open(
            self.rank, self.size, host, _SET(put), _GET(get), limit, ctypes.addressof(why), _ROOM
        )
        if not engine:
            raise RuntimeError(f"Gloo: {why.value.decode(errors='replace')} (rank {self.rank} of {self.size})")
        return int(engine)

    def close(self) -> None:
        """End what still runs, with an error, and every connection."""
        why = ctypes.create_string_buffer(_ROOM)
        self._library.mt_gloo_close(self._engine, ctypes.addressof(why), _ROOM)

    def __del__(self) -> None:
        if getattr(self, "_engine", 0):
            self._library.mt_gloo_free(self._engine)

    def _do(self, name: str, call: Call, *arguments: Any) -> None:
        why = ctypes.create_string_buffer(_ROOM)
        function = getattr(self._library, f"mt_gloo_{name}")
        limit = max(int(call.seconds * 1000), 1)
        if function(self._engine, *arguments, call.tag & 0xFFFFFFFF, limit, ctypes.addressof(why), _ROOM):
            error = self.mesh._say(call, why.value.decode(errors="replace"), None)
            # In the library's rings a rank hears of its neighbours alone. Nothing is left to be done with them: as the
            # connections end, they hear of it too, and so on around the ring, long before their time limit.
            self.close()
            raise error

    def allreduce(self, call: Call, flat: Any, kind: RedOpType) -> None:
        if self.size == 1 or not flat.numel():
            return
        if flat.dtype in DTYPES:
            self._do("allreduce", call, flat.data_ptr(), flat.numel(), DTYPES[flat.dtype], KINDS[kind])
            return
        parts = [flat.new_empty(flat.numel()) for _ in range(self.size)]
        self.allgather(call, parts, flat)
        self._combined(parts, kind, flat)

    def reduce(self, call: Call, flat: Any, kind: RedOpType, root: int) -> None:
        if self.size == 1 or not flat.numel():
            return
        out = flat.new_empty(flat.numel())
        if flat.dtype in DTYPES:
            numbers = flat.numel(), DTYPES[flat.dtype], KINDS[kind]
            self._do("reduce", call, flat.data_ptr(), out.data_ptr(), *numbers, root)
        else:
            out.copy_(flat)
            self.allreduce(call, out, kind)
        if self.rank == root:
            flat.copy_(out)

    def reduce_scatter(self, call: Call, out: Any, parts: Sequence[Any], kind: RedOpType) -> None:
        came = [out.new_empty(out.numel()) for _ in range(self.size)]
        self.exchange(call, parts, came)
        self._combined(came, kind, out)

    def broadcast(self, call: Call, flat: Any, root: int) -> None:
        if self.size > 1 and flat.numel():
            self._do("broadcast", call, flat.data_ptr(), _bytes(flat), root)

    def _row(self, like: Any, count: int) -> Any:
        return like.new_empty(like.numel() * count)

    def allgather(self, call: Call, outs: Sequence[Any], flat: Any) -> None:
        if not flat.numel():
            return
        row = self._row(flat, self.size)
        self._do("allgather", call, flat.data_ptr(), row.data_ptr(), _bytes(flat))
        for out, came in zip(outs, row.split(flat.numel())):
            out.copy_(came)

    def gather(self, call: Call, outs: Sequence[Any], flat: Any, root: int) -> None:
        if not flat.numel():
            return
        row = self._row(flat, self.size if self.rank == root else 0)
        place = row.data_ptr() if self.rank == root else None
        self._do("gather", call, flat.data_ptr(), place, _bytes(flat), root)
        for out, came in zip(outs, row.split(flat.numel()) if self.rank == root else ()):
            out.copy_(came)

    def scatter(self, call: Call, out: Any, parts: Sequence[Any], root: int) -> None:
        if not out.numel():
            return
        places = (_POINTER * self.size)(*(each.data_ptr() for each in parts)) if self.rank == root else None
        given = ctypes.addressof(places) if places is not None else None
        self._do("scatter", call, given, out.data_ptr(), _bytes(out), root)

    def exchange(self, call: Call, sending: Sequence[Any], receiving: Sequence[Any]) -> None:
        from .. import cat

        whole = cat([each.reshape(-1) for each in sending])
        into = whole.new_empty(sum(each.numel() for each in receiving))
        sizes = (_LONG * self.size)(*(_bytes(each) for each in sending))
        expected = (_LONG * self.size)(*(_bytes(each) for each in receiving))
        first, second = ctypes.addressof(sizes), ctypes.addressof(expected)
        self._do("exchange", call, whole.data_ptr(), first, into.data_ptr(), second)
        for out, came in zip(receiving, into.split([each.numel() for each in receiving])):
            out.view(-1).copy_(came)

    def barrier(self, call: Call) -> None:
        if self.size > 1:
            self._do("barrier", call)
