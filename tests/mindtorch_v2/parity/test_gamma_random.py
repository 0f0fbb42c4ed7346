"""Numbers of the gamma family: a seed gives PyTorch's, and their derivatives are PyTorch's approximations."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

pytestmark = pytest.mark.oracle
ALPHAS = [[1e-3, 0.2, 0.9, 1.0], [2.5, 7.9, 8.1, 300.0], [0.0, 40.0, 0.05, 3.0]]


def both(draw: Any) -> tuple[Any, Any]:
    """What the two libraries draw after the same seed, and what they draw next."""
    found = []
    for library in (torch, _oracle.load()):
        library.manual_seed(11)
        found.append((draw(library), library.rand(3).tolist()))
    assert found[0][1] == found[1][1]
    return found[0][0], found[1][0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gamma(dtype: str) -> None:
    mine, theirs = both(lambda t: t._standard_gamma(t.tensor(ALPHAS * 10, dtype=getattr(t, dtype))))
    assert mine.tolist() == theirs.tolist()


def test_gamma_of_views() -> None:
    mine, theirs = both(lambda t: t._standard_gamma(t.tensor(ALPHAS).t()))
    _oracle.assert_same(mine, theirs, rtol=0, atol=0)
    mine, theirs = both(lambda t: t._standard_gamma(t.tensor(2.5).expand(2, 3), t.Generator().manual_seed(3)))
    _oracle.assert_same(mine, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dirichlet(dtype: str) -> None:
    alphas = [[1e-3, 0.2, 0.9], [2.5, 8.1, 300.0], [0.7, 40.0, 0.05]]
    mine, theirs = both(lambda t: t._sample_dirichlet(t.tensor(alphas * 10, dtype=getattr(t, dtype))))
    assert mine.tolist() == theirs.tolist()


def grid(library: Any, *axes: list[float]) -> list[Any]:
    return [x.reshape(-1) for x in library.meshgrid(*(library.tensor(a).double() for a in axes), indexing="ij")]


def test_how_gamma_numbers_move() -> None:
    axes = [0.01, 0.5, 3.0, 8.5, 60.0], [1e-4, 0.1, 0.79, 0.81, 2.0, 7.7, 9.2, 59.0, 70.0, 200.0]
    mine, theirs = (t._standard_gamma_grad(*grid(t, *axes)) for t in (torch, _oracle.load()))
    _oracle.assert_same(mine, theirs, rtol=1e-10, atol=0)


def test_how_dirichlet_numbers_move() -> None:
    axes = [0.001, 0.1, 0.49, 0.51, 0.7, 0.99], [0.02, 0.9, 6.5, 30.0], [0.03, 5.0, 7.0, 50.0]
    found = []
    for t in (torch, _oracle.load()):
        x, alpha, rest = grid(t, *axes)
        found.append(t._dirichlet_grad(x, alpha, alpha + rest))
    _oracle.assert_same(*found, rtol=1e-7, atol=0)


def test_derivative() -> None:
    def draw(t: Any) -> Any:
        alpha = t.tensor(ALPHAS[:2], dtype=t.float64, requires_grad=True)
        return t.autograd.grad(t._standard_gamma(alpha).sum(), alpha)[0]

    mine, theirs = both(draw)
    _oracle.assert_same(mine, theirs, rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t._standard_gamma(t.tensor([1])),
        lambda t: t._standard_gamma(t.tensor([1.0]).half()),
        lambda t: t._standard_gamma_grad(t.ones(2), t.ones(3)),
        lambda t: t._standard_gamma_grad(t.ones(2), t.ones(2).double()),
        lambda t: t._standard_gamma_grad(t.ones(2).half(), t.ones(2).half()),
        lambda t: t._sample_dirichlet(t.tensor([1, 2])),
        lambda t: t._dirichlet_grad(t.tensor([1]), t.tensor([1]), t.tensor([1])),
        lambda t: t._dirichlet_grad(t.ones(2), t.ones(2).double(), t.ones(2)),
        lambda t: t._standard_gamma_grad(t.ones(2, requires_grad=True), t.ones(2)).sum().backward(),
        lambda t: t._sample_dirichlet(t.ones(2, requires_grad=True)).sum().backward(),
        lambda t: t._dirichlet_grad(t.ones(2, requires_grad=True) / 2, t.ones(2), t.ones(2) * 3).sum().backward(),
    ],
)
def test_refusals(call: Any) -> None:
    found = []
    for t in (torch, _oracle.load()):
        with pytest.raises(RuntimeError) as caught:
            call(t)
        found.append((type(caught.value), str(caught.value)))
    assert found[0] == found[1]
