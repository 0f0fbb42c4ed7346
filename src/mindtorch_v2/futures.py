"""`torch.futures`: a value that another thread will set, and functions to call then.

Invariant: a future is completed once; callbacks run in the thread that completes it, or at once if it is completed.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from ._device import device as _device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")
_LOG = logging.getLogger(__name__)


def _failure(error: BaseException) -> str:
    """What is said of a callback that raised."""
    places = [f"  {f.filename}({f.lineno}): {f.name}" for f in reversed(traceback.extract_tb(error.__traceback__))]
    lines = "\n".join(places)
    return f"Got the following error when running the callback: {type(error).__name__}: {error}\n\nAt:\n{lines}\n"


class Future(Generic[T]):
    """A value that is set later."""

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        """`devices`: accelerators on which tensors of the value may lie."""
        if devices is not None and (
            not isinstance(devices, (list, tuple)) or any(isinstance(given, int) for given in devices)
        ):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. Future(devices: Sequence[device])"
            )
        for given in devices or ():
            where = _device(given)
            if where.index is None:
                raise ValueError(f"Expected devices to have indices, got {where}")
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._done

    def wait(self) -> T:
        """The value, as soon as there is one; the exception that was set is raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self._take()

    def value(self) -> T:
        """The value of a completed future."""
        if not self._done:
            raise RuntimeError("the value of a future that is not completed was asked for; wait() waits for it")
        return self._take()

    def _take(self) -> T:
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` gives once this one is completed."""
        if not callable(callback):
            raise TypeError(f"then(): a callback must be callable, got {type(callback).__name__}")
        child: Future[S] = Future()

        def run(parent: Future[T]) -> None:
            try:
                result = callback(parent)
            except Exception as error:
                child._complete(None, RuntimeError(_failure(error)))
            else:
                child.set_result(result)

        self._when_done(run)
        return child

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` once this future is completed; what it raises is logged."""
        if not callable(callback):
            raise TypeError(f"add_done_callback(): a callback must be callable, got {type(callback).__name__}")

        def run(parent: Future[T]) -> None:
            try:
                callback(parent)
            except Exception as error:
                _LOG.error("%s", _failure(error))

        self._when_done(run)

    def _when_done(self, run: Callable[[Future[T]], None]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)

    def set_result(self, result: T) -> None:
        """Complete this future with a value."""
        self._complete(result, None)

    def set_exception(self, result: Any) -> None:
        """Complete this future with an exception, which whoever waits for it gets."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. "
                    "Note that a Future can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for run in callbacks:
            run(self)

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of these futures, completed when the last of them is; with the first error among them, if any."""
    given = list(futures)
    if any(future is None for future in given):
        raise RuntimeError("Future can't be None")
    whole: Future[list[Future[Any]]] = Future()
    lock = threading.Lock()
    missing = [len(given)]

    def arrived(_: Future[Any]) -> None:
        with lock:
            missing[0] -= 1
            last = missing[0] == 0
        if last:
            failed = next((f._error for f in given if f._error is not None), None)
            whole._complete(given, failed)

    if not given:
        whole.set_result(given)
    for future in given:
        future._when_done(arrived)
    return whole


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The values of these futures, once all are completed."""
    return [future.wait() for future in collect_all(futures).wait()]
