"""Random programs against PyTorch: eager and functionalized, on the CPU and on NPUs, errors included.

Invariant: a commit fixes which 2000 programs run (tests/conftest.py), so a failure is never a matter of chance.
`MINDTORCH_PROGRAMS=first:last` runs others, `MINDTORCH_PROGRAMS=new` some that no session ran before, and
`python -m tests.mindtorch_v2.programs` many more. What those find becomes a test of its own.
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
    mine = SEEDS[block :: min(BLOCKS, len(SEEDS))]
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
