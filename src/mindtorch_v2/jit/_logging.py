"""`torch.jit._logging`: counters of PyTorch's script compiler. There is no compiler, so nothing is counted."""

from __future__ import annotations

from typing import Any, NoReturn


def __getattr__(name: str) -> Any:
    if name in ("AggregationType", "LockingLogger", "NoopLogger"):
        from .._absent import classes

        return classes(__name__, name, "torch.jit._logging.{name}: programs are not scripted here")[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _refused(name: str) -> NoReturn:
    raise NotImplementedError(f"torch.jit._logging.{name}: programs are not scripted here, and nothing is counted")


def set_logger(logger: Any) -> None:
    _refused("set_logger")


def add_stat_value(name: str, value: int) -> None:
    _refused("add_stat_value")


def time_point() -> int:
    _refused("time_point")
