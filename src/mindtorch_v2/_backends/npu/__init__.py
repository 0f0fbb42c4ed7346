"""Ascend NPUs. This build has no NPU backend yet: nothing is registered, and every question says so without raising."""
from __future__ import annotations


def is_available() -> bool:
    """Whether an NPU can be used."""
    return False


def aclnn_available() -> bool:
    return False


def aclnn_symbols_ok() -> bool:
    return False
