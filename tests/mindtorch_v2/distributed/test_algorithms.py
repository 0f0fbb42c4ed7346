"""DDP's rarer sides, and what is built around it, as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .. import _oracle
from .._subject import SUBJECT_NAME, mindtorch_only
from ._ranks import Ranks


@pytest.fixture(scope="module")
def ours() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def theirs() -> Iterator[Ranks]:
    _oracle.load()
    made = Ranks("torch", 2)
    yield made
    made.close()


def near(found: Any, want: Any) -> None:
    """The same, but for the last bits of numbers."""
    if isinstance(want, (list, tuple)):
        assert len(found) == len(want), (found, want)
        for mine, other in zip(found, want):
            near(mine, other)
    elif isinstance(want, float):
        assert found == pytest.approx(want, rel=1e-5, abs=1e-6)
    else:
        assert found == want


@pytest.mark.parametrize(
    "name",
    [
        *("sparse_sum", "sparse_gradients", "used_inside_no_sync", "told", "local_steps", "averaged_by_levels"),
        *("steps_inside_backward", "by_the_store", "in_a_profile"),
    ],
)
def test_as_pytorchs(ours: Ranks, theirs: Ranks, name: str) -> None:
    near(ours.values(f"_algorithms.{name}"), theirs.values(f"_algorithms.{name}"))


@mindtorch_only
@pytest.mark.parametrize("name", ["quantization_pertensor_hook", "quantization_perchannel_hook"])
def test_gradients_as_bytes(ours: Ranks, name: str) -> None:
    first, second = ours.values("_algorithms.quantized", name)
    assert first == second  # the same bits
    assert 0 < first[0] < 1 / 255
