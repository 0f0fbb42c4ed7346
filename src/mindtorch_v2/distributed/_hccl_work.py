"""Works on a device: an event at the end of a stream, a thread that looks after those that do not come to it.

Invariant: the tensors of a collective are held until the device is done with them. What fails on the device is raised
by everyone who waits for it or asks the group for more.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .._backends.npu import errors as npu_errors
from .._backends.npu import runtime
from .._backends.npu.acl_loader import ensure_acl
from .._backends.npu.hccl import Communicator, text_of
from .._backends.npu.streams import Event, Stream, StreamContext, current_stream
from ..futures import Future
from ._errors import DistBackendError
from ._options import OpType
from ._store import Store
from ._work import Task, Work

__all__ = ["Begun", "Channel", "DeviceWork", "Together", "Watch"]

_ZERO = timedelta(0)
_POLL = 0.1  # seconds between two looks at the works that are on their way
_WORDS = 2000  # milliseconds that a stream gets to end after a failure, so that its words can be read
_SETTLE = 0.5  # how long other ranks get to say how far they have come


class Channel:
    """A communicator and the stream that its collectives run on."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.stream = Stream(communicator.device)

    @property
    def device(self) -> int:
        return self.communicator.device

    def text(self) -> str:
        """What the device says of a failure; asking waits for the stream."""
        runtime.use(self.device)
        status = ensure_acl().aclrtSynchronizeStreamWithTimeout(self.stream.npu_stream, _WORDS)
        return npu_errors.vendor_text() if status else ""


class DeviceFuture(Future[Any]):
    """A value that a stream is still making: whoever takes it has its own stream wait."""

    def __init__(self, value: Any, event: Event, device: int) -> None:
        super().__init__()
        self._event, self._index = event, device
        self.set_result(value)

    def _take(self) -> Any:
        self._event.wait(current_stream(self._index))
        return super()._take()

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """The callback is called at once, and what it computes runs on a stream of its own."""
        side = Stream(self._index)
        with StreamContext(side):
            result = callback(self)
            event = side.record_event()
        for tensor in result if isinstance(result, (list, tuple)) else [result]:
            if hasattr(tensor, "record_stream"):
                tensor.record_stream(current_stream(self._index))
        return DeviceFuture(result, event, self._index)


class DeviceWork(Work):
    """A collective on a stream."""

    def __init__(
        self, watch: Watch, channel: Channel, name: str, sequence: int, kind: OpType, outputs: Any, keep: Any
    ) -> None:
        super().__init__(kind)
        self._watch, self._channel, self.operation, self.sequence = watch, channel, name, sequence
        self._outputs, self._keep = outputs, keep
        self.end = channel.stream.record_event()
        self.limit = watch.seconds
        self.started = time.monotonic()

    def over(self) -> bool:
        """Whether the device is done with it, well or not."""
        return self._finished.is_set() or self.end.query()

    def is_completed(self) -> bool:
        if not self._finished.is_set() and self.end.query():
            self._watch.settle(self)
        return self._finished.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def wait(self, timeout: timedelta = _ZERO) -> bool:
        """Have this thread's current stream wait; with a timeout, or for a barrier, this thread waits itself."""
        if timeout > _ZERO or self._op_type is OpType.BARRIER:
            self._block(timeout.total_seconds() or self.limit)
        self._watch.check()
        if self._error is not None:
            raise self._error
        self.end.wait(current_stream(self._channel.device))
        return True

    def _block(self, seconds: float) -> None:
        last = time.monotonic() + seconds
        pause = 0.0
        while not self.is_completed():
            if time.monotonic() > last:
                self._watch.fail(self, f"it was waited for {seconds:g} s")
                return
            time.sleep(pause)
            pause = min(pause + 0.0001, 0.005)

    def synchronize(self) -> None:
        self.wait()

    def release(self, error: BaseException | None) -> None:
        """Let go of the tensors: the device has no more use for them."""
        self._keep = None
        if not self._finished.is_set():
            self._finish(error)

    def get_future(self) -> Future[Any]:
        return DeviceFuture(self._outputs, self.end, self._channel.device)


class Begun(Task):
    """Messages that another thread queues on the device, as soon as the two ranks are connected."""

    def __init__(self, kind: OpType, begin: Callable[[], DeviceWork], outputs: Any) -> None:
        super().__init__(kind, self._run_now, outputs, "hccl")
        self._begin: Callable[[], DeviceWork] | None = begin
        self._inner: DeviceWork | None = None

    def _run_now(self, task: Task) -> None:
        begin, self._begin = self._begin, None
        assert begin is not None
        self._inner = begin()

    def is_completed(self) -> bool:
        return super().is_completed() and (self._inner is None or self._inner.is_completed())

    def is_success(self) -> bool:
        return super().is_success() and self._inner is not None and self._inner.is_success()

    def exception(self) -> BaseException | None:
        return self._error if self._inner is None else self._inner.exception()

    def wait(self, timeout: timedelta = _ZERO) -> bool:
        super().wait(timeout)
        assert self._inner is not None
        return self._inner.wait(timeout)

    def get_future(self) -> Future[Any]:
        super().wait()
        assert self._inner is not None
        return self._inner.get_future()


