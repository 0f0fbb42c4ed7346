"""Every collective on 2, 3 and 4 processes, against what one process computes, and against PyTorch's gloo."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import SUBJECT_NAME
from .._subject import subject as torch
from . import _answers, _library, _matrix, _programs, _wrong, _wrong_layouts
from ._ranks import Ranks

ALL = bool(os.environ.get("MINDTORCH_COLLECTIVES"))
# PyTorch's gloo takes the first bytes of a strided tensor for its elements.
OURS_ALONE = SUBJECT_NAME == "mindtorch_v2"
NAMES = {"gloo": ("gloo", "cpu:gloo,cuda:gloo"), "hccl": ("hccl", "npu:hccl"), "mpi": ("mpi", "cpu:mpi,cuda:mpi")}
OURS = ["hccl-2", "hccl-3", "hccl-4", "mpi-2", "mpi-3", "mpi-4", "library-2", "library-3"]


@pytest.fixture(scope="module", params=[f"gloo-{size}" for size in (2, 3, 4)] + OURS * OURS_ALONE)
def ranks(request: Any) -> Iterator[Ranks]:
    backend, size = request.param.split("-")
    if backend == "mpi" and not torch.distributed.is_mpi_available():
        pytest.skip("needs mpi4py and an MPI library: pip install mpi4py mpich")
    with _library.engine() if backend == "library" else contextlib.nullcontext():
        made = Ranks(SUBJECT_NAME, int(size), backend="gloo" if backend == "library" else backend)
    yield made
    made.well()
    made.close()


@pytest.mark.parametrize("dtype", _matrix.DTYPES)
def test_every_collective(ranks: Ranks, dtype: str) -> None:
    """By every operation, layout and way of waiting; the environment asks for other sizes as well."""
    shapes = _matrix.SHAPES if ALL else _matrix.SHAPES[1:2]
    layouts = _matrix.LAYOUTS if OURS_ALONE else ["contiguous"]
    for count, wrong in ranks.values("_matrix.whole", dtype, shapes, layouts):
        assert count > 20 and not wrong


def test_nothing_is_sent_as_well(ranks: Ranks) -> None:
    assert ranks.values("nothing") == [[[(0, 3)] * ranks.size] * ranks.size] * ranks.size


def test_uneven_all_to_all(ranks: Ranks) -> None:
    size = ranks.size
    sources = [
        torch.arange(sum(rank + to for to in range(size)) * 2).reshape(-1, 2) + 100 * rank for rank in range(size)
    ]
    cuts = [source.split([rank + to for to in range(size)]) for rank, source in enumerate(sources)]
    want = [torch.cat([cuts[came][rank] for came in range(size)]).tolist() for rank in range(size)]
    assert ranks.values("uneven_all_to_all") == want


@pytest.mark.parametrize(("dtype", "count"), [("float32", 70_001), ("int8", 300_000), ("int64", 530_000)])
def test_large(ranks: Ranks, dtype: str, count: int) -> None:
    assert ranks.values("large", dtype, count) == [(True,) * 4] * ranks.size


def test_large_without_shared_memory(monkeypatch: Any) -> None:
    monkeypatch.setenv("MINDTORCH_SHARED_MEMORY", "0")
    apart = Ranks(SUBJECT_NAME, 3)
    try:
        assert apart.values("large", "float32", 300_000) == [(True,) * 4] * 3
    finally:
        apart.close()


def test_coalesced(ranks: Ranks) -> None:
    size = ranks.size
    for many, outs, later in ranks.values("coalesced"):
        for index, got in enumerate(many):
            parts = [_programs.value(torch, "float32", r, (index + 1, 2)) for r in range(size)]
            assert got == _matrix.reduced(torch, parts, "SUM").tolist()
        assert outs == [[[float(rank)] * 2, [float(rank)] * 3] for rank in range(size)]
        total = float(sum(range(size)))
        assert later == [[total] * 2, [total] * 3]


def test_messages(ranks: Ranks) -> None:
    size = ranks.size
    for rank, (tags, anyone, batched) in enumerate(ranks.values("messages")):
        before = (rank - 1) % size
        assert tags == {tag: (before, [float(before * 10 + tag)] * 3) for tag in (1, 2)}
        assert anyone == ([(each, float(each)) for each in range(1, size)] if rank == 0 else [])
        assert batched == [float(before)] * 2


def test_objects(ranks: Ranks) -> None:
    size = ranks.size
    for rank, (every, some, given, one, sent) in enumerate(ranks.values("objects")):
        assert every == [{"rank": each, "text": "x" * each * 100} for each in range(size)]
        assert some == ([(each, "object") for each in range(size)] if rank == 1 else None)
        assert given == ["a", {"b": 2}] and one == [f"for {rank}"]
        assert sent == ([["from", 0]] if rank == 1 else [None])


def test_groups(ranks: Ranks) -> None:
    size = ranks.size
    for rank, got in enumerate(ranks.values("groups")):
        inside = rank in (0, size - 1)
        place = {0: 0, size - 1: 1}.get(rank, -1)
        start = (place, 2 if inside else -1, 1.0 + size if inside else rank + 1.0)
        assert got == (*start, 1, size, [rank], *NAMES[ranks.backend])


def test_random_programs(ranks: Ranks) -> None:
    """Begun in one order and waited for in another, with pauses in between."""
    for seed in range(200 if ALL else 3 if ranks.backend == "hccl" else 6):
        assert ranks.values("program", seed) == [[]] * ranks.size, seed


WRONG = [
    "dist.all_reduce(3)",
    "dist.all_reduce([torch.ones(2)])",
    "dist.all_reduce(torch.ones(2).to(torch.int16))",
    "dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)",
    "dist.all_reduce(torch.ones(2).to(torch.complex64), dist.ReduceOp.MAX)",
    "dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG)",
    "dist.all_gather([torch.ones(2)] * (size - 1), torch.ones(2))",
    "dist.all_gather([torch.ones(2)] * (size - 1) + [torch.ones(3)], torch.ones(2))",
    "dist.all_gather([torch.ones(2).int()] * size, torch.ones(2))",
    "dist.all_gather((torch.ones(2),) * size, torch.ones(2))",
    "dist.broadcast(torch.ones(2))",
    "dist.broadcast(torch.ones(2), size)",
    "dist.broadcast(torch.ones(2), 0, group_src=0)",
    "dist.gather(torch.ones(2), [torch.ones(2)] * size, dst=(rank + 1) % size)",
    "dist.gather(torch.ones(2), None, dst=rank)",
    "dist.gather(torch.ones(2), [torch.ones(2)], dst=rank)",
    "dist.scatter(torch.ones(2), None, src=rank)",
    "dist.scatter(torch.ones(2), [torch.ones(2)], src=rank)",
    "dist.scatter(torch.ones(2), [torch.ones(2)] * size, src=(rank + 1) % size)",
    "dist.reduce(torch.ones(2), size)",
    "dist.reduce_scatter(torch.ones(2), [torch.ones(2)])",
    "dist.all_to_all_single(torch.ones(size * 2), torch.ones(size * 2), [1] * size, [2] * size)",
    "dist.all_to_all([torch.ones(2)] * (size + 1), [torch.ones(2)] * size)",
    "dist.send(torch.ones(2), rank)",
    "dist.send('text', (rank + 1) % size)",
    "dist.P2POp(dist.all_reduce, torch.ones(2), 0)",
    "dist.batch_isend_irecv([3])",
    "dist.batch_isend_irecv([])",
    "dist.new_group([0, size])",
    "dist.new_group([0, 0])",
    "dist.new_group(timeout=3)",
    "dist.new_subgroups(size + 1)",
    "dist.new_subgroups(0)",
    "dist.new_subgroups_by_enumeration([])",
    "dist.split_group(split_ranks=[[0]])",
    "dist.init_process_group('gloo')",
    "dist.monitored_barrier(timeout='1')",
    "dist.all_reduce_coalesced([torch.ones(2), torch.ones(2).int()])",
    "dist.get_global_rank(3, 0)",
    "dist.get_default_backend_for_device('meta')",
]


@pytest.fixture(scope="module")
def both(oracle: Any) -> Iterator[tuple[Ranks, Ranks]]:
    mine, theirs = Ranks("mindtorch_v2", 2), Ranks("torch", 2)
    yield mine, theirs
    mine.close()
    theirs.close()


@pytest.mark.parametrize("line", WRONG)
def test_wrong_calls_are_refused_in_pytorchs_words(both: tuple[Ranks, Ranks], line: str) -> None:
    found, want = (each.ask("refused", line) for each in both)
    assert want[0][0] == "error", want
    for got, theirs in zip(found, want):
        assert got[0] == "error" and got[1][0] == theirs[1][0]
        text = theirs[1][1].split("\nException raised")[0]
        if " object at 0x" not in text:
            assert got[1][1] == text


@pytest.mark.parametrize("part", range(4))
def test_wrong_calls_are_refused_by_pytorchs_types(both: tuple[Ranks, Ranks], part: int) -> None:
    found = []
    for line in _wrong.LINES[part::4]:
        mine, theirs = ([_type_of(kind, value) for kind, value in each.ask("refused", line)] for each in both)
        if mine != theirs:
            found.append(f"{line}: {mine}, expected {theirs}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", range(4))
def test_wrong_calls_on_a_mesh_are_refused_by_pytorchs_types(both: tuple[Ranks, Ranks], part: int) -> None:
    found = []
    for line in _wrong_layouts.LINES[part::4]:
        mine, theirs = ([_type_of(*each) for each in side.ask("refused_on_a_mesh", line)] for side in both)
        if mine != theirs:
            found.append(f"{line}: {mine}, expected {theirs}")
    assert not found, "\n".join(found)


def _type_of(kind: str, value: Any) -> Any:
    return value[0] if kind == "error" else value


def test_functional(both: tuple[Ranks, Ranks]) -> None:
    homes = ("distributed._functional_collectives", "distributed.nn.functional")
    mine = both[0].values("functional", *(f"mindtorch_v2.{home}" for home in homes))
    theirs = both[1].values("functional", *(f"torch.{home}" for home in homes))
    assert mine == theirs


@pytest.mark.parametrize("kind", ["LAYOUTS", "CALLS"])
def test_what_calls_answer(both: tuple[Ranks, Ranks], kind: str) -> None:
    lines = getattr(_answers, kind)
    mine, theirs = (each.values("_answers.answers", lines) for each in both)
    for rank, (found, want) in enumerate(zip(mine, theirs)):
        for line, got, wanted in zip(lines.strip().splitlines(), found, want, strict=True):
            assert got == wanted, (rank, line)
