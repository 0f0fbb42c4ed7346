"""What is applied to modules that exist, loss scaling over ranks, and helpers of programs: as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import subject as torch
from . import _sharded
from ._ranks import Ranks


@pytest.fixture(scope="module")
def both(oracle: Any) -> Iterator[tuple[Ranks, Ranks]]:
    mine, theirs = Ranks("mindtorch_v2", 2), Ranks("torch", 2)
    yield mine, theirs
    mine.close()
    theirs.close()


def near(found: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)) and not isinstance(want, str):
        assert len(found) == len(want), (found, want)
        for mine, other in zip(found, want):
            near(mine, other)
    elif isinstance(want, float):
        assert found == pytest.approx(want, rel=1e-5, abs=1e-6)
    else:
        assert found == want


@pytest.mark.parametrize("name", ["replicas", "again", "contracts", "scaled", "gathered", "staged"])
def test_as_pytorchs(both: tuple[Ranks, Ranks], name: str) -> None:
    mine, theirs = (each.values(f"_composed.{name}") for each in both)
    near(mine, theirs)


def test_replicas_of_split_layers() -> None:
    four = Ranks("mindtorch_v2", 4)
    try:
        for found in four.values("_composed.layers_below_replicas"):
            assert found == pytest.approx(_sharded.alone(torch)[0], rel=1e-4)
    finally:
        four.close()
