"""What NPUs do while they are watched: launches of vendor functions and copies, each between two events of its stream.

Invariant: while nobody watches, launches go straight to the vendor: the functions are put around the vendor's entry
points when a session begins and taken away when it ends. The device's clock is tied to the host's once for each device,
by an event whose completion is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from .._backends.npu import acl_loader, hccl, launch, runtime, streams
from .recorder import Active, Record, Session

# With more marks than this outstanding the oldest are read off: a device has a limited number of events.
_OUTSTANDING = 4096
_COPIES = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy DtoD"}


class Mark:
    """Something a device was given."""

    __slots__ = ("runtime", "name", "kind", "device", "stream", "before", "after", "nbytes")

    def __init__(self, host: Record, name: str, kind: str, device: int, stream: int, nbytes: int) -> None:
        self.runtime = host
        self.name = name
        self.kind = kind
        self.device = device
        self.stream = stream
        self.nbytes = nbytes
        self.before = streams.Event(enable_timing=True)
        self.after = streams.Event(enable_timing=True)


class Launches:
    """The launches of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.marks: list[Mark] = []
        # For each device an event, and the host's time when it had happened.
        self.zero: dict[int, tuple[Any, int]] = {}
        self.lock = threading.Lock()
        self.copy: Any = None
        self.paused = False
        launch.watch(self._around)
        hccl.watch(self._around_collective)
        self._watch_copies()

    def _watch_copies(self) -> None:
        acl = acl_loader.loaded()
        if acl is not None:
            plain = acl.aclrtMemcpyAsync
            self.copy = plain

            def timed(to: Any, size: Any, source: Any, nbytes: int, kind: int, stream: Any) -> Any:
                name = _COPIES.get(kind, "Memcpy")
                return self._run(
                    plain,
                    (to, size, source, nbytes, kind, stream),
                    "aclrtMemcpyAsync",
                    name,
                    "gpu_memcpy",
                    stream,
                    nbytes,
                )

            acl.__dict__["aclrtMemcpyAsync"] = timed

    def _around(self, name: str, phase2: Callable[..., int]) -> Callable[..., int]:
        """A vendor function's second phase, timed."""
        kernel = name.removeprefix("aclnn")

        def timed(workspace: Any, size: Any, executor: Any, stream: Any) -> Any:
            return self._run(phase2, (workspace, size, executor, stream), name, kernel, "kernel", stream, 0)

        return timed

    def _around_collective(self, name: str, collective: Callable[..., int]) -> Callable[..., int]:
        """A collective of the vendor, timed; its stream is its last argument."""
        kernel = name.removeprefix("Hccl")
        return lambda *args: self._run(collective, args, name, kernel, "kernel", args[-1], 0)

    def _run(self, fn: Any, args: Any, name: str, kernel: str, kind: str, stream: int, nbytes: int) -> Any:
        session = Active.session
        if session is not self.session or self.paused:
            return fn(*args)
        index = runtime.current_device()
        if index not in self.zero:
            self._tie(index)
        thread = session.thread()
        host = Record(name, "privateuse1_runtime", thread, 0)
        session.count += 1
        host.number = session.count
        host.linked = thread.open[-1].number if thread.open else 0
        mark = Mark(host, kernel, kind, index, stream, nbytes)
        home = _stream(index, stream)
        mark.before.record(home)
        host.start = perf_counter_ns()
        code = fn(*args)
        host.end = perf_counter_ns()
        mark.after.record(home)
        with self.lock:
            session.records.append(host)
            self.marks.append(mark)
            full = len(self.marks) > _OUTSTANDING
        if full:
            self._read()
        return code

    def _tie(self, index: int) -> None:
        """Wait for an event of the device, so that its clock and the host's can be compared."""
        home = streams.default_stream(index)
        for _ in range(2):
            # Once to have the stream idle, and once to be measured.
            event = streams.Event(enable_timing=True)
            event.record(home)
            event.synchronize()
            self.zero[index] = event, perf_counter_ns()

    def _read(self) -> None:
        """Records of what has been given to devices so far; waits for it."""
        with self.lock:
            marks, self.marks = self.marks, []
        for m in marks:
            m.after.synchronize()
            event, time = self.zero[m.device]
            # An idle stream passes the first event before the launch gets there; nothing starts before it is launched.
            start = max(time + int(event.elapsed_time(m.before) * 1e6), m.runtime.start)
            r = Record(m.name, m.kind, m.runtime.thread, start)
            r.end = max(r.start, time + int(event.elapsed_time(m.after) * 1e6))
            r.device, r.stream, r.nbytes = m.device, m.stream, m.nbytes
            r.number, r.linked = m.runtime.number, m.runtime.linked
            self.session.records.append(r)

    def collect(self) -> None:
        """Let the vendor's functions alone again, and read off what the devices did."""
        launch.watch(None)
        hccl.watch(None)
        acl = acl_loader.loaded()
        if acl is not None and self.copy is not None:
            acl.__dict__["aclrtMemcpyAsync"] = self.copy
        self._read()
        self.zero.clear()


def _stream(index: int, handle: int) -> Any:
    """The stream object with a handle, as much of it as recording an event needs."""
    found = streams.current_stream(index)
    if found.npu_stream == handle:
        return found
    other = streams.default_stream(index)
    other.npu_stream = handle
    return other
