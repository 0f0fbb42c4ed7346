"""`DistributedDataParallel`: as one process on the whole batch, and as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import SUBJECT_NAME, mindtorch_only
from .._subject import subject as torch
from . import _programs
from ._ranks import Ranks


@pytest.fixture(scope="module", params=["gloo-2", "gloo-3"] + ["hccl-2"] * (SUBJECT_NAME == "mindtorch_v2"))
def ranks(request: Any) -> Iterator[Ranks]:
    backend, size = request.param.split("-")
    made = Ranks(SUBJECT_NAME, int(size), backend=backend)
    yield made
    made.well()
    made.close()


def close(found: Any, want: Any, tolerance: float = 1e-5) -> None:
    assert len(found) == len(want)
    for mine, theirs in zip(found, want):
        assert mine == pytest.approx(theirs, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gradient_as_bucket_view": True},
        {"static_graph": True},
        {"find_unused_parameters": True},
        {"bucket_cap_mb": 0.001},
        {"bucket_cap_mb": 0.001, "gradient_as_bucket_view": True},
    ],
    ids=str,
)
def test_training_is_that_of_one_process(ranks: Ranks, settings: dict[str, Any], accumulate: bool) -> None:
    found = ranks.values("train", settings, accumulate)
    want = _programs.alone(torch, accumulate)
    for losses, parameters in found:
        assert losses[-1] < losses[0]
        assert parameters == found[0][1]  # the same bits on all ranks
        close(parameters, want)


@mindtorch_only
def test_buckets_are_sent_while_backward_runs(ranks: Ranks) -> None:
    for sent, count in ranks.values("overlap"):
        assert count >= 2 and 1 <= sent < count


@pytest.mark.parametrize("name", ["allreduce_hook", "fp16_compress_hook", "powerSGD_hook", "batched_powerSGD_hook"])
def test_hooks(ranks: Ranks, name: str) -> None:
    found = ranks.values("hooked", SUBJECT_NAME, name)
    assert all(each == found[0] for each in found)
    plain = ranks.values("hooked", SUBJECT_NAME, "allreduce_hook")[0]
    close(found[0], plain, 5e-2 if "powerSGD" in name else {"allreduce_hook": 1e-6, "fp16_compress_hook": 1e-3}[name])


def test_joined_ranks_end_with_the_last_ones_model(ranks: Ranks) -> None:
    found = ranks.values("join")
    assert all(each == found[0] for each in found)


@pytest.fixture(scope="module")
def both(oracle: Any) -> Iterator[tuple[Ranks, Ranks]]:
    mine, theirs = Ranks("mindtorch_v2", 2), Ranks("torch", 2)
    yield mine, theirs
    mine.close()
    theirs.close()


def test_as_pytorchs(both: tuple[Ranks, Ranks]) -> None:
    (mine, losses), (theirs, others) = ((each.values("train", {}, True), None) for each in both)
    del losses, others
    for (found, parameters), (want, wanted) in zip(mine, theirs):
        assert found == pytest.approx(want, rel=1e-5)
        close(parameters, wanted)
    assert [each[:6] for each in both[0].values("join")] == [each[:6] for each in both[1].values("join")]


@pytest.mark.parametrize("how", list(_programs._BUCKETS))
def test_buckets_as_pytorchs(both: tuple[Ranks, Ranks], how: str) -> None:
    for (told, seen, anew, grads), other in zip(*(each.values("buckets", how) for each in both)):
        assert told == other[0] and seen == other[1] and anew == other[2]
        assert [each is None for each in grads] == [each is None for each in other[3]]
        assert [each or 0.0 for each in grads] == pytest.approx([each or 0.0 for each in other[3]], rel=1e-4)


def test_delayed_reductions_as_pytorchs(both: tuple[Ranks, Ranks]) -> None:
    mine, theirs = (each.values("delayed") for each in both)
    assert mine == theirs


def test_unused_parameters_as_pytorchs(both: tuple[Ranks, Ranks]) -> None:
    assert both[0].values("unused", True) == both[1].values("unused", True)
    # Last: after this error a group has reductions that nobody waits for.
    mine, theirs = (each.ask("unused", False) for each in both)
    assert mine == theirs and mine[0][0] == "error"
