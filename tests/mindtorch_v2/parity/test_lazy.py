"""Every operator with conjugate and negative views for arguments, against PyTorch.

Invariant: every operator of PyTorch's table is called with such views at least once for each dtype it has;
MINDTORCH_LAZY=all calls it with all samples.
"""

from __future__ import annotations

import os

import pytest

from . import _infos, _lazy

pytestmark = pytest.mark.oracle

ALL = os.environ.get("MINDTORCH_LAZY") == "all"


@pytest.mark.parametrize("case", _infos.covered(), ids=lambda case: case.label)
def test_lazy_arguments(case: _infos.Covered) -> None:
    different: list[str] = []
    for kind, dtype in _lazy.KINDS:
        if _infos.supported(case.info, dtype):
            different += _lazy.verdicts(case, kind, dtype, _infos.LOOK_AHEAD if ALL else 1)
    if case.label in _lazy.OTHERS:
        assert different or not ALL, "listed as different, but the same as PyTorch's"
    else:
        assert different == []
