"""Calls with sparse tensors against PyTorch: result, layout, indices, coalesced or not, and what is refused.

`MINDTORCH_SPARSE=all` takes every dtype.
"""

from __future__ import annotations

import os
import warnings

import pytest

from .. import _oracle
from . import _compare, _world

DTYPES = (
    ("float64", "float32", "int64", "bool", "complex128")
    if os.environ.get("MINDTORCH_SPARSE")
    else ("float64", "int64")
)
UNARY = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg "
    "rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc angle nan_to_num positive conj_physical cos exp "
    "sigmoid"
).split()
# What is asked of a tensor of each layout; `t` stands for it.
EACH = """
t.to_dense()|t.to_sparse()|t.to_sparse_csr()|t.to_sparse_csc()|t.to_sparse_bsr((2,3))|t.to_sparse_bsc((2,2))|t.clone()
t.detach()|t*2|2*t|t/2|t//2|t*t|t+1|-t|t**2|t**3|t.double()|t.to(torch.int32)|t.to(torch.complex64)|t.half()
t.sum()|t.sum(0)|t.sum(1)|t.sum((0,1))|t.sum(dtype=torch.float64)|t.sum(0,keepdim=True)|t.sum((0,1),keepdim=True)
torch.sparse.sum(t,0)|torch.sparse.sum(t,(0,1))|torch.sparse.sum(t,1,dtype=torch.float64)|t.norm()|t.norm(1)|t.any()
t.mean()|t.prod()|t.all()|t.t()|t.transpose(0,1)|t.unsqueeze(0)|t.unsqueeze(1)|t.unsqueeze(-1)|t.squeeze()|t[0,1]
t[1:2]|t[None]|t.index_select(0,torch.tensor([1,0,1]))|t.index_select(1,torch.tensor([1,0,1]))|t.narrow(0,0,1)
t.narrow_copy(0,1,1)|torch.cat([t,t])|torch.cat([t,t],1)|torch.stack([t,t])|torch.stack([t,t],1)|t.view(-1)|t.reshape(-1)
t.expand(2,4,6)|t.repeat(2,2)|torch.zeros_like(t)|torch.zeros_like(t,dtype=torch.int64)|torch.ones_like(t)|cl(t).zero_()
t.stride()|t.is_contiguous()|t.contiguous()|t._nnz()|t.sparse_dim(),t.dense_dim()|t.is_sparse,t.is_sparse_csr|t.coalesce()
t.is_coalesced()|t.values()|t.indices()|t._indices()|t._values()|t.crow_indices()|t.col_indices()|t.ccol_indices()
t.row_indices()|t.type()|t.item()|t.tolist()|t.data_ptr()|t.nbytes|t.numel()|t.storage_offset()|t.is_pinned()|len(t)|str(t)
t.data|copy.copy(t)|t.numpy()|t.eq(t)|torch.equal(t,t)|cl(t).copy_(t)|cl(t).mul_(2)|cl(t).div_(2)|cl(t).neg_()
torch.sparse.softmax(t,0)|torch.sparse.softmax(t,1)|torch.sparse.log_softmax(t,-1)|cl(t).sparse_resize_((8,8),2,0)
cl(t).sparse_resize_and_clear_((8,8),1,1)|t.select(0,99)|t.transpose(0,9)|t.swapaxes(0,1)|t.mT|t.to('meta').shape
t.to_sparse(1)|t.to_sparse(layout=torch.sparse_csr)|t.to_dense(torch.float64)|t.untyped_storage()|t.dim_order()
"""
# What is asked of pairs of a sparse tensor and another.
PAIRS = """
t+r|t*r|r*t|t/r|torch.add(t,r,alpha=2)|cl(r).add_(t)
"""
PRODUCTS = "t@r|torch.mm(t,r)|torch.sparse.mm(t,r)|torch.mv(t,r)|torch.bmm(t,r)|torch.smm(t,r)|torch.hspmm(t,r)"
OTHERS = """
torch.addmm(f45,s,e)|torch.addmm(f45,s,e,beta=2,alpha=3)|torch.addmm(f45,c,e,beta=2,alpha=3)|torch.sparse.addmm(f45,s,e)
torch.addmm(f45,s,es)|torch.addmm(w,s,e)|cl(f45).addmm_(s,e)|torch.sspaddmm(es.t(),s,e)|torch.sparse.sampled_addmm(c,q,w)
torch.sparse.sampled_addmm(c,q,w,beta=2,alpha=3)|torch.sparse.sampled_addmm(s,q,w)|torch.addmv(vec4,c,vec,beta=2,alpha=2)
d.to_sparse(1)|d.to_sparse(3)|d.to_sparse(0)|d.to_sparse(layout=torch.sparse_bsr)|d.to_sparse(1,2)|d.to_sparse_bsr((0,3))
d.to_sparse(layout=torch.sparse_csr,blocksize=(1,1))|d.to_sparse_csr(dense_dim=1)|d.sparse_mask(s)|d.sparse_mask(u)
w.sparse_mask(c)|w.sparse_mask(cc)|w.sparse_mask(b)|w.sparse_mask(bc)|s.sparse_mask(u)|c.sparse_mask(c2)|d.coalesce()
d.values()|d._nnz()|d.is_coalesced()|torch.zeros((3,4),layout=torch.sparse_coo)|torch.zeros((3,4),layout=torch.sparse_csr)
torch.zeros((3,4),layout=torch.sparse_csc)|torch.zeros((5,),layout=torch.sparse_coo)|torch.zeros((5,),layout=torch.sparse_csr)
torch.zeros((3,4),layout=torch.sparse_bsr)|torch.ones((3,4),layout=torch.sparse_coo)|d.new_zeros((3,4),layout=torch.sparse_coo)
torch.zeros_like(d,layout=torch.sparse_coo)|torch.zeros_like(d,layout=torch.sparse_csr)|torch.zeros_like(s,layout=torch.strided)
torch.sparse.spdiags(torch.arange(6.).reshape(2,3),torch.tensor([0,1]),(3,3))
torch.sparse.spdiags(torch.arange(6.).reshape(2,3),torch.tensor([0,-1]),(3,4),torch.sparse_csr)
torch.sparse.spdiags(torch.arange(6.).reshape(2,3),torch.tensor([0,0]),(3,3))
torch.matmul(vec4,s)|x.bmm(torch.ones(2,2,3,dtype=x.dtype))|torch._coalesce(u)|torch.add(d,s,out=torch.empty(0,dtype=d.dtype))
torch.mm(s,e,out=torch.empty(0,dtype=d.dtype))|torch.nn.Parameter(s.detach().double()).shape|s.is_same_size(d)
torch.sparse.mm(c,e,"sum")|torch.sparse.mm(c,e,"mean")|torch.sparse.mm(c,e,"amax")|torch.sparse.mm(c,e,"amin")
torch.sparse.mm(c,e,"prod")|torch.sparse.mm(c,e,"most")|torch.sparse.mm(s,e,"sum")|torch.sparse.mm(cc,e,"mean")
torch.sparse.mm(c,c,"amax")|torch.sparse.mm(c,e[:2],"sum")|torch.sparse.mm(d,e,"sum")|torch.sparse.spsolve(c,vec)
torch.sparse.spsolve(d,vec)|torch.linalg.solve(c,vec)
s.index_add(0,torch.tensor([0]),s)|torch.where(d>0,s,s)|s.masked_fill(d>0,1)|torch.cdist(s,s)|u[0]|h[0]|c[0]|c[0,0]
"""
SPARSE = "s u h hc z c cc b bc x g o ch cb".split()
# PyTorch's answer is memory that nobody wrote, depends on the order in which MKL adds, or is the wrong operand's.
UNLIKE = {
    *("b/b", "c.type()", "cc.type()", "b.type()", "bc.type()", "ch.type()", "cb.type()"),
    *("bc@e", "torch.mm(bc,e)", "torch.sparse.mm(bc,e)", "torch.mv(bc,vec)", "bc@vec", "torch.mv(b,vec)", "b@vec"),
    *("b[0,1]", "c.sparse_mask(c2)", "c*u", "cl(u).mul_(c)", "cl(c).mul_(u)"),
    *("cl(c).add_(c)", "cl(c2).add_(c2)"),
    *("cl(b).add_(b)", "cl(cb).add_(cb)", "cl(ch).add_(ch)"),
}


