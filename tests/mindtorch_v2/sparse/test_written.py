"""Sparse tensors that are written to or made anew, and those on meta. Also holds for PyTorch (run with
MINDTORCH_TEST_SUBJECT=torch)."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch

BYTES = [[0, 1, 0], [2, 0, 3]]


def bytes_() -> Any:
    return torch.tensor(BYTES, dtype=torch.int8).to_sparse()


@pytest.mark.parametrize("name", "asin sqrt sin log1p".split())
def test_functions_of_the_values_write_what_dense_ones_write(name: str) -> None:
    fn = getattr(torch, name)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Char"):
        fn(bytes_(), out=bytes_())
    out = torch.zeros(2, 3).to_sparse()
    assert fn(torch.eye(3)[:2].to_sparse(), out=out) is out
    assert torch.equal(out.to_dense(), fn(torch.eye(3)[:2]))


@pytest.mark.parametrize(("name", "said"), [("add", "add"), ("sub", "add"), ("mul", "mul")])
def test_arithmetic_names_itself(name: str, said: str) -> None:
    a = torch.eye(3)[:2].to_sparse()
    with pytest.raises(RuntimeError, match=f"Can't convert result type Float to output Char in {said} operation"):
        getattr(torch, name)(a, a, out=bytes_())


@pytest.mark.parametrize("name", ["zeros", "empty"])
@pytest.mark.parametrize("size", [(2, 3), (0,), (), (2, 3, 4)])
def test_what_has_no_entry_is_made_of_sparse_tensors(name: str, size: tuple[int, ...]) -> None:
    out = torch.eye(3).to_sparse(1)
    made = getattr(torch, name)(size, out=out)
    assert made is out and made.layout is torch.sparse_coo and tuple(made.shape) == size and made._nnz() == 0
    assert (made.sparse_dim(), made.dense_dim(), made.is_coalesced()) == (len(size), 0, True)


def test_new_is_of_the_same_layout() -> None:
    s = torch.eye(2, dtype=torch.float64).to_sparse()
    assert s.new().layout is torch.sparse_coo and tuple(s.new().shape) == (0,)
    assert tuple(s.new(2, 3).shape) == tuple(s.new(torch.Size([2, 3])).shape) == tuple(s.new(size=(2, 3)).shape)
    assert s.new(2, 3, device="cpu").dtype is torch.float64
    with pytest.raises(TypeError, match=r"SparseTensor.new\(sequence\) only accepts sizes"):
        s.new([6])
    for wrong in (torch.eye(2), torch.eye(2).untyped_storage(), 2.5):
        with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments"):
            s.new(wrong)
    with pytest.raises(RuntimeError, match="Cannot map DispatchKey SparseCsrCPU to a unique layout."):
        s.to_sparse_csr().new(2, 3)


@pytest.mark.parametrize("layout", "coo csr csc bsr bsc".split())
def test_tensors_on_meta_have_no_entries(layout: str) -> None:
    blocks = {"blocksize": (2, 2)} if layout[0] == "b" else {}
    here = torch.ones(2, 4, 4).to_sparse(layout=getattr(torch, f"sparse_{layout}"), **blocks)
    there = here.to("meta")
    assert there._nnz() == 0 and there.layout is here.layout and there.shape == here.shape
    values, before = (t._values() if layout == "coo" else t.values() for t in (there, here))
    assert values.is_meta and values.numel() == 0 and values.dim() == before.dim()
    assert there.to(torch.float16).dtype is torch.float16 and there.clone()._nnz() == 0
    both = there + there
    assert both.layout is here.layout and both.is_meta and both._nnz() == 0 and both.shape == here.shape
