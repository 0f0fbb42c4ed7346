"""`torch._logging._internal`: the state behind `set_logs`, as PyTorch's test tools save and restore it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

_P = ParamSpec("_P")


# Where PyTorch's compiler tells what it does; nothing is written to it here.
trace_log = logging.getLogger("torch.__trace")


class LazyString(Generic[_P]):
    """Text that is made when it is shown."""

    def __init__(self, func: Callable[_P, str], *args: _P.args, **kwargs: _P.kwargs) -> None:
        self.func = func
        self.args = args
        self.kwargs = kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


class LogState:
    """Levels of loggers by name, and the artifacts that were asked for."""

    def __init__(self) -> None:
        self.log_qname_to_level: dict[str, int] = {}
        self.artifact_names: set[str] = set()

    def clear(self) -> None:
        self.log_qname_to_level.clear()
        self.artifact_names.clear()


class LogRegistry:
    """The names of loggers that can be set."""

    def get_log_qnames(self) -> set[str]:
        """Names of loggers under `torch` that exist."""
        return {name for name in logging.root.manager.loggerDict if name == "torch" or name.startswith("torch.")}


log_registry = LogRegistry()
log_state = LogState()


def _get_log_state() -> LogState:
    return log_state


def _set_log_state(state: LogState) -> None:
    global log_state
    log_state = state


def _init_logs(log_file_name: Any = None) -> None:
    """Give loggers the levels of the state."""
    if log_file_name is not None:
        raise NotImplementedError("_init_logs(): argument 'log_file_name' is not supported")
    for name, level in log_state.log_qname_to_level.items():
        logging.getLogger(name).setLevel(level)
