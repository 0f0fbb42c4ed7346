"""Tensors that lie on a mesh: as one process has them, and as PyTorch's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from .. import _oracle
from .._subject import SUBJECT_NAME, mindtorch_only
from .._subject import subject as torch
from . import _contexts, _layouts, _operators
from ._ranks import Ranks


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 4)
    yield made
    made.close()


def flat(value: Any) -> list[float]:
    return [each for part in value for each in flat(part)] if isinstance(value, (list, tuple)) else [float(value)]


def close(found: Any, want: Any, tolerance: float = 1e-5) -> None:
    assert flat(found) == pytest.approx(flat(want), rel=tolerance, abs=tolerance)


@pytest.fixture(scope="module")
def mine(ranks: Ranks) -> Any:
    found = [ranks.values("_layouts.expressions", own) for own in (False, True)]
    return [{**shared, **own} for shared, own in zip(*found)]


@pytest.fixture(scope="module")
def alone() -> Any:
    return _layouts.expressions_alone(torch)


@pytest.mark.parametrize("name", [*_layouts.EXPRESSIONS, *_layouts.OWN])
def test_an_expression_is_that_of_one_process(mine: Any, alone: Any, name: str) -> None:
    for found in mine:
        placements, shape, _, value, gradients = found[name]
        assert value is not None, found[name]
        assert len(placements) == 1 and shape == alone[name][1]
        close(value, alone[name][3])
        assert len(gradients) == len(alone[name][4])
        close(gradients, alone[name][4], 1e-4)


# Where this package lays out results in another way than PyTorch: truth values are not summed.
OTHER_WAY = {"compared"}


@pytest.fixture(scope="module")
def theirs(oracle: Any) -> Any:
    made = Ranks("torch", 2)
    found = made.ask("_layouts.expressions", False)
    made.close()
    assert found[0][0] == "value", found
    return found[0][1]


@mindtorch_only
@pytest.mark.parametrize("name", [name for name in _layouts.EXPRESSIONS if name not in OTHER_WAY])
def test_results_lie_as_pytorchs(mine: Any, theirs: Any, name: str) -> None:
    assert mine[0][name][:3] == theirs[name][:3]


def test_every_way_to_lie_becomes_every_other(four: Ranks) -> None:
    assert four.values("_layouts.moves") == [[], [], [], []]


def test_layers_are_those_of_one_process(ranks: Ranks) -> None:
    want = _layouts.layers(torch, None, 0, 1, None)
    for plan in ("plain", "words", "sequence", "inputs", "loss"):
        for losses, parameters in ranks.values("_layouts.layers", plan):
            assert losses == pytest.approx(want[0], rel=1e-4), plan
            assert losses[-1] < losses[0]
            for found, wanted in zip(parameters, want[1]):
                assert found == pytest.approx(wanted, rel=1e-3, abs=1e-4), plan


def test_layers_on_four(four: Ranks) -> None:
    want = _layouts.layers(torch, None, 0, 1, None)
    for losses, _ in four.values("_layouts.layers", "words"):
        assert losses == pytest.approx(want[0], rel=1e-4)


def test_modules(ranks: Ranks) -> None:
    torch.manual_seed(0)
    want = torch.nn.Linear(4, 6)(torch.ones(2, 4)).tolist()
    for out, same, kinds, shown in ranks.values("_layouts.whole_modules"):
        close(out, want)
        assert same and kinds[0] == kinds[1]
        assert shown == ["(Shard(dim=0),)", "(Replicate(),)"]


@mindtorch_only  # PyTorch's needs an accelerator
def test_random_numbers_are_those_of_one_process(ranks: Ranks) -> None:
    torch.manual_seed(5)
    want = [torch.rand(5, 3).tolist(), torch.randn(5, 3).tolist()]
    assert ranks.values("_layouts.drawn") == [want, want]


def test_ways_in_and_out_as_pytorchs(ranks: Ranks, oracle: Any) -> None:
    made = Ranks("torch", 2)
    for name in ("conversions", "factories", "refused"):
        assert ranks.values(f"_layouts.{name}") == made.values(f"_layouts.{name}"), name
    made.close()


def test_meshes_as_pytorchs(four: Ranks, oracle: Any) -> None:
    other = Ranks("torch", 4)
    try:
        wanted = other.values("_layouts.meshes")
    finally:
        other.close()
    for found, want in zip(four.values("_layouts.meshes"), wanted):
        for one, two in zip(found, want, strict=True):
            assert one == two


@mindtorch_only
@pytest.mark.parametrize(
    ("causal", "balanced", "groups"), [(False, True, 4), (True, True, 4), (True, False, 4), (True, True, 2)]
)
def test_attention_over_a_split_sequence(ranks: Ranks, four: Ranks, causal: bool, balanced: bool, groups: int) -> None:
    for group in (ranks, *([four] * (balanced is False))):
        for rank, (apart, places, restored) in enumerate(group.values("_contexts.attention", causal, balanced, groups)):
            assert max(apart) < 1e-5 and restored
            size = _contexts.LENGTH // (2 * group.size)
            back = (2 * group.size - 1 - rank) * size
            paired = [*range(rank * size, (rank + 1) * size), *range(back, back + size)]
            assert places == (paired if balanced else list(range(2 * rank * size, 2 * (rank + 1) * size)))


@mindtorch_only
def test_a_program_says_how_its_operator_runs_on_parts(ranks: Ranks) -> None:
    for placements, shape, seen, same in ranks.values("_contexts.told"):
        assert placements == "(Shard(dim=0),)" and shape == (2, 3) and seen == [((4, 3), 2.0)] and same


@mindtorch_only
def test_functions_that_read_values_read_all_of_them(ranks: Ranks) -> None:
    for found, refused in ranks.values("_contexts.reading"):
        assert all(found), found
        assert refused == [
            f"Operator aten.{name}.default does not have a sharding strategy registered."
            for name in ("resize_", "set_")
        ]


# Every ninth entry by two samples; the environment asks for all of them.
EVERY = bool(os.environ.get("MINDTORCH_MESH"))


@mindtorch_only
@pytest.mark.parametrize("part", range(6))
def test_operators_are_those_of_one_process(ranks: Ranks, oracle: Any, part: int) -> None:
    infos, count = _oracle.load_op_db(), 0
    for number in range(part, len(infos), 6 if EVERY else 54):
        for each in ranks.values("_operators.asked", number, 8 if EVERY else 2):
            count += len(each)
            wrong = [(what, told) for what, told in each if _operators.unexpected(infos[number].name, told)]
            assert not wrong, wrong
    assert count > 20
