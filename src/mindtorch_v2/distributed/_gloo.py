"""The backend `gloo`: collectives of CPU tensors over own sockets. What is checked and said is what PyTorch's says.

Invariant: messages carry the sequence number of their operation, so that ranks agree on what belongs together whichever
of their threads runs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._host import HostGroup
from ._memory import Memory
from ._options import OpType
from ._process_group import BackendOptions
from ._rounds import Rounds
from ._sockets import SHARED_TAGS, Call, Mesh
from ._store import Store, milliseconds
from ._trace import Doing, asked, session
from ._work import Done, Work
from .constants import default_pg_timeout

__all__ = ["ProcessGroupGloo"]

# Tags: collectives count from 0; messages from one rank to another have the user's tag above all of them.
_POINT_TO_POINT = SHARED_TAGS * 2
_BARRIER = SHARED_TAGS


class ProcessGroupGloo(HostGroup):
    """Collectives of CPU tensors over sockets."""

    __module__ = "torch.distributed"

    title = "Gloo"

    class Options(BackendOptions):
        """What the backend is made with."""

        def __init__(self, timeout: timedelta = default_pg_timeout) -> None:
            super().__init__("gloo", timeout)
            self._threads = 2
            self._devices: list[Any] = []

    _Options = Options

    def __init__(self, store: Store, rank: int, size: int, timeout: Any = default_pg_timeout) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"ProcessGroupGloo(): store must be a torch.distributed.Store, got {type(store).__name__}")
        if not 0 <= rank < size:
            raise ValueError(f"ProcessGroupGloo(): rank {rank} is not one of {size}")
        super().__init__(rank, size, timeout if isinstance(timeout, BackendOptions) else self.Options(timeout))
        # Ranks agree on the number of a collective; messages and monitored barriers are not everybody's, and have
        # numbers of their own.
        self._messages = self._barriers = 0
        self._mesh = Mesh(store, rank, size, self._options._timeout)
        self._rounds = self._chosen_rounds(store)

    def _chosen_rounds(self, store: Store) -> Rounds:
        """Collectives by sockets and shared memory; or by the Gloo library, where the environment asks for it."""
        engine = os.environ.get("MINDTORCH_GLOO", "sockets")
        if engine == "sockets":
            return Rounds(self._mesh)
        if engine != "library":
            raise ValueError(f"MINDTORCH_GLOO must be 'sockets' or 'library', got {engine!r}")
        from ._gloo_library import LibraryRounds

        return LibraryRounds(self._mesh, store, self._options._timeout)

    def name(self) -> str:
        return "gloo"

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._options._timeout = timeout
        self._mesh.set_timeout(timeout)

    def _call(self, name: str, timeout: timedelta) -> Call:
        call = super()._call(name, timeout)
        self._mesh.begun = call.sequence
        return call

    def _bytes_sent(self) -> dict[str, int]:
        """Bytes that this rank has given to others so far, by name of operation."""
        return dict(self._mesh.sent)

    def shutdown(self) -> None:
        self._queue.close()
        self._rounds.close()
        self._mesh.close()

    def abort(self) -> None:
        self._rounds.close()
        self._mesh.close(goodbye=False)
        self._queue.close()

    # From one rank to another: each has a thread of its own, since they wait for each other in any order.

    def _message(self, name: str, tag: int) -> Call:
        if not 0 <= tag < 1 << 31:
            raise self._wrong(name, f"invalid tag: {tag}")
        self._messages += 1
        return Call(name, self._messages, _POINT_TO_POINT + tag, self._options._timeout)

    def _peer(self, name: str, rank: int) -> int:
        if not 0 <= rank < self._size or rank == self._rank:
            raise self._wrong(name, f"invalid rank: {rank} (this is rank {self._rank} of {self._size})")
        return rank

    def send(self, tensors: Sequence[Any], dst: int, tag: int) -> Work:
        tensor, call = self._message_of("send", tensors), self._message("send", tag)
        target = self._peer("send", dst)
        with asked(OpType.SEND):
            doing = Doing("gloo", OpType.SEND, [tensor], session())
            self._rounds.send(call, Memory(tensor).flat, target)
            doing.end()
        return Done([tensor], OpType.SEND)

    def recv(self, tensors: Sequence[Any], src: int, tag: int) -> Work:
        tensor, call = self._message_of("recv", tensors), self._message("recv", tag)
        return _Receive(self._mesh, call, Memory(tensor), self._peer("recv", src), tensor)

    def recv_anysource(self, tensors: Sequence[Any], tag: int) -> Work:
        tensor, call = self._message_of("recv_anysource", tensors), self._message("recv_anysource", tag)
        return _Receive(self._mesh, call, Memory(tensor), None, tensor)

    # A barrier that says who is missing.

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        limit = self._limit(timeout)
        self._barriers += 1
        call = Call("monitored_barrier", self._barriers, _BARRIER + self._barriers, limit)
        word = memoryview(bytearray(1))
        if self._rank:
            self._report(call, word, limit)
            return
        slots = {rank: self._mesh.post(call, rank, memoryview(bytearray(1)), None) for rank in range(1, self._size)}
        end, missing = time.monotonic() + limit.total_seconds(), []
        for rank, slot in slots.items():
            call.seconds = max(end - time.monotonic(), 0.0)
            try:
                self._mesh.wait(call, slot, rank)
            except RuntimeError as error:
                missing.append(rank)
                if not wait_all_ranks:
                    arrived = list(range(1, rank))
                    raise self._absent(f"Rank {rank}", limit, self._late(error, arrived, limit)) from error
        if missing:
            raise self._absent(f"Ranks {', '.join(map(str, missing))}", limit)
        for rank in range(1, self._size):
            self._mesh.send(call, rank, word)

    @staticmethod
    def _late(error: RuntimeError, arrived: list[int], limit: timedelta) -> str:
        """What rank 0 found; without any time to wait it has not asked anyone."""
        if limit > timedelta(0):
            return str(error)
        known = f"Ranks successfully processed in monitoredBarrier: {', '.join(map(str, arrived))}" if arrived else ""
        return (
            f"Rank 0 timed out in monitoredBarrier after {milliseconds(limit)} ms.\n"
            f"{known or 'No ranks successfully processed in monitoredBarrier.'}"
        )

    @staticmethod
    def _absent(who: str, limit: timedelta, why: str = "") -> RuntimeError:
        text = f"[Rank 0]: {who} failed to pass monitoredBarrier in {milliseconds(limit)} ms"
        return RuntimeError(f"{text}\n Original exception: \n{why}" if why else text)

    def _report(self, call: Call, word: memoryview, limit: timedelta) -> None:
        try:
            slot = self._mesh.post(call, 0, word, None)
            self._mesh.send(call, 0, memoryview(b"\1"))
            self._mesh.wait(call, slot, 0)
        except RuntimeError as error:
            raise RuntimeError(
                f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for "
                f"send/recv from rank 0. Please check rank 0 logs for faulty rank.\n Original exception: \n{error}"
            ) from error


class _Receive(Work):
    """A message that is waited for; nobody needs a thread for that."""

    def __init__(self, mesh: Mesh, call: Call, block: Memory, source: int | None, tensor: Any) -> None:
        kind = OpType.RECVANYSOURCE if source is None else OpType.RECV
        super().__init__(kind)
        self._doing = Doing("gloo", kind, [tensor], session())
        from ._rounds import memory

        self._mesh, self._call, self._block, self._from = mesh, call, block, source
        self._outputs = [tensor]
        view = memory(block.flat)
        posted = mesh.post_any(call, view, block.flat) if source is None else mesh.post(call, source, view, block.flat)
        self._slot = posted

    def is_completed(self) -> bool:
        if not self._finished.is_set() and self._slot.done.is_set():
            self._complete()
        return self._finished.is_set()

    def _complete(self) -> None:
        with self._guard:
            if self._finished.is_set():
                return
            error: RuntimeError | None = None
            try:
                self._source = self._mesh.wait(self._call, self._slot, self._from)
                self._block.done()
            except RuntimeError as found:
                error = found
            self._error = error
            self._doing.end()
            self._finished.set()
            future = self._future
        if future is not None:
            self._settle(future)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if timeout > timedelta(0):
            self._call.seconds = timeout.total_seconds()
        self._complete()
        self.synchronize()
        return True

    def get_future(self) -> Any:
        future = super().get_future()
        if not self._finished.is_set():
            import threading

            threading.Thread(target=self._complete, name="pt_gloo_recv", daemon=True).start()
        return future