class Together(Work):
    """The messages of a batch as one work."""

    def __init__(self, works: list[Any]) -> None:
        super().__init__(OpType.COALESCED)
        self._works = works
        self._outputs = [tensor for work in works for tensor in work.result()]

    def is_completed(self) -> bool:
        return all([work.is_completed() for work in self._works])

    def is_success(self) -> bool:
        return all([work.is_success() for work in self._works])

    def exception(self) -> BaseException | None:
        return next((work.exception() for work in self._works if work.exception() is not None), None)

    def wait(self, timeout: timedelta = _ZERO) -> bool:
        for work in self._works:
            work.wait(timeout)
        return True

    def synchronize(self) -> None:
        self.wait()


class Watch:
    """The works of one group that are on their way, and the group's failure once there is one."""

    def __init__(self, store: Store, rank: int, size: int, seconds: float) -> None:
        self.store, self.rank, self.size, self.seconds = store, rank, size, seconds
        self.group = ""
        self.failure: BaseException | None = None
        self.sequence = 0  # of the last collective that this rank began
        self._told = -1
        self._raised = False
        self._works: deque[DeviceWork] = deque()
        self._guard = threading.RLock()
        self._news = threading.Event()
        self._ending = False
        self._thread: threading.Thread | None = None

    def add(self, work: DeviceWork) -> None:
        """Look after a work, and let go of those that are over."""
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pt_hccl_watchdg", daemon=True)
                self._thread.start()
                npu_errors.WAITED.append(self._look)
            self._works.append(work)
            self._news.set()
        self.reap()

    def reap(self) -> None:
        """Let go of works that are over."""
        with self._guard:
            while self._works and self._works[0].over():
                work = self._works.popleft()
                self.settle(work)

    def settle(self, work: DeviceWork) -> None:
        """A work is over: well, or its communicator says otherwise."""
        code = 0 if work._finished.is_set() else work._channel.communicator.error()
        if code:
            self.fail(work, work._channel.text() or text_of(code))
        work.release(self.failure if code else None)

    def check(self) -> None:
        """Raise what the group failed with."""
        if self.failure is not None:
            self._raised = True
            raise DistBackendError(str(self.failure))

    def _look(self, device: int) -> None:
        """After somebody waited for a device: what came of a failed collective is not to be taken for a value.

        This is said once, so that a program that has heard of it can still save what it has.
        """
        with self._guard:
            self.reap()
            if not self._raised:
                self.check()

    def fail(self, work: DeviceWork, why: str) -> None:
        """Remember the first failure, with the names of who came and who did not."""
        with self._guard:
            if self.failure is not None:
                return
            arrived, missing = self._arrivals(work)
            who = f"ranks arrived: {arrived}, missing: {missing}" if work.sequence else "a message between two ranks"
            self.failure = DistBackendError(
                f"HCCL: {why} (operation {work.operation}, sequence number {work.sequence or 'none'}, group "
                f"{self.group or '0'}, rank {self.rank} of {self.size}; {who})"
            )
            if not work._finished.is_set():
                work._finish(self.failure)

    def _tell(self) -> None:
        if self._told != self.sequence:
            self._told = self.sequence
            self.store.set(f"progress/{self.rank}", str(self.sequence))

    def _arrivals(self, work: DeviceWork) -> tuple[list[int], list[int]]:
        """Who has begun the collective, by what each rank has told the store."""
        if not work.sequence:
            return [], []
        last = time.monotonic() + _SETTLE
        arrived: set[int] = {self.rank}
        try:
            self._tell()
            while len(arrived) < self.size and time.monotonic() < last:
                for rank in set(range(self.size)) - arrived:
                    key = f"progress/{rank}"
                    if self.store.check([key]) and int(self.store.get(key)) >= work.sequence:
                        arrived.add(rank)
                time.sleep(0.02)
        except (RuntimeError, OSError):
            pass  # the store is gone with the process that served it
        return sorted(arrived), sorted(set(range(self.size)) - arrived)

    def _run(self) -> None:
        while True:
            self._news.wait()
            if self._ending:
                return
            time.sleep(_POLL)
            try:
                self._once()
            except (RuntimeError, OSError):
                if self._ending or not runtime.alive():
                    return

    def _once(self) -> None:
        try:
            self._tell()
        except (RuntimeError, OSError):
            pass  # who cannot be told does not matter while collectives work
        self.reap()
        with self._guard:
            first = self._works[0] if self._works else None
            if first is None:
                if not self._ending:  # that is news, which this thread must not miss
                    self._news.clear()
                return
        code = first._channel.communicator.error()
        if code:
            self.fail(first, first._channel.text() or text_of(code))
        elif self.failure is None and time.monotonic() - first.started > first.limit:
            self.fail(first, f"other ranks did not come within {first.limit:g} s")

    def end(self) -> None:
        """Look after nothing any more."""
        with self._guard:
            self._ending = True
            self._news.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            npu_errors.WAITED.remove(self._look)
            if thread is not threading.current_thread():
                thread.join(5.0)
        with self._guard:
            for work in self._works:
                work.release(self.failure)
            self._works.clear()
