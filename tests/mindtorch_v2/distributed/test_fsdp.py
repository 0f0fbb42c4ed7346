"""Models whose parameters are split over ranks: as one process trains them, and as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import SUBJECT_NAME, mindtorch_only
from .._subject import subject as torch
from . import _settings, _sharded
from ._ranks import Ranks


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 2, seconds=10.0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def theirs(oracle: Any) -> Iterator[Ranks]:
    made = Ranks("torch", 2)
    yield made
    made.close()


def close(found: Any, want: Any, tolerance: float = 1e-4) -> None:
    losses, parameters = found[:2]
    assert losses == pytest.approx(want[0], rel=tolerance)
    assert len(parameters) == len(want[1])
    for mine, other in zip(parameters, want[1]):
        assert mine == pytest.approx(other, rel=tolerance * 10, abs=tolerance * 10)


HOW = ["plain", "kept", "columns", "accumulate", "prefetch", "by hand"]


@pytest.mark.parametrize("how", HOW)
def test_training_is_that_of_one_process(ranks: Ranks, how: str) -> None:
    want = _sharded.alone(torch)
    for found in ranks.values("_sharded.fully_shard", how):
        close(found, want)


def test_clipped_gradients(ranks: Ranks) -> None:
    want = _sharded.alone(torch, clip=0.5)
    for found in ranks.values("_sharded.fully_shard", "clipped"):
        close(found, want)
        assert found[2][-1] == "True"


def test_lower_precision_is_near(ranks: Ranks) -> None:
    for found in ranks.values("_sharded.fully_shard", "bfloat16"):
        assert found[0] == pytest.approx(_sharded.alone(torch)[0], rel=1e-2)
        assert found[0] != _sharded.alone(torch)[0]


@pytest.mark.parametrize("how", ["plain", "replicas"])
def test_training_on_four(four: Ranks, how: str) -> None:
    want = _sharded.alone(torch)
    for found in four.values("_sharded.fully_shard", how):
        close(found, want)


@pytest.mark.parametrize("how", ["replicas", "shares", "layers"])
def test_other_ways_to_train_it(ranks: Ranks, four: Ranks, how: str) -> None:
    want = _sharded.alone(torch)
    for found in (*ranks.values("_sharded.in_parallel", how), *four.values("_sharded.in_parallel", how)):
        close(found, want)


def test_tensor_parallel_layers_that_are_split_again(four: Ranks) -> None:
    want = _sharded.alone(torch)
    for found in four.values("_sharded.both_ways"):
        close(found, want)


def test_state_dicts(ranks: Ranks) -> None:
    model = _sharded.gpt(torch)
    want = torch.nn.functional.linear(torch.ones(2, 16), model.head.weight)
    for kinds, before, out, same, shape, is_one in ranks.values("_sharded.states"):
        assert kinds == ["DTensor"] and before and same and is_one
        assert torch.tensor(out).sub(want).abs().max() < 1e-5
        assert shape == ((13, 16), "Parameter")


@pytest.mark.parametrize("how", ["plain", "kept", "clipped"])
def test_as_pytorchs(ranks: Ranks, theirs: Ranks, how: str) -> None:
    for mine, other in zip(ranks.values("_sharded.fully_shard", how), theirs.values("_sharded.fully_shard", how)):
        close(mine, other)
        assert mine[2] == other[2]


@pytest.mark.parametrize("how", ["flat", "orig", "whole", "gradients", "accumulate"])
def test_a_module_around_another(ranks: Ranks, how: str) -> None:
    want = _sharded.alone(torch)
    for found in ranks.values("_sharded.around", how):
        close(found, want)
        assert found[2] == (True, 3 if how != "orig" else len(want[1]), len(want[1]))


def test_its_clipped_gradients_and_lower_precision(ranks: Ranks) -> None:
    for found in ranks.values("_sharded.around", "clipped"):
        close(found, _sharded.alone(torch, clip=0.5))
    for found in ranks.values("_sharded.around", "bfloat16"):
        assert found[0] == pytest.approx(_sharded.alone(torch)[0], rel=2e-2)


@pytest.mark.parametrize("how", ["states", "states orig"])
def test_its_state_dicts(ranks: Ranks, how: str) -> None:
    for told, shape, first, group in ranks.values("_sharded.around_states", how):
        assert told[0] == pytest.approx(told[1], rel=1e-5) and told[2] == pytest.approx(told[3], rel=1e-5)
        assert shape == (36, 16) and first == "blocks.0.down.bias" and group == "words.weight"


def test_a_module_around_another_as_pytorchs(ranks: Ranks, theirs: Ranks) -> None:
    for mine, other in zip(ranks.values("_sharded.around", "orig"), theirs.values("_sharded.around", "orig")):
        close(mine, other)
        assert mine[2] == other[2]


# -- settings, one by one ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["hybrid, mesh", "hybrid, pair", "hybrid, kept", "nodes"])
def test_parts_in_groups_and_replicas_between_them(four: Ranks, how: str) -> None:
    for found in four.values("_settings.around", how):
        assert found == pytest.approx(_sharded.alone(torch)[0], rel=1e-4)


@pytest.mark.parametrize("how", ["synced", "meta", "frozen", "hints", "optimizer before", "hook", "hook, whole"])
def test_a_setting_of_the_module_around_another(ranks: Ranks, how: str) -> None:
    want = _settings.frozen_alone(torch) if how == "frozen" else _sharded.alone(torch)[0]
    for found in ranks.values("_settings.around", how):
        assert found == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("how", ["kept", "frozen", "hook", "named dimensions"])
def test_a_setting_of_split_modules(ranks: Ranks, how: str) -> None:
    want = _settings.frozen_alone(torch) if how == "frozen" else _sharded.alone(torch)[0]
    for found in ranks.values("_settings.fully", how):
        assert found == pytest.approx(want, rel=1e-4)


def test_gradients_that_travel_as_halves(ranks: Ranks) -> None:
    want = _sharded.alone(torch)[0]
    for found in ranks.values("_settings.around", "hook, low"):
        assert found == pytest.approx(want, rel=1e-2) and found != want


@pytest.mark.parametrize("how", ["fewer ranks", "several names"])
def test_a_setting_of_split_modules_on_four(four: Ranks, how: str) -> None:
    for found in four.values("_settings.fully", how):
        assert found == pytest.approx(_sharded.alone(torch)[0], rel=1e-4)


@pytest.mark.parametrize("how", ["own collectives", "another group", "sums", "inside backward"])
def test_collectives_of_ones_own_and_steps_inside_backward(ranks: Ranks, how: str) -> None:
    # Per step: the root's parameters are gathered once, those of two blocks twice; three units are reduced.
    asked = {"own collectives": 3 * (5 + 3), "sums": 3 * 3}.get(how, 0)
    for found, times in ranks.values("_settings.in_other_ways", how):
        assert found == pytest.approx(_sharded.alone(torch)[0], rel=1e-4) and times == asked


SETTINGS = ["partial", "gradients_shown", "full_precision_below", "low_gradients", "wrong"]


@pytest.mark.parametrize("what", SETTINGS)
def test_what_a_setting_does_as_pytorchs(ranks: Ranks, theirs: Ranks, what: str) -> None:
    for mine, other in zip(ranks.values(f"_settings.{what}"), theirs.values(f"_settings.{what}")):
        for found, want in zip(mine, other, strict=True):
            assert found == want


@mindtorch_only
def test_whole_parameters_on_the_first_rank_and_buffers_in_halves(ranks: Ranks) -> None:
    first, second = ranks.values("_settings.shown")
    assert first == ([(6, 4), (6,), (6,), (6,)], ["torch.float16"])
    assert second[0] != first[0] and second[1] == first[1]


@mindtorch_only
def test_settings_that_are_not_served_are_named(ranks: Ranks) -> None:
    for found in ranks.values("_settings.refused"):
        assert all(name in text and not text.startswith("nothing") for name, text in found.items()), found
