"""`torch.profiler.itt`: ranges for Intel's VTune. The library is not here, and whoever asks is told so."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]


def _refuse() -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def is_available() -> bool:
    return False


def range_push(msg: str) -> NoReturn:
    _refuse()


def range_pop() -> NoReturn:
    _refuse()


def mark(msg: str) -> NoReturn:
    _refuse()


def range(msg: str, *args: object, **kwargs: object) -> NoReturn:
    _refuse()
