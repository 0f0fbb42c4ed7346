"""Starting several processes that run one function, and waiting for them.

Invariant: the first process that fails ends the others, and what it raised is raised here with its traceback.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
log = logging.getLogger(__name__)
__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process failed by an exception of its function."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or exited by itself."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _prctl_pr_set_pdeathsig(signum: int) -> None:
    """Let this process get a signal when its parent ends. Only Linux can."""
    if sys.platform != "linux":
        return
    import ctypes

    before = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(1, int(signum), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != before:
        os.kill(os.getpid(), signum)


def _wrap(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: str) -> None:
    _prctl_pr_set_pdeathsig(signal.SIGINT)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # ended by the parent, or together with it
    except Exception:
        import traceback

        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def _join_procs_with_timeout(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends; True when all have. One that failed ends the others and is raised."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end(grace_period)
        raise self._reason(failed)

    def _end(self, grace_period: float | None) -> None:
        """First wait for the others, if asked to, then ask them to end, then end them."""
        if grace_period is not None:
            self._join_procs_with_timeout(grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._join_procs_with_timeout(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Unable to shutdown process %s via SIGTERM , forcefully exiting via SIGKILL", process.pid)
                process.kill()
            process.join()

    def _reason(self, index: int) -> ProcessException:
        process, file = self.processes[index], self.error_files[index]
        if os.access(file, os.R_OK):
            with open(file, "rb") as stream:
                trace = pickle.load(stream)
            os.unlink(file)
            text = f"\n\n-- Process {index:d} terminated with the following error:\n{trace}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code >= 0:
            text = f"process {index:d} terminated with exit code {code:d}"
            return ProcessExitedException(text, index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(
            f"process {index:d} terminated with signal {name}", index, process.pid, code, name
        )


class SpawnContext(ProcessContext):
    """The former name."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes; the context of them, or None when they were waited for."""
    mp: Any = multiprocessing.get_context(start_method)

    def start(i: int) -> tuple[Any, str]:
        # A name that nobody has: a process that raises writes why there.
        with tempfile.NamedTemporaryFile(prefix="pytorch-errorfile-", suffix=".pickle") as file:
            name = file.name
        process = mp.Process(target=_wrap, args=(fn, i, args, name), daemon=daemon)
        process.start()
        return process, name

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
        log.info("Starting processes in parallel.")
        with ThreadPoolExecutor(max_workers=nprocs) as executor:
            started = list(executor.map(start, range(nprocs)))
    else:
        started = [start(i) for i in range(nprocs)]
    context = ProcessContext([process for process, _ in started], [name for _, name in started])
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` fresh processes; the context of them, or None when they were waited for."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
