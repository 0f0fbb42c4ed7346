"""No row escapes: each is covered by PyTorch's samples, by our own, or by a written reason.

Invariant: the tables in `_own.py` name rows that exist.
"""

from __future__ import annotations

import pytest

from .._subject import IS_ORACLE
from . import _infos, _own


@pytest.mark.oracle
def test_every_row_is_covered() -> None:
    missing = [
        row
        for row in _infos.row_names()
        if not (row in _own.SAMPLES or row in _own.REASONS or _own.internal(row) or _infos.has_info(row))
        and not _own.of_inner_tables(row)
    ]
    assert missing == []


def test_the_tables_name_existing_rows() -> None:
    if IS_ORACLE:
        return
    rows = {*_infos.row_names(), *_own.FUNCTIONS, *_own.WRITTEN_BY_HAND}
    tables = {"REASONS": _own.REASONS, "INFO_NAMES": _own.INFO_NAMES}
    stale = {name: sorted(set(table) - rows) for name, table in tables.items() if set(table) - rows}
    assert stale == {}


@pytest.mark.oracle
def test_about_120_rows_exist() -> None:
    assert len(_infos.row_names()) >= 120
    assert len(_infos.covered()) >= 100
