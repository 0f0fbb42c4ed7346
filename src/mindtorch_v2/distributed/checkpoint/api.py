"""What is raised when ranks could not save or load."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Says which ranks failed, and why."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """What each failed rank raised, with its trace."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n{trace}"
            text += "".join(traceback.format_exception_only(type(error), error))
        return text


def wrapped(error: BaseException) -> tuple[BaseException, str]:
    """What a rank tells the others of what it raised."""
    return error, "".join(traceback.format_tb(error.__traceback__))
