"""`Work`: an operation that has been asked for. `Queue`: the thread that does them one after the other.

Invariant: a work is done once; what its operation raised is raised by everyone who waits for it. Works of one queue run
in the order in which they were put in.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future
from ._options import OpType
from ._trace import Doing, session

__all__ = ["Done", "Queue", "Task", "Work"]

_ZERO = timedelta(0)


class Work:
    """An operation on its way. A backend of one's own overrides what it knows better."""

    __module__ = "torch.distributed"

    def __init__(self, op_type: OpType = OpType.UNKNOWN) -> None:
        self._op_type = op_type
        self._finished = threading.Event()
        self._error: BaseException | None = None
        self._outputs: Any = []
        self._future: Future[Any] | None = None
        self._guard = threading.Lock()
        self._source = -1
        self._duration = -1.0

    def is_completed(self) -> bool:
        """Whether the operation has ended, well or not."""
        return self._finished.is_set()

    def is_success(self) -> bool:
        """Whether the operation has ended well."""
        return self._finished.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """What the operation raised."""
        return self._error

    def wait(self, timeout: timedelta = _ZERO) -> bool:
        """Wait until the operation has ended; what it raised is raised here."""
        seconds = timeout.total_seconds()
        if not self._finished.wait(seconds if seconds > 0 else None):
            raise RuntimeError("Operation timed out!")
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Make the result of a finished operation visible to what follows."""
        if self._error is not None:
            raise self._error

    def source_rank(self) -> int:
        """Where a received tensor came from."""
        return self._source_rank()

    def _source_rank(self) -> int:
        if self._op_type not in (OpType.RECV, OpType.RECVANYSOURCE):
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._source

    def result(self) -> Any:
        """The tensors that the operation has written."""
        return self._outputs

    def get_future(self) -> Future[Any]:
        """A future of the result."""
        with self._guard:
            if self._future is None:
                self._future = Future()
                if self._finished.is_set():
                    self._settle(self._future)
            return self._future

    def get_future_result(self) -> Future[Any]:
        """A future of how the operation ended."""
        raise NotImplementedError("getFutureResult not implemented.")

    def _settle(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._outputs)
        else:
            error = self._error
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))

    def _finish(self, error: BaseException | None = None) -> None:
        with self._guard:
            self._error = error
            self._finished.set()
            future = self._future
        if future is not None:
            self._settle(future)

    def _get_op_type(self) -> int:
        return int(self._op_type)

    def _get_duration(self) -> float:
        return self._duration

    def boxed(self) -> Any:
        """This work: there is no other language to hand it to."""
        return self

    def block_current_stream(self) -> None:
        """Let what follows on the caller's stream wait for the operation; on the host that is `wait`."""
        self.wait()

    @staticmethod
    def unbox(boxed: Any) -> Work:
        """The work that `boxed` gave."""
        if not isinstance(boxed, Work):
            raise TypeError(f"unbox(): expected a Work, got {type(boxed).__name__}")
        return boxed


class Done(Work):
    """An operation that had nothing to wait for."""

    def __init__(self, outputs: Any, op_type: OpType = OpType.UNKNOWN) -> None:
        super().__init__(op_type)
        self._outputs = outputs
        self._finish()


class _FutureWork(Work):
    """An operation that has ended when a future has its value."""

    def __init__(self, future: Future[Any]) -> None:
        super().__init__()
        self._future = future
        future.add_done_callback(self._came)

    def _came(self, future: Future[Any]) -> None:
        try:
            found = future.value()
        except Exception as error:
            self._error = error
        else:
            self._outputs = list(found) if isinstance(found, (list, tuple)) else [found]
        self._finished.set()


def _create_work_from_future(future: Future[Any]) -> Work:
    """A work that has ended when a future has its value."""
    return _FutureWork(future)


class FakeWork(Work):
    """An operation that is never begun: waiting for it ends at once."""

    __module__ = "torch.distributed"

    def __init__(self) -> None:
        super().__init__()
        self.seq_id = -1
        self._finish()

    def getFuture(self) -> Future[Any]:
        """A future of nothing."""
        return self.get_future()


class PythonCallbackWork(Work):
    """An operation that is what a function does with the time limit of the first wait; it says whether it went well."""

    __module__ = "torch.distributed"

    def __init__(self, callback: Callable[[timedelta], bool]) -> None:
        super().__init__()
        self._callback = callback

    def wait(self, timeout: timedelta = _ZERO) -> bool:
        """Call the function, once."""
        if not self._finished.is_set():
            try:
                good = self._callback(timeout)
            except Exception as error:
                self._finish(error)
            else:
                self._finish(None if good else RuntimeError("PythonCallbackWork: the function returned False"))
        self.synchronize()
        return True


class Task(Work):
    """An operation that a thread of ours does."""

    def __init__(
        self, op_type: OpType, run: Callable[[Task], None], outputs: Any, backend: str = "", inputs: Any = None
    ) -> None:
        super().__init__(op_type)
        self._run: Callable[[Task], None] | None = run
        self._outputs = outputs
        # The profile of whoever asks for it, by whose name it is done.
        self._profile, self._backend = session(), backend
        self._inputs = (outputs if inputs is None else inputs) if self._profile is not None else ()

    def do(self) -> None:
        run, self._run = self._run, None
        assert run is not None
        profile, self._profile = self._profile, None
        doing = Doing(self._backend, self._op_type, self._inputs, profile)
        try:
            run(self)
        except BaseException as error:  # whoever waits gets it
            doing.end()
            self._finish(error)
        else:
            doing.end()
            self._finish()


class Queue:
    """One thread that does tasks in their order; it ends when the queue is closed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._waiting = 0

    def put(self, task: Task) -> None:
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._waiting += 1
        self._tasks.put(task)

    @property
    def idle(self) -> bool:
        return self._waiting == 0

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            if task is None:
                return
            task.do()
            with self._guard:
                self._waiting -= 1
            del task  # or its tensors live until the next one comes

    def close(self) -> None:
        """Let what is in the queue be done, and end the thread."""
        with self._guard:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._tasks.put(None)
            if thread is not threading.current_thread():
                thread.join(5.0)
