"""What `out=` may be, for every row that has it; `_targets.py` says what is compared.

Invariant: a kind of target that PyTorch treats otherwise is listed in `_own.py` with the reason.
"""

from __future__ import annotations

import pytest

from . import _infos
from ._targets import INPUTS, TARGETS, cases, check_input, check_target

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_target(case: _infos.Covered, target: str) -> None:
    check_target(case, target)


@pytest.mark.parametrize("which", INPUTS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_the_target_is_an_input(case: _infos.Covered, which: str) -> None:
    check_input(case, which)
