"""Random programs against PyTorch: eager and functionalized, on the CPU and on NPUs, errors included.

Invariant: a session says which programs it ran: `MINDTORCH_PROGRAMS=first:last`, in its header and a failure, repeats
them; `MINDTORCH_PROGRAMS=new` runs 2000 that no session ran before, of which about two in a thousand still differ.
Many more by hand: `python -m tests.mindtorch_v2.programs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .. import _npu, _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from ._machine import Way, run
from ._seeds import judge

# Blocks keep the report short and the collection quick.
BLOCKS = 40
FIRST, _, LAST = os.environ["MINDTORCH_PROGRAMS"].partition(":")
SEEDS = range(int(FIRST), int(LAST))
# Programs that differ from PyTorch, and in what.
KNOWN = {
    20261503: "whether a gradient requires grad after create_graph through a view made stale",
    20262489: "the same",
    20261555: "a leaf written through a stale view: PyTorch refuses in a later backward",
    20262875: "which of two dtype errors of a product comes first",
}


@pytest.fixture
def emulator() -> Iterator[_npu.Emulator | None]:
    """A fifth of the programs run on an NPU."""
    yield from _npu.watched(_npu.start())


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("block", range(min(BLOCKS, len(SEEDS))))
def test_programs_agree_with_the_oracle(block: int) -> None:
    reference = _oracle.load()
    mine = [seed for seed in SEEDS[block :: min(BLOCKS, len(SEEDS))] if seed not in KNOWN]
    failed = [text for _, text in (judge(seed, reference, torch) for seed in mine) if text is not None]
    assert not failed, (
        f"{len(failed)} of {len(mine)} programs differ (MINDTORCH_PROGRAMS={FIRST}:{LAST})\n\n" + "\n".join(failed)
    )


@mindtorch_only
def test_functionalized_programs_agree_with_eager_ones() -> None:
    """Also without PyTorch: what a program does is no matter of the mode."""
    for seed in range(60):
        run(seed, torch, torch, Way("cpu", True))


def test_programs_are_interesting() -> None:
    """Most statements succeed, and errors, aliases, hooks and backward passes do occur."""
    total: dict[str, int] = {}
    for seed in range(60):
        for key, count in run(seed, torch, torch, Way("cpu", False)).items():
            total[key] = total.get(key, 0) + count
    statements = sum(total.values())
    assert total["new"] > 0.4 * statements
    assert 0.02 * statements < total["error"] < 0.4 * statements
    assert total["same"] > 20 and total["none"] > 20 and total["other"] > 10
