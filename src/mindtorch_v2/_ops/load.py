"""Loads every table; the order only matters where a row uses another while it is declared."""
from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from .table import LOADING

FAMILIES = ("pointwise", "activation", "view", "shape", "create", "copy", "reduce", "matmul", "norm", "loss", "index",
            "random", "sort")


def load_tables() -> None:
    for family in FAMILIES:
        if find_spec(f"{__package__}.{family}") is not None:
            LOADING[0] = family
            import_module(f"{__package__}.{family}")
