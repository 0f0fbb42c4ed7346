"""Workers that end although nobody asked them to.

Loaders watch their workers where they wait for them (`results`), so no signal handler is needed; one that raises at
any point of the program can be had with `_set_SIGCHLD_handler`, as PyTorch sets it.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

_SIGCHLD_handler_set = False
_worker_pids: dict[int, tuple[int, ...]] = {}


def _set_worker_pids(key: int, pids: tuple[int, ...]) -> None:
    """Note the workers of a loader."""
    if key in _worker_pids:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    if not isinstance(pids, tuple):
        raise TypeError(f"_set_worker_pids expects a tuple for child_pids, but got {type(pids).__name__}.")
    _worker_pids[key] = pids


def _remove_worker_pids(key: int) -> None:
    """Forget them: they may end."""
    if key not in _worker_pids:
        raise ValueError(f"Cannot find worker information for _BaseDataLoaderIter with id {key}")
    del _worker_pids[key]


def _error_if_any_worker_fails() -> None:
    """Raise if a worker was killed or exited with an error; it can be waited for afterwards."""
    for pids in list(_worker_pids.values()):
        for pid in pids:
            try:
                found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if found is not None:
                killed = found.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
                error = failure(pid, -found.si_status if killed else found.si_status)
                if error is not None:
                    raise error


def failure(pid: int, exitcode: int | None) -> RuntimeError | None:
    """What to say of a worker by how it ended; None if it ended well."""
    if not exitcode:
        return None
    if exitcode > 0:
        return RuntimeError(
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {exitcode}. Details are lost due to "
            "multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )
    text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-exitcode)}. "
    if -exitcode == signal.SIGBUS:
        text += (
            "It is possible that dataloader's workers are out of shared memory. Please try to raise your shared "
            "memory limit."
        )
    return RuntimeError(text)


def _set_worker_signal_handlers() -> None:
    """In a worker: a handler that the main program set for being ended is not the worker's."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _set_SIGCHLD_handler() -> None:
    """Raise in the main thread as soon as a worker fails; a handler that was set before is called as well."""
    global _SIGCHLD_handler_set
    if _SIGCHLD_handler_set or threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGCHLD)

    def handler(signum: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(before):
            before(signum, frame)

    signal.signal(signal.SIGCHLD, handler)
    _SIGCHLD_handler_set = True
