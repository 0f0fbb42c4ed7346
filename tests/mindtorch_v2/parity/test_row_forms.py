"""The forms of every row agree with each other, on the arguments that PyTorch's samples led to it.

What `_claims.py` saw is called again: in place, with out=, under `functionalize`, and on meta. Rows that users cannot
call by name, such as derivatives, are held to the same. Invariant: no row escapes; one that nothing here calls fails
the last test, or has its reason in `_own.py`.
"""

from __future__ import annotations

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, mindtorch_only, submodule
from . import _claims, _infos, _own
from ._forms import Forms

pytestmark = [pytest.mark.oracle, mindtorch_only]


def rows() -> list[str]:
    """Full names of all rows, in-place and out= forms included."""
    if IS_ORACLE or not _oracle.available():
        return []
    _infos.row_names()
    found = [op for op in submodule("_dispatch.registry").ops() if op.row is not None]
    return sorted(op.name for op in found if op.title() not in _own.SKIPPED_INFOS)


FORMS = Forms(_claims.CPU)


@pytest.mark.parametrize("name", rows())
def test_forms_agree(name: str) -> None:
    assert FORMS.check(name) == ""


def test_every_row_was_called() -> None:
    for name in rows():
        FORMS.check(name)
    found = [op for op in submodule("_dispatch.registry").ops() if op.row is not None]
    idle = {op.name for op in found if not op.ready and op.row.family not in _own.INNER_TABLES}
    # Those called elsewhere have been, if that ran before.
    assert sorted(idle - {*_own.CALLED_ELSEWHERE}) == sorted(_own.NEVER_CALLED)
