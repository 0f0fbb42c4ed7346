"""Making sparse tensors: what constructors take, what they check, and what they refuse in which words."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _compare

CALLS = """
torch.sparse_coo_tensor(i,v,(2,3))|torch.sparse_coo_tensor(i,v)|torch.sparse_coo_tensor((2,3))
torch.sparse_coo_tensor(size=(2,3))|torch.sparse_coo_tensor([[0,1]],[1,2])|torch.sparse_coo_tensor([[0.5,1]],[1,2])
torch.sparse_coo_tensor(i.int(),v)._indices().dtype|torch.sparse_coo_tensor(i,v,(2,2),check_invariants=True)
torch.sparse_coo_tensor(-i,v)|torch.sparse_coo_tensor(-i,v,(2,3),check_invariants=True)|torch.sparse_coo_tensor(i[0],v)
torch.sparse_coo_tensor(i[0],v,(2,3),check_invariants=True)|torch.sparse_coo_tensor(i,v,(2,3,4))
torch.sparse_coo_tensor(i,v[:2],(2,3))|torch.sparse_coo_tensor(i,v[:2])
torch.sparse_coo_tensor(i[:,[1,0,2]],v,(2,3),check_invariants=True,is_coalesced=True)
torch.sparse_coo_tensor(i,v,(2,3),dtype=torch.float64)|torch.sparse_coo_tensor(i)
torch.sparse_csr_tensor(r,q,v)|torch.sparse_csr_tensor(r,q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(r,q,v,(3,2),check_invariants=True)|torch.sparse_csr_tensor(r,q,v,(2,1),check_invariants=True)
torch.sparse_csr_tensor(r,q,v,(2,),check_invariants=True)|torch.sparse_csr_tensor(r,q,v,(2,2,2),check_invariants=True)
torch.sparse_csr_tensor(r,q[:2],v,(2,2),check_invariants=True)|torch.sparse_csr_tensor(r,q,v[:2],(2,2),check_invariants=True)
torch.sparse_csr_tensor(r.int(),q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(r.short(),q.short(),v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(r+1,q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([0,3,2]),q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([0,4,3]),q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([0,1,3]),q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(r,torch.tensor([0,-1,1]),v,(2,2),check_invariants=True)
torch.sparse_csc_tensor(r,torch.tensor([0,3,1]),v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(r[None],q,v,(2,2),check_invariants=True)
torch.sparse_csr_tensor(r[None],q[None],v[None],(1,2,2),check_invariants=True)
torch.sparse_csr_tensor(r[None],q[None],v,(1,2,2),check_invariants=True)
torch.sparse_csr_tensor(torch.tensor(1),q,v,(2,2),check_invariants=True)
torch.sparse_bsr_tensor(r,q,v,(2,2),check_invariants=True)|torch.sparse_bsr_tensor(r,q,torch.ones(3,2,2))
torch.sparse_bsr_tensor(r,q,torch.ones(3,2,2),(4,5),check_invariants=True)|torch.sparse_bsc_tensor(r,q,torch.ones(3,2,1))
torch.sparse_bsc_tensor(r,q,torch.ones(3,2,1),(4,4),check_invariants=True)|torch.sparse_compressed_tensor(r,q,v,(2,2))
torch.sparse_compressed_tensor(r,q,v,(2,2),layout=torch.sparse_csc)
torch.sparse_compressed_tensor(r,q,v,(2,2),layout=torch.sparse_coo)
torch.sparse_csr_tensor(r,q,v,(2,2),layout=torch.sparse_csc)|torch.sparse_csr_tensor([0,2,3],[0,1,1],[1,2,3])
torch.sparse_csr_tensor([0,2,3],[0,1,1],[1,2,3],dtype=torch.float64)
torch.sparse_csr_tensor(r.int(),q.int(),v).crow_indices().dtype|torch.sparse_csr_tensor(r,q,torch.ones(3,2))
torch.sparse.check_sparse_tensor_invariants.is_enabled()|torch._validate_sparse_coo_tensor_args(i,v,(2,2))
torch._validate_sparse_csr_tensor_args(r,q,v,(2,2))
"""


def _world(library: Any) -> dict[str, Any]:
    return {
        "torch": library,
        "i": library.tensor([[0, 1, 1], [2, 0, 2]]),
        "v": library.tensor([3.0, 4.0, 5.0]),
        "r": library.tensor([0, 2, 3]),
        "q": library.tensor([0, 1, 1]),
    }


@pytest.mark.parametrize("call", CALLS.strip().replace("\n", "|").split("|"))
def test_constructor(call: str) -> None:
    oracle = _oracle.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = eval(call, _world(oracle))
        except (RuntimeError, TypeError) as error:
            with pytest.raises(type(error)) as found:
                eval(call, _world(torch))
            assert str(found.value) == str(error)
            return
        _compare.assert_same(eval(call, _world(torch)), expected, call)


def _some() -> list[Any]:
    d = torch.tensor([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 4.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    return [
        d.to_sparse(),
        torch.sparse_coo_tensor(torch.tensor([[1, 1], [0, 0]]), torch.tensor([1.0, 2.0]), (2, 2)),
        d.to_sparse_csr(),
        d.to_sparse_csc(),
        d.to_sparse_bsr((2, 2)),
        d.to_sparse_bsc((2, 1)),
    ]


@pytest.mark.parametrize("which", range(6))
def test_survives_copies_and_files(which: int) -> None:
    t = _some()[which]
    file = io.BytesIO()
    torch.save({"t": t}, file)
    file.seek(0)
    for back in (
        copy.copy(t),
        copy.deepcopy(t) if t.is_sparse else t.clone(),
        pickle.loads(pickle.dumps(t)),
        torch.load(file)["t"],
    ):
        assert back.layout is t.layout and back._nnz() == t._nnz()
        assert torch.equal(back.to_dense(), t.to_dense())
        assert not t.is_sparse or back.is_coalesced() == t.is_coalesced()


@pytest.mark.parametrize("which", range(6))
def test_files_go_both_ways(which: int) -> None:
    oracle = _oracle.load()
    t = _some()[which]
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    theirs = oracle.load(file)
    _compare.assert_same(t, theirs, "saved here")
    file = io.BytesIO()
    oracle.save(theirs, file)
    file.seek(0)
    _compare.assert_same(torch.load(file), theirs, "saved there")


@mindtorch_only
def test_damaged_parts_are_refused() -> None:
    from mindtorch_v2._utils import _rebuild_sparse_tensor
    from mindtorch_v2.serialization import CheckpointError

    bad = torch.tensor([[0, 9]])
    with pytest.raises(CheckpointError, match="found index 9"):
        _rebuild_sparse_tensor(torch.sparse_coo, (bad, torch.tensor([1.0, 2.0]), torch.Size((3,)), False))


def test_invariants_are_switched_for_a_while() -> None:
    check = torch.sparse.check_sparse_tensor_invariants
    i, v = torch.tensor([[5]]), torch.tensor([1.0])
    with check():
        assert check.is_enabled()
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            torch.sparse_coo_tensor(i, v, (2,))
    assert not check.is_enabled()


@mindtorch_only
def test_parts_live_on_other_devices() -> None:
    i, v = torch.tensor([[0, 2, 2]]), torch.tensor([1.0, 2.0, 3.0])
    here = torch.sparse_coo_tensor(i, v, (3,))
    there = here.to("meta")
    # How many entries there are is data, which tensors on meta have none of.
    assert there.is_sparse and there.device.type == "meta" and there._values().is_meta and there._nnz() == 0


@mindtorch_only
def test_a_hole_names_operator_and_layout() -> None:
    s = torch.eye(2).to_sparse()
    with pytest.raises(NotImplementedError, match="aten::sigmoid.*SparseCPU.*torch.sparse_coo"):
        torch.sigmoid(s)
    with pytest.raises(NotImplementedError, match="aten::kron"):
        torch.kron(s, s)
