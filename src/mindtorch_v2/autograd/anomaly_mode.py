"""Anomaly detection: an error in backward is shown with the forward call behind it, and NaN is an error.

Invariant: as in PyTorch the switch is one for all threads, and leaving a block restores what was set before it.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._autograd.node import WATCH

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Inside the block nodes remember where they were made; backward reports it when a node fails, and fails itself
    when a node returns NaN (unless `check_nan` is off)."""

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switch detection on or off, as a function or for a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = WATCH.anomaly
        self.prev_check_nan = WATCH.check_nan
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    asked: tuple[Any, Any] = (mode, check_nan)
    if type(asked[0]) is not bool or type(asked[1]) is not bool:
        place, name, given = (1, "enabled", mode) if type(asked[0]) is not bool else (2, "check_nan", check_nan)
        raise TypeError(
            f"set_anomaly_enabled(): argument '{name}' (position {place}) must be bool, not {type(given).__name__}"
        )
    WATCH.anomaly = mode
    WATCH.check_nan = check_nan
    WATCH.on = WATCH.anomaly or WATCH.hooks > 0


def is_anomaly_enabled() -> bool:
    return WATCH.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    return WATCH.check_nan
