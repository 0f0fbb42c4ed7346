"""`torch.utils._filelock.FileLock`: a lock between processes, by a file."""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType

__all__ = ["FileLock", "Timeout"]

# How long to wait before the file is looked at again.
_PAUSE = 0.01


class Timeout(TimeoutError):
    """The lock was not free in time."""


class FileLock:
    """Holds an exclusive lock of the operating system on a file, made if it is not there.

    The same object can be entered again by its holder; `timeout` in seconds, negative to wait for ever.
    """

    def __init__(self, lock_file: str | os.PathLike[str], timeout: float = -1) -> None:
        self.lock_file = os.fspath(lock_file)
        self.timeout = timeout
        self._descriptor: int | None = None
        self._depth = 0
        self._mine = threading.RLock()

    @property
    def is_locked(self) -> bool:
        return self._descriptor is not None

    def acquire(self, timeout: float | None = None) -> FileLock:
        """Wait for the lock."""
        import fcntl

        limit = self.timeout if timeout is None else timeout
        if not self._mine.acquire(timeout=limit if limit >= 0 else -1):
            raise Timeout(self.lock_file)
        if self._depth == 0:
            end = time.monotonic() + limit
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o644)
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX if limit < 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() < end:
                        time.sleep(_PAUSE)
                        continue
                    self._give_up(descriptor)
                    raise Timeout(self.lock_file) from None
                except BaseException:
                    self._give_up(descriptor)
                    raise
            self._descriptor = descriptor
        self._depth += 1
        return self

    def _give_up(self, descriptor: int) -> None:
        os.close(descriptor)
        self._mine.release()

    def release(self, force: bool = False) -> None:
        """Leave once; the lock is free when every entry was left, or now with `force`."""
        if self._depth == 0:
            return
        for _ in range(self._depth if force else 1):
            self._depth -= 1
            if self._depth == 0 and self._descriptor is not None:
                os.close(self._descriptor)  # closing gives the lock back
                self._descriptor = None
            self._mine.release()

    def __enter__(self) -> FileLock:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
