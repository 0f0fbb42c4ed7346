"""Split and replicated models on NPUs by HCCL: as one process trains them on the CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _sharded
from ._ranks import Ranks
from .test_fsdp import close

pytestmark = mindtorch_only


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", 2, backend="hccl")
    yield made
    made.well()
    made.close()


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", 4, backend="hccl")
    yield made
    made.well()
    made.close()


EVERY = ["plain", "kept", "columns", "accumulate", "prefetch", "by hand"]
AROUND = ["flat", "orig", "whole", "gradients", "accumulate"]
# A few of them; the environment asks for all.
ALL = bool(os.environ.get("MINDTORCH_EVERY_WAY"))


@pytest.mark.parametrize("how", EVERY if ALL else EVERY[:1])
def test_split_parameters(ranks: Ranks, how: str) -> None:
    want = _sharded.alone(torch)
    for found in ranks.values("_sharded.fully_shard", how):
        close(found, want)


def test_parts_that_live_on_the_host() -> None:
    ranks = Ranks("mindtorch_v2", 2, backend="cpu:gloo,npu:hccl")
    try:
        for found in ranks.values("_sharded.fully_shard", "host"):
            close(found, _sharded.alone(torch))
        for how in ("host", "host orig"):
            for found in ranks.values("_sharded.around", how):
                close(found, _sharded.alone(torch))
    finally:
        ranks.close()


def test_clipped_gradients_and_lower_precision(ranks: Ranks) -> None:
    for found in ranks.values("_sharded.fully_shard", "clipped"):
        close(found, _sharded.alone(torch, clip=0.5))
    for found in ranks.values("_sharded.fully_shard", "bfloat16"):
        assert found[0] == pytest.approx(_sharded.alone(torch)[0], rel=1e-2)


@pytest.mark.parametrize("how", AROUND if ALL else AROUND[:2])
def test_a_module_around_another(ranks: Ranks, how: str) -> None:
    want = _sharded.alone(torch)
    for found in ranks.values("_sharded.around", how):
        close(found, want)


def test_state_dicts(ranks: Ranks) -> None:
    for kinds, before, _, same, shape, is_one in ranks.values("_sharded.states"):
        assert kinds == ["DTensor"] and before and same and is_one and shape == ((13, 16), "Parameter")
    for told, shape, first, group in ranks.values("_sharded.around_states", "states"):
        assert told[0] == pytest.approx(told[1], rel=1e-5) and told[2] == pytest.approx(told[3], rel=1e-5)
        assert shape == (36, 16) and first == "blocks.0.down.bias" and group == "words.weight"


def test_four_devices(four: Ranks) -> None:
    """Replicas of parts; shares of the optimizer; parts of layers, split again; parts in groups."""
    want = _sharded.alone(torch)
    for name, *how in (
        ("_sharded.fully_shard", "replicas"),
        ("_sharded.in_parallel", "shares"),
        ("_sharded.both_ways",),
    ):
        for found in four.values(name, *how):
            close(found, want)
    for losses in four.values("_settings.around", "hybrid, mesh"):
        assert losses == pytest.approx(want[0], rel=1e-4)


REFUSED = {
    "dist.all_reduce(torch.ones(2, dtype=torch.float64))": "HCCL does not reduce torch.float64; it reduces int8",
    "dist.reduce_scatter_single(torch.ones(1, dtype=torch.float64), torch.ones(2, dtype=torch.float64))": (
        "HCCL does not reduce torch.float64"
    ),
    "dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.BAND)": (
        "Cannot use ReduceOp.BAND with HCCL: it reduces by SUM, PRODUCT, MAX, MIN"
    ),
    "dist.reduce(torch.ones(2, dtype=torch.int32), 0, dist.ReduceOp.BXOR)": "Cannot use ReduceOp.BXOR with HCCL",
    "dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG)": "a mean of torch.int32 is not one",
    "dist.recv(torch.ones(2))": "does not support recv from any source",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_the_vendor_has_not_is_refused_in_clear_words(ranks: Ranks, line: str) -> None:
    for kind, told in ranks.ask("refused", line):
        assert kind == "error" and REFUSED[line] in told[1], told


def test_random_programs_on_four_devices(four: Ranks) -> None:
    assert four.values("_random.programs", 400, 2) == [[]] * 4
