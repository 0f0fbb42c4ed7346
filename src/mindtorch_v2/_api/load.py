"""Loads every table that is not lazy; the order only matters where a row uses another while it is declared."""

from __future__ import annotations

from importlib import import_module

from .._ops import table

FAMILIES = ("pointwise", "view", "shape", "create", "copy", "reduce", "matmul", "index", "random")


def load_tables() -> None:
    for family in FAMILIES:
        table.LOADING[0] = family
        import_module(f"{table.__package__}.{family}")
