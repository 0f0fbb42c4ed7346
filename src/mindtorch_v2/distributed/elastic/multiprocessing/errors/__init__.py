"""What a worker writes down when it fails, so that whoever started it can say it.

Invariant: a worker writes to the file that TORCHELASTIC_ERROR_FILE names, as JSON in PyTorch's form; without that
variable nothing is written. The exception is raised again in any case.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

F = TypeVar("F", bound=Callable[..., Any])
_NOT_RECORDED = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


class ErrorHandler:
    """Writes down what a worker raised."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Called once before the worker's function."""

    def record_exception(self, error: BaseException) -> None:
        """Write an exception down, if anybody has asked for it."""
        path = self._get_error_file_path()
        if not path:
            return
        told = {
            "message": {
                "message": f"{type(error).__name__}: {error}",
                "extraInfo": {
                    "py_callstack": "".join(traceback.format_exception(error)),
                    "timestamp": str(int(time.time())),
                },
            }
        }
        with open(path, "w") as file:
            json.dump(told, file)


def get_error_handler() -> ErrorHandler:
    """What writes exceptions down."""
    return ErrorHandler()


def record(fn: F, error_handler: ErrorHandler | None = None) -> F:
    """A worker's function whose exception is written down before it ends the process."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if error.code not in (0, None):
                handler.record_exception(error)
            raise
        except ChildFailedError as error:
            handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    wrapped: Any = wrapper
    found: F = wrapped
    return found


@dataclass
class ProcessFailure:
    """How one worker ended."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False, default_factory=dict)
    message: Any = field(init=False, default="")
    timestamp: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.timestamp = int(time.time())
        if os.path.isfile(self.error_file):
            try:
                with open(self.error_file) as file:
                    self.error_file_data = json.load(file)
                self.message = self.error_file_data["message"]
                self.timestamp = int(self.message["extraInfo"]["timestamp"])
                return
            except (OSError, ValueError, KeyError, TypeError):
                self.message = f"the error file {self.error_file} cannot be read"
                return
        self.error_file = "<N/A>"
        name = self.signal_name()
        self.message = f"Signal {-self.exitcode} ({name}) received by PID {self.pid}" if name else _NOT_RECORDED

    def signal_name(self) -> str:
        """The signal that ended the worker, if one did."""
        if self.exitcode >= 0:
            return ""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "UNKNOWN"

    def timestamp_isoformat(self) -> str:
        """When it was."""
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """Workers have failed; the first of them is the cause."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda each: (self.failures[each].timestamp, self.failures[each].exitcode > 0))
        return rank, self.failures[rank]

    def _text(self, place: int, rank: int, failure: ProcessFailure) -> str:
        told = failure.message
        if isinstance(told, dict):
            told = told["extraInfo"].get("py_callstack", told["message"])
        lines = str(told).replace("\n", "\n    ").rstrip()
        return (
            f"[{place}]:\n  time      : {failure.timestamp_isoformat()}\n  host      : {os.uname().nodename}\n"
            f"  rank      : {rank} (local_rank: {failure.local_rank})\n  exitcode  : {failure.exitcode} (pid: "
            f"{failure.pid})\n  error_file: {failure.error_file}\n  traceback : {lines}"
        )

    def format_msg(self) -> str:
        """All failures, the first at the end."""
        first, failure = self.get_first_failure()
        others = [
            self._text(place, rank, each)
            for place, (rank, each) in enumerate((item for item in self.failures.items() if item[0] != first), 1)
        ]
        title = f"{self.name} FAILED"
        wide = "=" * 60
        parts = [wide, title, "-" * 60, "Failures:", *(others or ["  <NO_OTHER_FAILURES>"]), "-" * 60]
        parts += ["Root Cause (first observed failure):", self._text(0, first, failure), wide]
        return "\n" + "\n".join(parts)
