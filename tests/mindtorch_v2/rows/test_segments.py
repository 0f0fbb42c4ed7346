"""Gradients of reductions over segments whose elements are zero or NaN."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch

nan = float("nan")
ROWS = [[1, 1], [nan, 1], [3, nan], [nan, 1], [nan, 2], [2, 0]]


def gradients(lib: Any, reduce: str, initial: Any) -> list[list[str]]:
    x = lib.tensor(ROWS, dtype=lib.float32, requires_grad=True)
    lengths = lib.tensor([1, 2, 3, 0])
    lib.segment_reduce(x, reduce, lengths=lengths, axis=0, unsafe=True, initial=initial).sum().backward()
    return [[f"{v:.5g}" for v in row] for row in x.grad.tolist()]


@pytest.mark.oracle
@pytest.mark.parametrize("initial", [0, 2, None])
@pytest.mark.parametrize("reduce", ["max", "min", "mean", "sum", "prod"])
def test_as_pytorch(reduce: str, initial: Any, oracle: Any) -> None:
    assert gradients(torch, reduce, initial) == gradients(oracle, reduce, initial)


def test_nan_gets_the_product_of_the_others() -> None:
    assert gradients(torch, "prod", None)[1:3] == [["3", "nan"], ["nan", "1"]]
