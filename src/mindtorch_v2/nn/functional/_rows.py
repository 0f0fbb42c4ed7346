"""Rows of tables that nobody loads before a network wants them.

Invariant: what a function of this package passes on from its caller reaches the row in the schema's types, or is
refused in the row's name.
"""

from __future__ import annotations

from ..._api import lazy_tables
from ..._dispatch import registry
from ..._dispatch.binding import Checked

_FOUND: dict[str, Checked] = {}


def row(table: str, name: str) -> Checked:
    """A row by its table and name."""
    found = _FOUND.get(name)
    if found is None:
        lazy_tables.load(table)
        found = _FOUND[name] = Checked(registry.get(name))
    return found


def eager(name: str) -> Checked:
    """A row of a table that is always there."""
    found = _FOUND.get(name)
    if found is None:
        found = _FOUND[name] = Checked(registry.get(name))
    return found
