"""The native product of a sparse matrix with a dense one: sizes that need threads, dtypes, and damaged indices."""

from __future__ import annotations

import warnings

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = [mindtorch_only, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("columns", [1, 3, 64])
def test_equals_the_dense_product(dtype: torch.dtype, columns: int) -> None:
    torch.manual_seed(columns)
    d = torch.rand(700, 500) * (torch.rand(700, 500) > 0.9)
    d, e = d.to(dtype), torch.rand(500, columns).to(dtype)
    want = d @ e
    csr = d.to_sparse_csr()
    short = torch.sparse_csr_tensor(csr.crow_indices().int(), csr.col_indices().int(), csr.values(), (700, 500))
    twice = torch.cat([d.to_sparse(), d.to_sparse()], 1)
    for s in (d.to_sparse(), csr, short, d.to_sparse_csc(), d.to_sparse_bsr((5, 5))):
        torch.testing.assert_close(s @ e, want, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(torch.sparse.mm(s, e), want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(twice @ torch.cat([e, e]), want * 2, rtol=1e-4, atol=1e-4)


def test_damaged_indices_are_refused() -> None:
    ends, at, v = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 7]), torch.ones(3)
    with pytest.raises(IndexError, match="index 7 is out of range for 2 rows"):
        torch.sparse_csr_tensor(ends, at, v, (2, 2)) @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="offsets of row 0"):
        torch.sparse_csr_tensor(torch.tensor([0, 9, 3]), at % 2, v, (2, 2)) @ torch.ones(2, 2)
    with pytest.raises(IndexError):
        torch.sparse_coo_tensor(torch.tensor([[0, 5]]), torch.ones(2), (3,)).to_dense()


def test_sums_meet_at_equal_coordinates() -> None:
    at = torch.tensor([[1, 0, 1]])
    u = torch.sparse_coo_tensor(at, torch.tensor([1.0, 2.0, 3.0]), (4,))
    both = u + u
    assert both._nnz() == 3 and both._values().tolist() == [2.0, 4.0, 6.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (u - u).to_dense().tolist() == [0.0, 0.0, 0.0, 0.0]
