"""Anomaly detection: the names exist; switching it on is refused until backward keeps the forward's tracebacks.

Invariant: a program that switches detection off, or leaves it off, runs as in PyTorch.
"""
from __future__ import annotations

from typing import Any

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_MISSING = (
    "{0}: anomaly detection is not implemented. To find a modified value, look for the in-place operator named in the "
    "error; to find a NaN, register hooks on the tensors in question."
)


class set_detect_anomaly:
    """`set_detect_anomaly(False)` does nothing, as a function or as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        if mode:
            raise NotImplementedError(_MISSING.format(f"set_detect_anomaly(mode={mode}, check_nan={check_nan})"))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class detect_anomaly:
    """A context manager that would switch detection on."""

    def __init__(self, check_nan: bool = True) -> None:
        raise NotImplementedError(_MISSING.format(f"detect_anomaly(check_nan={check_nan})"))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None


def is_anomaly_enabled() -> bool:
    return False
