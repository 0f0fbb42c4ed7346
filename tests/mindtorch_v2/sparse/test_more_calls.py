"""Further calls with sparse tensors against PyTorch: parts of complex values, layers, triangular systems, and words of
what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = [pytest.mark.oracle, mindtorch_only]

CALLS = """
(s*1j).imag | (s*(1+1j)).real | torch.view_as_real(s*1j) | s.norm("fro") | s.flatten() | 2**s | s**s | s.copy_(d)
d.copy_(s)
b.transpose(0,1) | h.transpose(0,2) | s.sparse_resize_((1,1),2,0) | s.sparse_resize_((2,3,2),2,1)
s.resize_as_sparse_(h)
s.sparse_resize_((2,3),3,1) | s.to_sparse(1) | d.to_sparse(-1) | d.to_sparse(0) | d.to_sparse(5)
E.to_sparse_bsr((2,))
E.to_sparse_bsr((2,2)).to_sparse_bsr((1,1)) | E.to_sparse_bsc((2,2)).to_sparse_bsc((4,4)) | c.copy_(d)
d@c.t() | d@d.to_sparse_csc().t() | d@s.t() | torch.addmm(d@d.t(),d,c.t())
F.linear(d,c) | F.linear(d,s) | F.linear(s,d) | F.linear(d[0],c) | F.linear(d,c,ones(2))
F.linear(ones(2,4,3),c,ones(2)).contiguous()
torch.sparse.sampled_addmm(c,ones(2,4).float(),ones(4,3).float())
torch.sparse.sampled_addmm(c,ones(2,4).float(),ones(4,3))
torch.triangular_solve(ones(4,2),U.to_sparse_csr()).solution | torch.triangular_solve(ones(4,1),U.to_sparse_csr())
torch.triangular_solve(ones(4,1),U.t().contiguous().to_sparse_csr(),upper=False).solution
torch.triangular_solve(ones(4,1),U.to_sparse_csr(),transpose=True).solution
torch.triangular_solve(ones(4,1),U.to_sparse_csr(),unitriangular=True).solution
torch.triangular_solve(ones(4,1),(U+U.t()).to_sparse_csr()).solution
torch.triangular_solve(ones(3,1),U.to_sparse_csr())
torch.triangular_solve(ones(4),U.to_sparse_csr()) | torch.triangular_solve(ones(4,1),U.to_sparse())
torch.select_copy(c,0,1) | torch.select_copy(c.to_sparse_csc(),1,2) | torch.select_copy(E.to_sparse_bsr((2,2)),1,3)
torch.select_copy(D,2,1) | D.select(2,0) | D.select(-1,2)
torch.stack([E,E*2],2).to_sparse_csr(dense_dim=1).select(2,1)
torch.select_copy(b,0,1) | torch.select_copy(b,1,1) | torch.select_copy(c,0,9) | torch.select_copy(s,0,1)
c.copy_(ones(2,3).to_sparse_csr()) | c.copy_(d.t().to_sparse_csr()) | c.__setitem__((0,0),9.) | s.__setitem__(0,9.)
ones(4,4).to_sparse_bsr((2,2)).copy_(ones(4,4).to_sparse_bsr((4,1))) | torch.empty_like(c,layout=torch.sparse_csc)
torch.empty_like(c,layout=torch.strided) | torch.empty_like(c,layout=torch.sparse_coo)
dims(2,0,(2,3),(),torch.int32,layout=torch.sparse_csr).col_indices().shape
dims(2,1,(4,6,3),(2,3),torch.int64,layout=torch.sparse_bsc).values().shape | dims(2,0,(2,3),(),torch.int32)
dims(2,0,(2,3),(1,1),torch.int32,layout=torch.sparse_csr) | dims(2,0,(2,3),(),torch.int32,layout=torch.sparse_bsr)
dims(2,0,(2,3),(),torch.int8,layout=torch.sparse_csr) | dims(-1,0,(2,3),(),torch.int32,layout=torch.sparse_csr)
dims(2,3,(2,3),(),torch.int32,layout=torch.sparse_csr) | dims(2,0,(2,3),(3,3),torch.int32,layout=torch.sparse_bsr)
b.resize_(2,5,4).shape | b.resize_(2,5,4)._nnz() | b.resize_(3,4) | ones(2,2,3).to_sparse_csr().resize_(2,1,5)._nnz()
torch.triangular_solve(ones(4,1),U.to_sparse_bsr((2,2))).solution | torch.pca_lowrank(s)[1].round(decimals=6)
"""


def world(library: Any) -> dict[str, Any]:
    double = library.float64
    d = library.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]], dtype=double)
    E = library.tensor([[1.0, 0, 0, 2], [0, 3, 0, 0], [0, 0, 7, 0], [4, 0, 5, 6]], dtype=double)
    s = d.to_sparse()
    return {
        "torch": library,
        "F": library.nn.functional,
        "d": d,
        "s": s,
        "c": d.to_sparse_csr(),
        "b": library.stack([E, E * 2]).to_sparse_csr(),
        "h": library.sparse_coo_tensor(s.indices(), library.arange(6, dtype=double).reshape(3, 2), (2, 3, 2)),
        "E": E,
        "D": library.stack([E, E * 2, E * 3], 2).to_sparse_bsr((2, 2), dense_dim=1),
        "U": E.triu(),
        "dims": library.ops.aten._sparse_compressed_tensor_with_dims,
        "ones": lambda *shape: library.ones(shape, dtype=double),
    }


def told(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return [told(v) for v in value]
    sparse = "sparse" in str(value.layout)
    dense = value.to_dense() if sparse else value
    numbers = [[v.real, v.imag] if isinstance(v, complex) else round(v, 9) for v in dense.flatten().tolist()]
    return str(value.layout), str(value.dtype), tuple(value.shape), None if sparse else value.stride(), numbers


def outcome(call: str, library: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return told(eval(call, world(library)))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).partition(' backend')[0]}"


@pytest.mark.parametrize("call", [call.strip() for line in CALLS.strip().split("\n") for call in line.split(" | ")])
def test_call(call: str) -> None:
    assert outcome(call, torch) == outcome(call, _oracle.load())
