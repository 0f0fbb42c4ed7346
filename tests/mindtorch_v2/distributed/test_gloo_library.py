"""The Gloo library as the engine of `gloo`: faults, and what is said where it is missing."""

from __future__ import annotations

import time

import pytest

from .._subject import mindtorch_only
from . import _library
from ._ranks import Ranks

pytestmark = mindtorch_only


def test_a_late_rank_is_named() -> None:
    with _library.engine():
        ranks = Ranks("mindtorch_v2", 2, seconds=2.0)
    try:
        kind, text = ranks.ask("late", 4.0)[0][1]
        assert kind == "RuntimeError" and "Timed out waiting 2000ms" in text
        assert "operation allreduce, sequence number 1, rank 0 of 2" in text
        assert "ranks arrived: [0], missing: [1]" in text
    finally:
        ranks.close()


@pytest.mark.parametrize("count", [4, 100_000])
def test_a_rank_that_dies_ends_the_waiting_of_others(count: int) -> None:
    """Also of who is no neighbour of it in Gloo's ring: long before the time limit."""
    with _library.engine():
        ranks = Ranks("mindtorch_v2", 4, seconds=120.0)
    try:
        ranks.values("all_reduce", "float32", "SUM", (2, 2), "contiguous", False)
        started = time.monotonic()
        for rank in range(4):
            ranks.pipes[rank].send(("die", (3, count)))
        for rank in range(3):
            kind, text = ranks.answer(rank)[1]
            assert kind == "RuntimeError" and "operation allreduce, sequence number 2" in text
            assert "missing: [3]" in text and "Timed out" not in text
        assert time.monotonic() - started < 60.0
    finally:
        ranks.close()


def test_training_is_that_of_sockets() -> None:
    with _library.engine():
        ranks = Ranks("mindtorch_v2", 2)
    others = Ranks("mindtorch_v2", 2)
    try:
        found, want = (each.values("train", {}, True) for each in (ranks, others))
        for (losses, parameters), (other_losses, other_parameters) in zip(found, want):
            assert losses == pytest.approx(other_losses, rel=1e-5)
            for mine, theirs in zip(parameters, other_parameters):
                assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    finally:
        ranks.close()
        others.close()


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2 import distributed

    monkeypatch.setenv("MINDTORCH_GLOO", "library")
    monkeypatch.setenv("MINDTORCH_GLOO_LIBRARY", "/nowhere/libmindtorch_gloo.so")
    with pytest.raises(RuntimeError, match="apt-get install libgloo-dev.*csrc/gloo_engine/build.py"):
        distributed.ProcessGroupGloo(distributed.HashStore(), 0, 1)
    monkeypatch.setenv("MINDTORCH_GLOO", "mpi")
    with pytest.raises(ValueError, match="MINDTORCH_GLOO must be 'sockets' or 'library'"):
        distributed.ProcessGroupGloo(distributed.HashStore(), 0, 1)
