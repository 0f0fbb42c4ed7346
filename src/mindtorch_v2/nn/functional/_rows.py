"""Rows of tables that nobody loads before a network wants them."""

from __future__ import annotations

from ..._dispatch import registry
from ..._dispatch.op import Op
from ..._ops import late


def row(table: str, name: str) -> Op:
    """A row by its table and name."""
    late.load(table)
    return registry.get(name)
