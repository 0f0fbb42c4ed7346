"""Random programs against PyTorch, eager and functionalized, errors included.

Invariant: the seeds are fixed, so the programs in CI are the same ones every time; another range is one environment
variable away: `MINDTORCH_PROGRAMS=1000:5000`.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from ._machine import Instruction, Machine, Mismatch, lockstep

# Blocks keep the report short and the collection quick.
BLOCK = 25


def blocks(default: str) -> list[range]:
    first, _, last = os.environ.get("MINDTORCH_PROGRAMS", default).partition(":")
    return [range(start, min(start + BLOCK, int(last))) for start in range(int(first), int(last), BLOCK)]


def name(block: range) -> str:
    return f"{block.start}-{block.stop - 1}"


def run_block(block: range, reference: Any, functional: bool) -> None:
    failed: list[str] = []
    for seed in block:
        try:
            if functional:
                with torch.functionalize():
                    lockstep(seed, Machine(reference), Machine(torch))
            else:
                lockstep(seed, Machine(reference), Machine(torch))
        except Mismatch as mismatch:
            failed.append(str(mismatch))
    assert not failed, f"{len(failed)} of {len(block)} programs differ\n" + "\n".join(failed)


@pytest.mark.oracle
@pytest.mark.parametrize("block", blocks("0:300"), ids=name)
def test_programs_agree_with_the_oracle(block: range) -> None:
    run_block(block, _oracle.load(), functional=False)


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("block", blocks("0:150"), ids=name)
def test_functionalized_programs_agree_with_the_oracle(block: range) -> None:
    run_block(block, _oracle.load(), functional=True)


@mindtorch_only
@pytest.mark.parametrize("block", blocks("300:400"), ids=name)
def test_functionalized_programs_agree_with_eager_ones(block: range) -> None:
    failed: list[str] = []
    for seed in block:
        try:
            lockstep(seed, Machine(torch), FunctionalMachine(torch))
        except Mismatch as mismatch:
            failed.append(str(mismatch))
    assert not failed, f"{len(failed)} of {len(block)} programs differ\n" + "\n".join(failed)


class FunctionalMachine(Machine):
    """Runs every instruction under functionalize."""

    def run(self, instruction: Instruction, grad: bool) -> tuple[str, Any]:
        with self.torch.functionalize():
            return super().run(instruction, grad)


def test_programs_are_interesting() -> None:
    """Most instructions succeed, and errors, aliases and backward passes do occur."""
    total: dict[str, int] = {}
    for seed in range(60):
        for key, count in lockstep(seed, Machine(torch), Machine(torch)).items():
            total[key] = total.get(key, 0) + count
    instructions = sum(total.values())
    assert total["new"] > 0.3 * instructions
    assert 0.02 * instructions < total["error"] < 0.5 * instructions
    assert total["same"] > 20 and total["none"] > 20
