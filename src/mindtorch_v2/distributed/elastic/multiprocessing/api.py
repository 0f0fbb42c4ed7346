"""What workers write, where it goes, and workers that are functions.

Invariant: a worker that is a function looks to its agent like one that is a command (`subprocess.Popen`).
"""

from __future__ import annotations

import enum
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from .errors import record

__all__ = ["DefaultLogsSpecs", "LogsSpecs", "SignalException", "Std", "to_map"]

_VALUE_REGEX = r"^[0123]$"
_MAPPING_REGEX = r"^(\d:[0123],)*(\d:[0123])$"


class SignalException(Exception):
    """An agent was asked to end by a signal."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class Std(enum.IntFlag):
    """Which of a worker's streams are meant."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Of `3` that for all workers, of `0:3,1:0` that for each one that is named."""
        if re.match(_VALUE_REGEX, vm):
            return Std(int(vm))
        if re.match(_MAPPING_REGEX, vm):
            return {int(place): Std(int(value)) for place, value in (each.split(":") for each in vm.split(","))}
        raise ValueError(f"{vm} does not match: <{_VALUE_REGEX}> or <{_MAPPING_REGEX}>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """The streams of each worker."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {place: val_or_map.get(place, Std.NONE) for place in range(local_world_size)}


class LogsSpecs:
    """Where what workers write goes: `redirects` to files, `tee` to files and the console."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir = log_dir
        self._redirects, self._tee = redirects, tee
        if local_ranks_filter:
            raise NotImplementedError("LogsSpecs(): argument 'local_ranks_filter' must be None")
        self._local_ranks_filter = local_ranks_filter

    @property
    def root_log_dir(self) -> str:
        """The folder that holds those of all attempts."""
        return str(self._root_log_dir)


class DefaultLogsSpecs(LogsSpecs):
    """A folder for each attempt and worker."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        if log_dir == os.devnull:
            raise NotImplementedError(f"DefaultLogsSpecs(): argument 'log_dir' must be a folder, got {log_dir}")
        if not log_dir:
            log_dir = tempfile.mkdtemp(prefix="torchelastic_")
        elif os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        else:
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)


def _serve(
    function: Callable[..., Any], args: tuple[Any, ...], environment: dict[str, str], streams: list[int], back: Any
) -> None:
    """In the worker: its streams, its environment, its function, and what that returned."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    for place, given in enumerate(streams, 1):
        if given >= 0:
            os.dup2(given, place)
    os.environ.update(environment)
    value = record(function)(*args)
    sys.stdout.flush()
    sys.stderr.flush()
    back.send_bytes(pickle.dumps(value))


class Called:
    """A worker that is a function, in a process of its own."""

    def __init__(
        self,
        start_method: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        environment: dict[str, str],
        streams: tuple[Any, Any],
    ) -> None:
        context: Any = multiprocessing.get_context(start_method)
        kept: list[Any] = [None, None]
        numbers, ours = [], []
        for place, stream in enumerate(streams):
            if stream == subprocess.PIPE:
                reading, writing = os.pipe()
                kept[place] = os.fdopen(reading)
                ours.append(writing)
                numbers.append(writing)
            else:
                numbers.append(-1 if stream is None else stream.fileno())
        self.stdout, self.stderr = kept
        self._back: Connection
        self._back, back = context.Pipe(duplex=False)
        arguments = (function, args, environment, numbers, back)
        if start_method != "fork" and any(each >= 0 for each in numbers):
            raise NotImplementedError("elastic_launch: output of functions is kept with start_method='fork' alone")
        self._process = context.Process(target=_serve, args=arguments)
        self._process.start()
        back.close()
        for each in ours:
            os.close(each)
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """How the process ended, or None. What it returned is taken first: it waits until that is read."""
        self._take()
        found: int | None = self._process.exitcode
        return found

    def _take(self) -> None:
        if not hasattr(self, "_value") and self._back.poll():
            try:
                self._value = self._back.recv_bytes()
            except EOFError:  # it ended without a value
                return

    def result(self) -> Any:
        """What the function returned."""
        self._take()
        return pickle.loads(self._value)

    def send_signal(self, number: int) -> None:
        """Signal the process."""
        os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """How the process ended."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("worker", timeout or 0.0)
        return int(self._process.exitcode)

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
