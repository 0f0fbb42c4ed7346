"""Spectra of matrices with infinities: LAPACK's iterations need not end for them, so it is not given any.

Invariant: the finite matrices of a batch have the spectra that they have alone, the others NaN, as nearly everywhere in
PyTorch, whose LAPACK ends with NaN or an error by the place of the infinity.
"""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

INF = float("inf")
FUNCTIONS = ("svd", "svdvals", "eigh", "eigvalsh")


def batch(n: int, dtype: torch.dtype, places: list[tuple[int, int]]) -> Tensor:
    """A finite symmetric matrix, one with infinities, and another finite one."""
    torch.manual_seed(n)
    x = torch.randn(3, n, n, dtype=dtype)
    x = x + x.mH
    for i, j in places:
        x[1, i, j] = INF
    return x


def parts(found: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 33, 40])
def test_of_each(name: str, dtype: torch.dtype, n: int) -> None:
    function = getattr(torch.linalg, name)
    x = batch(n, dtype, [(n - 1, 0)])
    for together, alone, infinite in zip(parts(function(x)), parts(function(x[::2])), parts(function(x[1]))):
        assert together[1].isnan().all() and infinite.isnan().all()
        if n > 1:
            torch.testing.assert_close(together[::2].abs(), alone.abs(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("places", [[(0, 0)], [(0, 1), (1, 0)], [(i, j) for i in range(3) for j in range(3)]], ids=len)
def test_wherever_they_are(name: str, places: list[tuple[int, int]]) -> None:
    for found in parts(getattr(torch.linalg, name)(batch(3, torch.float32, places)[1])):
        assert found.isnan().all()


def test_what_is_made_of_spectra() -> None:
    x = batch(3, torch.float32, [(0, 0)])
    assert torch.linalg.pinv(x).isnan().all((1, 2)).tolist() == [False, True, False]
    assert torch.linalg.cond(x).isnan().tolist() == [False, True, False]
    assert torch.linalg.matrix_rank(x).tolist() == [3, 0, 3]


@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_the_half_that_is_not_read_may_hold_anything(name: str) -> None:
    x = torch.eye(3)
    x[0, 2] = float("nan")
    assert parts(getattr(torch.linalg, name)(x))[0].tolist() == [1.0, 1.0, 1.0]
    assert parts(getattr(torch.linalg, name)(x.mT, UPLO="U"))[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "n, with_vectors, without", [(1, True, True), (2, True, True), (3, False, False), (40, True, False)]
)
def test_a_nan_is_refused_where_pytorchs_iterations_do_not_end(n: int, with_vectors: bool, without: bool) -> None:
    x = torch.full((n, n), float("nan"))
    for function, computes in ((torch.linalg.eigh, with_vectors), (torch.linalg.eigvalsh, without)):
        if computes:
            assert all(part.isnan().all() for part in parts(function(x)))
        else:
            with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
                function(x)
