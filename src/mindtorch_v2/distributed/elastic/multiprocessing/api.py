"""What workers write, where it goes, and workers that are functions.

Invariant: a worker that is a function looks to its agent like one that is a command (`subprocess.Popen`).
"""

from __future__ import annotations

import enum
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from .errors import record

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "SignalException", "Std", "to_map"]

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


@dataclass
class LogsDest:
    """Where each worker of one attempt writes: a file, or with no name the console; `tee` names files whose lines go to
    the console as well."""

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = field(default_factory=str)
    filtered_stderr: str = field(default_factory=str)


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
        self._local_ranks_filter = local_ranks_filter

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Where the workers with these environments write; each is told its error file."""
        raise NotImplementedError(f"{type(self).__name__}.reify")

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
            pass
        elif not log_dir:
            log_dir = tempfile.mkdtemp(prefix="torchelastic_")
        elif os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        else:
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None

    def __repr__(self) -> str:
        return (
            f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects}, tee={self._tee}, "
            f"local_ranks_filter={self._local_ranks_filter})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DefaultLogsSpecs):
            return False
        names = ("_root_log_dir", "_redirects", "_tee", "_local_ranks_filter")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def _attempt_folder(self, environment: dict[str, str]) -> str:
        if self._run_log_dir is None:
            job = environment.get("TORCHELASTIC_RUN_ID", "test_run_id").replace(os.sep, "_")
            os.makedirs(self.root_log_dir, exist_ok=True)
            self._run_log_dir = tempfile.mkdtemp(prefix=f"{job}_", dir=self.root_log_dir)
        folder = os.path.join(self._run_log_dir, f"attempt_{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        return folder

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """`<log_dir>/<run_id>_*/attempt_<n>/<rank>/` with stdout.log, stderr.log and error.json."""
        count = len(envs)
        nowhere = dict.fromkeys(range(count), os.devnull)
        if self._root_log_dir == os.devnull:
            for each in envs.values():
                each["TORCHELASTIC_ERROR_FILE"] = ""
            console = dict.fromkeys(range(count), "")
            return LogsDest(console, dict(console), {}, {}, nowhere, os.devnull, os.devnull)
        folder = self._attempt_folder(envs[0] if envs else {})
        redirects, tees = to_map(self._redirects, count), to_map(self._tee, count)
        made = LogsDest(
            filtered_stdout=os.path.join(folder, "filtered_stdout.log"),
            filtered_stderr=os.path.join(folder, "filtered_stderr.log"),
        )
        for local in range(count):
            own = os.path.join(folder, str(local))
            os.mkdir(own)
            hidden = bool(self._local_ranks_filter) and local not in (self._local_ranks_filter or ())
            for bit, name, plain, tee in (
                (Std.OUT, "stdout.log", made.stdouts, made.tee_stdouts),
                (Std.ERR, "stderr.log", made.stderrs, made.tee_stderrs),
            ):
                path = os.path.join(own, name)
                kept = bool((redirects[local] | tees[local]) & bit)
                plain[local] = path if kept else os.devnull if hidden else ""
                if tees[local] & bit and not hidden:
                    tee[local] = path
            made.error_files[local] = envs[local]["TORCHELASTIC_ERROR_FILE"] = os.path.join(own, "error.json")
        return made


class _Stream:
    """A stream of a worker, which it inherits however it is started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _inherited, (reduction.DupFd(self.number) if self.number >= 0 else None,)


def _inherited(given: Any) -> _Stream:
    return _Stream(-1 if given is None else given.detach())


def _serve(
    function: Callable[..., Any], args: tuple[Any, ...], environment: dict[str, str], streams: list[_Stream], back: Any
) -> None:
    """In the worker: its streams, its environment, its function, and what that returned."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    for place, given in enumerate(streams, 1):
        if given.number >= 0:
            os.dup2(given.number, place)
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
        numbers: list[_Stream] = []
        ours: list[int] = []
        for place, stream in enumerate(streams):
            if stream == subprocess.PIPE:
                reading, writing = os.pipe()
                kept[place] = os.fdopen(reading)
                ours.append(writing)
                numbers.append(_Stream(writing))
            else:
                numbers.append(_Stream(-1 if stream is None else stream.fileno()))
        self.stdout, self.stderr = kept
        self._back: Connection
        self._back, back = context.Pipe(duplex=False)
        arguments = (function, args, environment, numbers, back)
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
