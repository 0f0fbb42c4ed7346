"""`CommDebugMode` counts what PyTorch's counts, in all and by module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ._ranks import Ranks


@pytest.fixture(scope="module")
def both(oracle: Any) -> Iterator[tuple[Ranks, Ranks]]:
    mine, theirs = Ranks("mindtorch_v2", 2), Ranks("torch", 2)
    yield mine, theirs
    mine.close()
    theirs.close()


@pytest.mark.parametrize("program", ["groups", "functional", "layers", "parts", "replicas"])
def test_collectives_are_counted(both: tuple[Ranks, Ranks], program: str) -> None:
    asked = (program,) if program in ("groups", "functional") else ("trained", program)
    found, want = (each.values(f"_observed.{asked[0]}", *asked[1:]) for each in both)
    assert want[0][0][2] > 0
    assert found == want
