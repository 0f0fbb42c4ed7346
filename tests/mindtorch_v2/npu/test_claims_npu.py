"""What holds for every row, on the NPU: schemas say what is written and shared, forms agree with each other and under
`functionalize`, and `out=` takes and refuses what PyTorch's does.

Invariant: the checks are those of the CPU's tests (`parity/_claims.py`, `_forms.py`, `_targets.py`), the rows those of
the registry.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import mindtorch_only
from ..parity import _claims
from ..parity._forms import Forms
from ..parity._targets import INPUTS, TARGETS, cases, check_input, check_target
from ..parity.test_row_forms import rows
from ._place import NPU

pytestmark = [pytest.mark.oracle, mindtorch_only]
LOOK = _claims.Look(NPU, (3, 1, 1), "float32")
FORMS = Forms(LOOK)


@pytest.mark.parametrize("position", range(len(_claims.CASES)), ids=[case.label for case in _claims.CASES])
def test_schemas_are_true(position: int) -> None:
    assert LOOK.at(position) == ()


@pytest.mark.parametrize("row", _claims.OWN)
def test_schemas_are_true_for_own_samples(row: str) -> None:
    assert LOOK.at_own(row) == ()


@pytest.mark.parametrize("name", rows())
def test_forms_agree(name: str) -> None:
    assert FORMS.check(name) == ""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_target(case: Any, target: str) -> None:
    check_target(case, target, NPU)


@pytest.mark.parametrize("which", INPUTS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_the_target_is_an_input(case: Any, which: str) -> None:
    check_input(case, which, NPU)
