"""`gradcheck` of every differentiable operator: numbers against reverse mode, forward mode and batches of both.

A sample of the operators runs always; MINDTORCH_GRADCHECK=all takes all of them, with more samples.
"""

from __future__ import annotations

import os

import pytest

from .._subject import mindtorch_only
from . import _checked, _infos

pytestmark = [pytest.mark.oracle, mindtorch_only]

ALL = os.environ.get("MINDTORCH_GRADCHECK") == "all"
CASES = [case for i, case in enumerate(_checked.covered()) if ALL or i % 12 == 5]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_gradients_pass_the_check(case: _infos.Covered) -> None:
    wrong: list[str] = []
    for dtype in _checked.DTYPES:
        if _infos.supported(case.info, dtype):
            wrong += [v for v in _checked.verdicts(case, dtype, 6 if ALL else 1) if v]
    assert wrong == []
