"""What is said of operators without a kernel for a sparse layout: PyTorch's type and first words; and composites,
which are their parts for sparse tensors too."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, subject
from . import _compare, _world

pytestmark = [pytest.mark.oracle, mindtorch_only]

# `t` stands for a tensor of each layout.
EACH = """
torch.addcmul(t,t,t)|torch.maximum(t,t)|torch.atan2(t,d)|torch.clamp(t,d,d)|torch.heaviside(t,t)|t.chunk(2)|t.split(1)
t.diagonal()|t.sort()|t.expand(2,4,6)|torch.nn.functional.pad(t,(1,1))|torch.cat([t,t])
torch.cumsum(t,0)|torch.softmax(t,0)|torch.tril(t)|t.topk(1)|torch.logical_and(t,t)
t.index_put((torch.tensor([0]),),torch.tensor(1.0,dtype=torch.float64))|cl(t).unsqueeze_(0)|cl(t).squeeze_()
cl(t).transpose_(0,1)|cl(t).t_()|cl(t).swapaxes_(0,1)|torch.hstack((t,t))|torch.vstack((t,t))|torch.dstack((t,t))
torch.diff(t)|torch.column_stack((t,t))|torch.real(t)|torch.nn.functional.l1_loss(t,t)
torch.addmm(f45,t,e)|torch.mm(w,t.t())|torch.mm(t,e)|torch.mv(t,vec)|cl(w).mul_(t)
cl(t).true_divide_(2)|cl(t).multiply_(2)|cl(t).subtract_(t)|torch.linalg.matrix_power(t,0)|torch.isclose(t,t)
w.expand_as(t)|w.view_as(t)|torch.fft.fft(t)|torch.cdist(t,t)|torch.outer(vec4,t)
torch.cos(t)|torch.exp(t)|torch.sigmoid(t)|torch.log2(t)|torch.logaddexp(t,t)|torch.nn.functional.mse_loss(t,t)|t.repeat(2,1)
torch.nn.functional.elu(t)|torch.nn.functional.silu(t)|torch.round(t,decimals=1)|torch.aminmax(t)|torch.floor_divide(t,t)
torch.masked_scatter(t,w>0,w)|torch.diagonal_scatter(t,vec4)|torch.nn.functional.group_norm(t,2)|t.unfold(0,2,1)
torch.dist(t,t)|torch.dist(w,t)|torch.dist(t,w)|torch.bernoulli(t)|t.flatten(1,1)|t.flatten(0,1)|torch.index_add(t,0,vec4.long(),t)
"""
OTHERS = """
cl(c).resize_(8,6)|cl(c).resize_(2,6)|cl(c).resize_(4,9)|cl(c).resize_(4,3)|cl(c).resize_(6)|cl(s).resize_(8,8)
cl(c).resize_as_(e5.t().to_sparse_csr())|cl(s).resize_as_(torch.ones(9,9,dtype=torch.float64).to_sparse())
cl(h).t_()|cl(h).transpose_(0,1)|torch.mv(w,o)|torch.mul(torch.tensor(2.0,dtype=torch.float64).to_sparse(),vec)
s*torch.ones(2,4,6,dtype=torch.float64)|o*s|torch.tensor(2.0,dtype=torch.float64).to_sparse()*s|cl(vec4).addmv_(c,vec)
torch.sparse.sampled_addmm(cb,torch.ones(2,2,5,dtype=torch.float64),torch.ones(2,5,3,dtype=torch.float64))
torch.sparse.sampled_addmm(cb,torch.ones(2,5,dtype=torch.float64),torch.ones(5,3,dtype=torch.float64))
torch.sparse.sampled_addmm(c,torch.ones(2,3,5,dtype=torch.float64),torch.ones(2,5,6,dtype=torch.float64))
torch.sparse.sampled_addmm(cb,torch.ones(2,2,5,dtype=torch.float64),torch.ones(2,5,4,dtype=torch.float64))
torch.ones(0,5,5).to_sparse_csr()|torch.ones(0,5).to_sparse_csr()|torch.ones(5,0).to_sparse_bsc((1,1))
torch.ones(0,5).to_sparse(1)|torch.ones(2,0,5).to_sparse_csc()|torch.bmm(torch.ones(2,2,2),torch.ones(2,2,2).to_sparse())
torch._sparse_broadcast_to(o,(3,5))|torch.addr(c,vec4,vec)|torch.addr(cc,vec4,vec)|torch.addr(c,vec4,vec,beta=2,alpha=3)
torch.nn.functional.linear(c,c2,vec4)|b.select(0,0)|b.select(1,0)|bc.select(0,0)|bc.select(1,0)
d.to_sparse_bsr((1,1)).select(0,1)|d.to_sparse_bsr((1,2)).select(1,1)|d.to_sparse_bsr((2,1)).select(0,1)
d.to_sparse_bsr((2,1)).select(1,1)|d.to_sparse_bsc((2,1)).select(1,1)|d.to_sparse_bsc((1,2)).select(0,1)
"""
LAYOUTS = ("s", "u", "h", "c", "cc", "b", "bc")
LONGEST = 40


def _calls(t: str | None) -> list[str]:
    lines = [call for call in (EACH if t else OTHERS).replace("\n", "|").split("|") if call]
    return lines if t is None else [_replaced(call, t) for call in lines]


def _replaced(call: str, name: str) -> str:
    from .test_calls import _replaced as by_letter

    return by_letter(call, "t", name)


def _difference(call: str) -> str | None:
    ours, theirs = _world.worlds("float64")
    want, refusal = _world.outcome(call, theirs)
    if refusal is not None and "INTERNAL ASSERT" in str(refusal):
        return None
    got, error = _world.outcome(call, ours)
    if refusal is None:
        if error is not None:
            return repr(error)
        try:
            _compare.assert_same(got, want, call, "float64")
        except AssertionError as difference:
            return str(difference)
        return None
    if error is None:
        return f"no error, expected {refusal!r}"
    if type(error) is not type(refusal):
        return f"{error!r}, expected {refusal!r}"
    mine, words = str(error), str(refusal)
    same = mine.startswith(words[:LONGEST]) or (mine[:14], words[:14]) == ("Could not run ",) * 2
    return None if same else f"{error}, expected {refusal}"


@pytest.mark.parametrize("layout", [*LAYOUTS, None])
def test_types_and_words(layout: str | None) -> None:
    _oracle.load()
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in _calls(layout):
            difference = _difference(call)
            if difference is not None:
                found.append(f"{call}: {difference[:300]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("layout", ("bsr", "bsc"))
@pytest.mark.parametrize("call", ("t + d", "d + t", "d.clone().add_(t)"))
def test_blocks_are_not_added_to_dense_tensors(layout: str, call: str) -> None:
    """PyTorch gives the words of an assertion."""
    for library in (_oracle.load(), subject):
        d = library.ones(4, 4)
        t = getattr(d, f"to_sparse_{layout}")((2, 2))
        with pytest.raises(RuntimeError):
            eval(call, {"t": t, "d": d})
    with pytest.raises(RuntimeError, match=f"layout torch.sparse_{layout} cannot be added to a dense tensor"):
        eval(call, {"t": t, "d": d})


OUTS = ("cumprod(t, 0", "special.airy_ai(t", "argmax(t", "nansum(t", "linalg.cross(t, t", "eye(2", "exp(t")


@pytest.mark.parametrize("call", OUTS)
def test_a_dense_result_is_not_written_to_a_sparse_tensor(call: str) -> None:
    for library in (_oracle.load(), subject):
        t = library.ones(2, 3)
        with pytest.raises(NotImplementedError, match="^Could not run 'aten::.*out' with arguments from the 'SparseC"):
            eval(f"torch.{call}, out=t.to_sparse())", {"torch": library, "t": t})
