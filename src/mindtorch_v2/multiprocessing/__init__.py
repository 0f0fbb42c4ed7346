"""`torch.multiprocessing`: Python's multiprocessing, with tensors that travel between processes as shared memory.

Invariant: a process that imports this sends storages of the CPU as memory that both sides see, never as a copy.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing import *  # noqa: F403
from multiprocessing import reducer as reducer

from . import _atfork as _atfork
from .reductions import init_reductions as init_reductions
from .spawn import ENV_VAR_PARALLEL_START as ENV_VAR_PARALLEL_START
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import _prctl_pr_set_pdeathsig as _prctl_pr_set_pdeathsig
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies"]
__all__ += multiprocessing.__all__

if sys.platform == "linux":
    _sharing_strategy = "file_descriptor"
    _all_sharing_strategies = {"file_descriptor", "file_system"}
else:
    _sharing_strategy = "file_system"
    _all_sharing_strategies = {"file_system"}


def set_sharing_strategy(new_strategy: str) -> None:
    """How this process shares storages from now on."""
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_all_sharing_strategies}")
    if new_strategy == "file_system":
        from multiprocessing import resource_tracker

        # Before any child is made: all processes then tell the same tracker about names.
        resource_tracker.ensure_running()
    _sharing_strategy = new_strategy


def get_sharing_strategy() -> str:
    """The strategy of this process."""
    return _sharing_strategy


def get_all_sharing_strategies() -> set[str]:
    """The strategies that this system has."""
    return _all_sharing_strategies


def _set_thread_name(name: str) -> None:
    """Name this thread, for `top` and debuggers; the system keeps 15 bytes."""
    if sys.platform == "linux":
        with open("/proc/thread-self/comm", "w") as file:
            file.write(name[:15])


def _get_thread_name() -> str:
    if sys.platform != "linux":
        return ""
    with open("/proc/thread-self/comm") as file:
        return file.read().rstrip("\n")


init_reductions()
