"""Rows of tables that nobody loads before a network wants them.

Invariant: what a function of this package passes on from its caller reaches the row in the schema's types, or is
refused in the row's name.
"""

from __future__ import annotations

import sys
from typing import Any

from ..._api import lazy_tables, public
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


def function(name: str) -> Any:
    """The public function of a row that is none of `torch`."""
    registry.find(name)
    return public.build(name, registry.overloads(name))


def here(name: str) -> Any:
    """A function of this package that is made when first asked for."""
    return getattr(sys.modules[__package__], name)


def eager(name: str) -> Checked:
    """A row of a table that is always there."""
    found = _FOUND.get(name)
    if found is None:
        found = _FOUND[name] = Checked(registry.get(name))
    return found
