"""Datapipes: datasets that are built by chaining small steps."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

_SUBMODULES = ("_decorator", "_hook_iterator", "_typing", "dataframe", "datapipe", "iter", "map", "utils")


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _import_module("." + name, __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
