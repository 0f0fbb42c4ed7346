"""`torch._lazy.metrics`: counters of lazy execution: there are none."""

from __future__ import annotations


def reset() -> None:
    """Forget what was counted: nothing."""


def counter_names() -> list[str]:
    return []


def counter_value(name: str) -> int:
    return 0


def metrics_report() -> str:
    return ""
