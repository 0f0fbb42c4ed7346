"""Random counts: a seed gives PyTorch's, draw for draw."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

pytestmark = pytest.mark.oracle
RATES = [0.0, 0.5, 3.0, 9.99, 10.0, 12.5, 100.0, 1000.0] * 20
TRIALS = [0.0, 5.0, 20.0, 30.0, 100.0, 1000.0, 5.5, 7.0] * 20
CHANCES = [0.3, 0.5, 0.7, 0.99, 0.2, 0.4, 0.6, 1.0, 0.0, 0.05] * 16


def both(draw: Any) -> tuple[Any, Any]:
    """What the two libraries draw after the same seed, and what they draw next."""
    found = []
    for library in (torch, _oracle.load()):
        library.manual_seed(11)
        found.append((draw(library).tolist(), library.rand(3).tolist()))
    return found[0], found[1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_poisson(dtype: str) -> None:
    mine, theirs = both(lambda t: t.poisson(t.tensor(RATES, dtype=getattr(t, dtype))))
    assert mine == theirs


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_binomial(dtype: str) -> None:
    mine, theirs = both(
        lambda t: t.binomial(t.tensor(TRIALS, dtype=getattr(t, dtype)), t.tensor(CHANCES, dtype=getattr(t, dtype)))
    )
    assert mine == theirs


def test_a_generator_of_its_own() -> None:
    mine, theirs = both(lambda t: t.poisson(t.full((5,), 4.0), generator=t.Generator().manual_seed(2)))
    assert mine == theirs


@pytest.mark.parametrize("shapes", [((2, 1), (3,)), ((), (2, 2)), ((0, 3), (3,))])
def test_trials_and_chances_broadcast(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    mine, theirs = both(lambda t: t.binomial(t.full(shapes[0], 9.0), t.full(shapes[1], 0.4)))
    assert mine == theirs


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.poisson(t.tensor([-1.0])),
        lambda t: t.poisson(t.tensor([1])),
        lambda t: t.binomial(t.tensor([5]), t.tensor([0.5])),
        lambda t: t.binomial(t.tensor([5.0]), t.tensor([0.5], dtype=t.float64)),
        lambda t: t.binomial(t.tensor([5.0]).half(), t.tensor([0.5]).half()),
    ],
)
def test_refusals(call: Any) -> None:
    with pytest.raises(Exception) as theirs:
        call(_oracle.load())
    with pytest.raises(type(theirs.value)) as mine:
        call(torch)
    assert str(mine.value) == str(theirs.value)


def test_a_rate_has_no_gradient_but_zero() -> None:
    rate = torch.tensor([3.0], requires_grad=True)
    (found,) = torch.autograd.grad(torch.poisson(rate).sum(), rate)
    assert found.tolist() == [0.0]
