"""Where a loader waits for its workers: their sockets, and that they are alive."""

from __future__ import annotations

import queue
import select
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ...._utils_names import ExceptionWrapper
from . import messages


class WorkerGone(Exception):
    """A worker ended, and nothing that it sent is left to be read."""


class ResultQueue:
    """Results of all workers, as they come. Only one thread takes from it."""

    def __init__(self, ends: list[messages.Endpoint], workers: list[Any], expected: Callable[[int], bool]) -> None:
        """`expected`, a method of the loader's iterator, tells whether a worker should still be there. The iterator is
        not kept alive: a thread may wait here when the last who used it has gone."""
        self.ends = ends
        self.workers = workers
        self.ask: Any = weakref.WeakMethod(expected)
        self.poller = select.poll()
        self.by_fd: dict[int, tuple[bool, int]] = {}
        self.ready: deque[int] = deque()
        for i, end in enumerate(ends):
            self._watch(end.fileno(), True, i)
        for i, worker in enumerate(workers):
            self._watch(worker.sentinel, False, i)

    def _watch(self, fd: int, is_end: bool, worker_id: int) -> None:
        self.by_fd[fd] = (is_end, worker_id)
        self.poller.register(fd, select.POLLIN)

    def _forget(self, fd: int) -> None:
        del self.by_fd[fd]
        self.poller.unregister(fd)

    def get(self, timeout: float | None = None) -> tuple[int, Any]:
        """The next result. Raises `queue.Empty` after `timeout` seconds, `WorkerGone` for a worker that is missed."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            while self.ready:
                fd = self.ready.popleft()
                if fd in self.by_fd:
                    got = self._take(fd)
                    if got is not None:
                        return got
            left = None if end is None else max(0.0, end - time.monotonic())
            found = [fd for fd, _ in self.poller.poll(None if left is None else left * 1000)]
            if not found and end is not None and time.monotonic() >= end:
                raise queue.Empty
            # Data first: a worker may have ended after it sent its last result.
            self.ready.extend(sorted(found, key=self._is_sentinel))

    def _is_sentinel(self, fd: int) -> bool:
        return fd in self.by_fd and not self.by_fd[fd][0]

    def _take(self, fd: int) -> tuple[int, Any] | None:
        is_end, worker_id = self.by_fd[fd]
        if not is_end:
            if self.ends[worker_id].fileno() in self.by_fd and self.ends[worker_id].ready(0):
                return None  # something is left to be read; asked again afterwards
            self._forget(fd)
            expected = self.ask()
            if expected is not None and expected(worker_id):
                del expected
                self.workers[worker_id].join(1)
                raise WorkerGone(worker_id)
            return None
        try:
            about, data, descriptors = self.ends[worker_id].receive()
        except messages.Ended:
            self._forget(fd)
            return None
        try:
            got = messages.loads(data, descriptors, self.ends[worker_id].table)
            if about == messages.FORGET:
                self.ends[worker_id].table.forget(got)
                return None
            return about, got
        except Exception:
            return about, ExceptionWrapper(where=f"when unpickling what DataLoader worker process {worker_id} sent")

    def close(self) -> None:
        """Let go of everything that is watched; the sockets are closed by who owns them."""
        for fd in list(self.by_fd):
            self._forget(fd)
