"""The native loss of sequences and its gradient, against PyTorch: no steps, no labels, labels twice, no way."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has kernels of its own")
NATIVE: Any = None if IS_ORACLE else submodule("_native")
# Steps of each sequence, labels of each sequence.
CASES: tuple[tuple[list[int], list[list[int]]], ...] = (
    ([6, 6], [[1, 2], [2, 3]]),
    ([6, 4, 1], [[1, 1, 1], [3], [2]]),
    ([6, 5], [[], [1, 2, 2]]),
    ([2, 6], [[1, 1, 2], [1]]),
    ([0, 6], [[], [4]]),
    ([0, 3], [[1], [4]]),
    ([1], [[]]),
)


def run(lib: Any, case: Any, dtype: str, reduction: str, zero_infinity: bool, flat: bool) -> tuple[Any, Any]:
    inputs, labels = case
    steps, longest = 6, max(map(len, labels))
    numbers = [((i * 7919) % 101) / 25 for i in range(steps * len(inputs) * 5)]
    scores = lib.tensor(numbers, dtype=getattr(lib, dtype)).view(steps, len(inputs), 5).requires_grad_()
    if flat:
        targets = lib.tensor([x for row in labels for x in row], dtype=lib.int64)
    else:
        targets = lib.tensor([row + [1] * (longest - len(row)) for row in labels], dtype=lib.int64)
        targets = targets.view(len(labels), longest)
    loss = lib.nn.functional.ctc_loss(
        scores.log_softmax(-1),
        targets,
        tuple(inputs),
        tuple(map(len, labels)),
        reduction=reduction,
        zero_infinity=zero_infinity,
    )
    loss.backward(lib.ones_like(loss) * 2)
    return loss.detach(), scores.grad


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
def test_as_pytorch(dtype: str, case: Any, reduction: str) -> None:
    there = _oracle.load()
    for zero_infinity in (False, True):
        for flat in (False, True):
            ours = run(torch, case, dtype, reduction, zero_infinity, flat)
            theirs = run(there, case, dtype, reduction, zero_infinity, flat)
            for a, b in zip(ours, theirs):
                there.testing.assert_close(there.from_numpy(a.numpy()), b, equal_nan=True)


def test_without_gradients_and_in_threads() -> None:
    known = torch.get_num_threads()
    scores = torch.randn(50, 40, 20).log_softmax(-1)
    targets = torch.randint(1, 20, (40, 12))
    lengths = torch.full((40,), 50), torch.full((40,), 12)
    found = []
    for count in (1, 2, 7):
        torch.set_num_threads(count)
        found.append(torch.nn.functional.ctc_loss(scores, targets, *lengths, reduction="none"))
    torch.set_num_threads(known)
    assert all(torch.equal(found[0], f) for f in found)


def test_labels_are_checked() -> None:
    scores = torch.randn(6, 1, 4).log_softmax(-1)
    for label in (4, -1, 1 << 40):
        with pytest.raises((IndexError, RuntimeError)):
            torch.nn.functional.ctc_loss(scores, torch.tensor([[label]]), (6,), (1,))


def test_operands_are_checked() -> None:
    x, y = NATIVE.Storage(96), NATIVE.Storage(64)
    memoryview(x)[:], memoryview(y)[:] = bytes(96), bytes(64)
    f32 = 6
    good = (x, 0, y, 0, 1, f32, (6, 1, 4, 1), (0,), (6,), (1,), 0, x, 0, y, 0)
    assert NATIVE.ctc(*good)
    for place, wrong in (
        (1, 1),
        (3, 8),
        (4, 0),
        (4, 9),
        (5, 4),
        (6, (6, 1, 5, 1)),
        (6, (6, 1, 4, 2)),
        (6, (-6, 1, 4, 1)),
        (6, (6, 1 << 62, 4, 1)),
        (6, (6, 1, 4)),
        (7, (1,)),
        (7, ()),
        (8, (7,)),
        (8, (-1,)),
        (9, (2,)),
        (10, 4),
        (10, -1),
        (12, 7),
        (14, 16),
    ):
        with pytest.raises((ValueError, RuntimeError, OverflowError)):
            NATIVE.ctc(*good[:place], wrong, *good[place + 1 :])
