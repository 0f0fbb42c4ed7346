"""Random functions under transforms against PyTorch: a share whose seeds are fixed; `MINDTORCH_TRANSFORMED=first:last`
runs others."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from ._transformed import TRANSFORMS, judge

pytestmark = [pytest.mark.oracle, mindtorch_only]

FIRST, _, LAST = os.environ.get("MINDTORCH_TRANSFORMED", "0:240").partition(":")
BLOCKS = 8


@pytest.mark.parametrize("block", range(BLOCKS))
def test_functions_agree_with_the_oracle(block: int) -> None:
    reference = _oracle.load()
    counts: Counter[str] = Counter()
    failed: list[str] = []
    for seed in range(int(FIRST) + block, int(LAST), BLOCKS):
        what, text = judge(seed, reference, torch)
        counts[what] += 1
        if text is not None:
            failed.append(text)
    assert failed == [], "\n".join(failed)
    # Most programs are compared.
    assert sum(counts[name] for name in TRANSFORMS) > 0.6 * sum(counts.values())


def test_fill_with_a_number_for_each() -> None:
    oracle = _oracle.load()

    def run(t: Any) -> list[Any]:
        x, y = t.arange(8.0).reshape(2, 2, 2), t.tensor([5.0, 6.0])
        mask = t.tensor([[True, False], [False, True]])

        def write(a: Any, b: Any) -> Any:
            c = a * 1.5
            c[:, 1:] = b
            return c, (a * 2).fill_(b), (a * 3).masked_fill_(mask, b)

        return [found.tolist() for found in t.func.vmap(write)(x, y)]

    assert run(torch) == run(oracle)


def test_a_selected_number_can_be_written() -> None:
    def run(t: Any) -> Any:
        def loss(a: Any) -> Any:
            b = a.sin().index_select(0, t.tensor([0])).transpose(0, 0)
            return b.mul_(1.5).sum()

        return [round(v, 5) for v in t.func.vmap(t.func.grad(loss))(t.tensor([0.3, 0.4])).tolist()]

    assert run(torch) == run(_oracle.load())


def test_another_view_does_not_take_the_place_of_a_written_one() -> None:
    def run(t: Any) -> Any:
        def loss(a: Any) -> Any:
            b = a * 1.5
            b[::2].sigmoid_()
            return (b.mT * b.mT).sum()

        x = t.arange(6.0).reshape(2, 3)
        return [[round(v, 4) for v in found.flatten().tolist()] for found in t.func.jvp(t.func.grad(loss), (x,), (x,))]

    assert run(torch) == run(_oracle.load())
