"""Stages of a pipeline: the gradients of one process, whatever the schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import SUBJECT_NAME, mindtorch_only
from .._subject import subject as torch
from . import _pipeline
from ._ranks import Ranks


@pytest.fixture(scope="module", params=["gloo-2", "gloo-3", *(["hccl-2"] * (SUBJECT_NAME == "mindtorch_v2"))])
def ranks(request: Any) -> Iterator[Ranks]:
    backend, size = request.param.split("-")
    made = Ranks(SUBJECT_NAME, int(size), backend=backend)
    yield made
    made.well()
    made.close()


@pytest.mark.parametrize(("name", "count"), [("ScheduleGPipe", 1), ("ScheduleGPipe", 4), ("Schedule1F1B", 4)])
def test_gradients_are_those_of_one_process(ranks: Ranks, name: str, count: int) -> None:
    value, gradients, out = _pipeline.alone(torch, ranks.size)
    found = ranks.values("_pipeline.staged", name, count)
    for (losses, mine, told), want in zip(found, gradients):
        for got, other in zip(mine, want, strict=True):
            assert got == pytest.approx(other, rel=1e-4, abs=1e-6)
        last = told is not None
        assert len(losses) == (count if last else 0) and (not last or sum(losses) / count == pytest.approx(value))
        assert not last or torch.tensor(told).sub(torch.tensor(out)).abs().max() < 1e-5
    assert found[-1][2] is not None and all(each[2] is None for each in found[:-1])


TWO = ["ScheduleInterleaved1F1B", "ScheduleLoopedBFS", "ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble"]


@pytest.mark.parametrize(
    ("name", "count"), [*((name, count) for name in TWO for count in (2, 4, 8)), ("ScheduleDualPipeV", 8)]
)
def test_two_stages_on_each_rank(ranks: Ranks, name: str, count: int) -> None:
    value, gradients, out = _pipeline.alone(torch, 2 * ranks.size)
    found = ranks.values("_pipeline.interleaved", name, count)
    for rank, (losses, mine, told) in enumerate(found):
        places = _pipeline.stages_of(name, rank, ranks.size)
        for part, want in zip(mine, [gradients[at] for at in places], strict=True):
            for got, other in zip(part, want, strict=True):
                assert got == pytest.approx(other, rel=1e-4, abs=1e-6)
        last = 2 * ranks.size - 1 in places
        assert len(losses) == (count if last else 0) and (not last or sum(losses) / count == pytest.approx(value))
        assert (told is not None) == last
        assert not last or torch.tensor(told).sub(torch.tensor(out)).abs().max() < 1e-5


@mindtorch_only
def test_what_is_not_served_is_named() -> None:
    from mindtorch_v2 import distributed
    from mindtorch_v2.distributed.pipelining import PipelineStage, ScheduleGPipe

    dist: Any = distributed
    dist.init_process_group("fake", rank=0, world_size=2)
    try:
        stage = PipelineStage(torch.nn.Linear(2, 2), 0, 2, "cpu")
        refused: list[dict[str, Any]] = [{"args_chunk_spec": ()}, {"kwargs_chunk_spec": {}}, {"output_merge_spec": ()}]
        for arguments in refused:
            with pytest.raises(NotImplementedError, match=next(iter(arguments))):
                ScheduleGPipe(stage, 2, **arguments)
        with pytest.raises(NotImplementedError, match="dw_builder"):
            PipelineStage(torch.nn.Linear(2, 2), 0, 2, "cpu", dw_builder=print)
        with pytest.raises(NotImplementedError, match="stage 0 of 3"):
            PipelineStage(torch.nn.Linear(2, 2), 0, 3, "cpu")
        with pytest.raises(ValueError, match="does not match number of stages 4"):
            ScheduleGPipe(PipelineStage(torch.nn.Linear(2, 2), 0, 4, "cpu"), 2)
        with pytest.raises(RuntimeError, match="cannot be split into 3"):
            ScheduleGPipe(stage, 3, torch.nn.functional.mse_loss).step(torch.ones(2, 2))
    finally:
        dist.destroy_process_group()


@mindtorch_only
@pytest.mark.parametrize("name", [*TWO, "ScheduleDualPipeV"])
def test_orders_of_all_ranks_can_be_run(name: str) -> None:
    """Whatever the numbers of ranks and microbatches: nobody waits for what never comes; all is done once."""
    from mindtorch_v2.distributed import pipelining
    from mindtorch_v2.distributed.pipelining import _schedules

    kinds = list(_schedules.Kind)
    for size in (1, 2, 3, 4, 7):
        for count in (2 * size, 4 * size):
            orders = []
            for rank in range(size):
                made: Any = object.__new__(getattr(pipelining, name))
                made.rank, made.pp_group_size, made.n_local_stages = rank, size, 2
                made.microbatches_per_round = size
                orders.append([(which, kinds.index(kind)) for which, kind in made._order(count)])
            assert _pipeline.run_through(name, size, count, orders) == []


@mindtorch_only
def test_a_backward_in_two_halves() -> None:
    from mindtorch_v2.distributed.pipelining._split import Halves

    def made() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        parts = torch.nn.ModuleDict(
            {"a": torch.nn.Linear(3, 3), "b": torch.nn.Linear(3, 3), "c": torch.nn.Linear(3, 3)}
        )
        x, free = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
        shared = parts["a"](torch.tanh(parts["a"](x)))
        return parts, x, parts["b"](shared) * parts["c"](free)

    whole, x, out = made()
    out.sum().backward()
    halved, y, again = made()
    halves = Halves([again], [torch.ones_like(again)], [y])
    halves.of_inputs()
    assert torch.equal(x.grad, y.grad)
    # What hangs on one operator alone waits; a weight that is used twice does not.
    assert halved["b"].weight.grad is None and halved["a"].weight.grad is not None
    halves.of_parameters()
    for name, parameter in halved.named_parameters():
        torch.testing.assert_close(parameter.grad, whole.get_parameter(name).grad)
