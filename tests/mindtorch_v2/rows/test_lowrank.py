"""Singular values and principal components of low rank; vectors are determined up to their sign."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

SHAPES = [(6, 4), (4, 6), (2, 5, 3), (3, 0, 4)]


def matrix(shape: tuple[int, ...]) -> Any:
    torch.manual_seed(1)
    rank = 2
    return torch.randn(*shape[:-1], rank, dtype=torch.float64) @ torch.randn(
        *shape[:-2], rank, shape[-1], dtype=torch.float64
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_matrix_of_low_rank_is_found_again(shape: tuple[int, ...]) -> None:
    A = matrix(shape)
    U, S, V = torch.svd_lowrank(A, q=2 if min(shape[-2:]) else 0)
    assert torch.allclose((U * S.unsqueeze(-2)) @ V.mT, A)


@pytest.mark.oracle
@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("center", [True, False])
def test_components_are_the_oracles(shape: tuple[int, ...], center: bool) -> None:
    oracle = _oracle.load()
    A = matrix(shape)
    torch.manual_seed(3)
    mine = torch.pca_lowrank(A, q=2, center=center, niter=1)
    oracle.manual_seed(3)
    theirs = oracle.pca_lowrank(_oracle.to_oracle(A), q=2, center=center, niter=1)
    _oracle.assert_same([t.abs() for t in mine], [t.abs() for t in theirs], stride=False, rtol=1e-6, atol=1e-6)


def test_a_mean_is_taken_off() -> None:
    A = matrix((6, 4))
    M = A.mean(dim=0, keepdim=True)
    U, S, V = torch.svd_lowrank(A, q=3, M=M)
    assert torch.allclose((U * S) @ V.mT, A - M)


def test_gradients() -> None:
    A = matrix((5, 3)).requires_grad_()
    S = torch.svd_lowrank(A, q=2)[1]
    (found,) = torch.autograd.grad(S.sum(), A)
    U, _, Vh = torch.linalg.svd(A.detach(), full_matrices=False)
    assert torch.allclose(found, U[:, :2] @ Vh[:2])


@pytest.mark.parametrize("options", [{"q": 5}, {"q": -1}, {"niter": -1}])
def test_refusals(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be non-negative integer"):
        torch.pca_lowrank(matrix((6, 4)), **options)


@pytest.mark.oracle
@pytest.mark.parametrize("sizes", [(16, 16, 16, 16), (2, 30, 4, 25), (30, 2, 25, 4)])
def test_three_matrices_are_multiplied_in_pytorchs_order(sizes: tuple[int, ...]) -> None:
    """Orders round differently, also those that cost the same."""

    def is_first_first(t: Any) -> bool:
        t.manual_seed(0)
        a, b, c = (t.randn(n, m) for n, m in zip(sizes, sizes[1:]))
        found, first, last = t.linalg.multi_dot([a, b, c]), (a @ b) @ c, a @ (b @ c)
        assert not t.equal(first, last)
        return bool(t.equal(found, first))

    assert is_first_first(torch) == is_first_first(_oracle.load())
