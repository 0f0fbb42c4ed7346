"""`torch._logging`: PyTorch's loggers of its compiler, as far as programs set them or write to them.

Invariant: what is logged goes through Python's `logging`, under the names that PyTorch uses; nothing is collected.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

DEFAULT_LOGGING: dict[str, Any] = {}


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of one kind of output of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def set_logs(*, all: int | None = None, modules: dict[str, int] | None = None, **kwargs: Any) -> None:
    """Set levels of loggers by name: numbers are levels; an artifact's switch has nothing to turn on here."""
    if all is not None:
        logging.getLogger("torch").setLevel(all)
    for name, level in (modules or {}).items():
        logging.getLogger(name).setLevel(level)
    for name, value in kwargs.items():
        if isinstance(value, bool):
            getArtifactLogger("torch", name).setLevel(logging.DEBUG if value else logging.NOTSET)
        elif isinstance(value, int):
            logging.getLogger(f"torch._{name}").setLevel(value)
        else:
            raise ValueError(f"Unrecognized log level or artifact name: {name}={value!r}")


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """A warning that a logger writes once."""
    logger_obj.warning(*args, **kwargs)


@contextmanager
def hide_warnings(filter_fn: Callable[..., bool] = lambda *args, **kwargs: True) -> Iterator[None]:
    """Warnings that the filter accepts are not shown inside."""
    before = warnings.showwarning

    def show(*args: Any, **kwargs: Any) -> None:
        if not filter_fn(*args, **kwargs):
            before(*args, **kwargs)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


class LazyString:
    """A text that is made when it is printed."""

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def trace_structured(
    name: str,
    metadata_fn: Callable[[], Any] = dict,
    *,
    payload_fn: Callable[[], Any] = lambda: None,
    suppress_context: bool = False,
    expect_trace_id: bool = True,
    record_logging_overhead: bool = True,
    compile_id: Any = None,
) -> None:
    """PyTorch's compiler writes its trace for a tool if one listens; here none can."""


def get_structured_logging_overhead() -> float | None:
    return None