def _filled(lines: str, **names: str) -> list[str]:
    found = []
    for call in lines.replace("\n", "|").split("|"):
        if call:
            for short, name in names.items():
                call = _replaced(call, short, name)
            found.append(call)
    return found


def _replaced(call: str, short: str, name: str) -> str:
    out, letters = [], set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
    for i, c in enumerate(call):
        before = call[i - 1] if i else " "
        after = call[i + 1] if i + 1 < len(call) else " "
        alone = before not in letters and after not in letters and before not in "'."
        out.append(name if c == short and alone else c)
    return "".join(out)


def _calls() -> dict[str, list[str]]:
    groups = {f"each-{t}": _filled(EACH, t=t) for t in SPARSE}
    groups["unary"] = [f"torch.{n}({t})" for n in UNARY for t in ("s", "u", "hc", "c", "b")]
    groups["unary_in_place"] = [f"cl({t}).{n}_()" for n in UNARY for t in ("s", "u", "c")]
    for t in ("s", "u", "h", "c", "cc", "z"):
        groups[f"pairs-{t}"] = [c for r in ("d", "s", "u", "h", "c", "c2", "vec") for c in _filled(PAIRS, t=t, r=r)]
    for t in ("s", "u", "c", "cc", "b"):
        groups[f"products-{t}"] = [c for r in ("e", "es", "vec", "d", "three") for c in _filled(PRODUCTS, t=t, r=r)]
    groups["others"] = _filled(OTHERS)
    return groups


CALLS = _calls()


def _compare_call(call: str, dtype: str) -> str | None:
    ours, theirs = _world.worlds(dtype)
    want, refusal = _world.outcome(call, theirs)
    if refusal is not None and "INTERNAL ASSERT" in str(refusal):
        return None
    got, error = _world.outcome(call, ours)
    if refusal is not None:
        if error is None:
            return f"no error, expected {type(refusal).__name__}: {refusal}"
        return None if isinstance(error, (type(refusal), RuntimeError)) else f"{error!r}, expected {refusal!r}"
    if error is not None:
        return repr(error)
    try:
        _compare.assert_same(got, want, call, dtype)
    except AssertionError as difference:
        return str(difference)
    return None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", CALLS)
def test_calls(group: str, dtype: str) -> None:
    _oracle.load()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS[group]:
            if call not in UNLIKE:
                difference = _compare_call(call, dtype)
                if difference is not None:
                    found.append(f"{call}: {difference[:300]}")
    assert found == []
