"""Forward-mode derivatives of every operator, and of its gradients, against PyTorch's.

Invariant: every operator that PyTorch differentiates in forward mode is asked, with a few samples in float64 and one in
the other dtypes; MINDTORCH_FORWARD_AD=all asks with all samples.
"""

from __future__ import annotations

import os

import pytest

from . import _infos, _tangents

pytestmark = pytest.mark.oracle

ALL = os.environ.get("MINDTORCH_FORWARD_AD") == "all"
COUNTS = {"float64": 2, "complex128": 1, "float32": 1}


@pytest.mark.parametrize("case", _tangents.covered(), ids=lambda case: case.label)
def test_tangents(case: _infos.Covered) -> None:
    different = []
    for dtype in _tangents.DTYPES:
        if _infos.supported(case.info, dtype):
            count = _infos.LOOK_AHEAD if ALL else COUNTS[dtype]
            different += [verdict for verdict in _tangents.verdicts(case, dtype, count) if verdict]
    if case.label in _tangents.OTHERS:
        assert different or not ALL, "listed as different, but the same as PyTorch's"
    else:
        assert different == []


@pytest.mark.parametrize("case", _tangents.twice(), ids=lambda case: case.label)
def test_tangents_of_gradients(case: _infos.Covered) -> None:
    if case.label in _tangents.OTHERS_TWICE or not _infos.supported(case.info, "float64"):
        return
    count = _infos.LOOK_AHEAD if ALL else 1
    assert [verdict for verdict in _tangents.verdicts_over_reverse(case, "float64", count) if verdict] == []
