"""Nested tensors inside `vmap` against PyTorch, and tangents of nested tensors, which PyTorch does not have."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._told import outcome, split

# For either layout in the place of `n`, with a gradient in that of `q`.
CALLS = """
vmap(lambda x:x.sin())(n)|vmap(lambda x:x*2+1)(n)|vmap(lambda x,y:x+y)(n,n)|vmap(lambda x,y:x*y)(n,some(3,1))
vmap(lambda x:x.sum())(n)
vmap(lambda x,y:x*y,in_dims=(0,None))(n,some(3))|vmap(lambda x,y:x.matmul(y),in_dims=(0,None))(n,some(3,2))
vmap(lambda x:x.sum(-1))(n)
vmap(lambda x:x.shape)(n)|vmap(lambda x:x.sin()*x.dim())(n)|vmap(lambda x:x.sin()*x.size(1))(n)
vmap(lambda x:x.sin()*x.size(-1))(n)
vmap(lambda x:x.size(7))(n)|vmap(lambda x:len(x))(n)|vmap(lambda x:x[0])(n)
vmap(lambda x:x.sin() if x.is_nested else x.cos())(n)
vmap(lambda x:x.reshape(-1,3))(n)|vmap(lambda x:x.view(-1,3))(n)|vmap(lambda x:x.unsqueeze(-1))(n)
vmap(lambda x:x.transpose(0,1))(n)
vmap(lambda x,y:torch.cat([x,y],0))(n,n)|vmap(lambda x,y:torch.cat([x,y],1))(n,n)|vmap(lambda x:torch.stack([x,x]))(n)
vmap(lambda x:x.unbind())(n)
vmap(lambda x:x.sin(),in_dims=1)(n)|vmap(lambda x:x.sin(),in_dims=2)(n)|vmap(lambda x:x.sin(),in_dims=-1)(n)
vmap(lambda x:x.sin(),in_dims=9)(n)
vmap(lambda x:x.sin(),out_dims=1)(n)|vmap(lambda x:x.sin(),out_dims=-1)(n)|vmap(lambda x:x,out_dims=None)(n)
vmap(lambda x:some(2))(n)
vmap(lambda x:(x.sin(),x.sum()),out_dims=(0,1))(n)|vmap(lambda x:(x.sin(),x.sum()))(n)|vmap(lambda x:{'a':x.cos()})(n)
vmap(vmap(lambda x:x.sin()))(n)
vmap(lambda x,y:x*y)(n,some(4))|vmap(lambda x:x.softmax(-1))(n)|vmap(lambda x:x.clone())(n)
vmap(lambda x:F.linear(x,some(4,3)))(n)
vmap(lambda x:torch.rand_like(x))(n)|vmap(lambda x:x.detach())(n)|vmap(lambda x:torch.add(x,1,out=some(2)))(n)
vmap(lambda x:torch.max(x,-1).values)(n)|vmap(lambda x:torch.where(x>0,x,-x))(n)|vmap(lambda x:x.mean())(n)
vmap(lambda x:x.split(1,1))(n)
vmap(lambda x:(x*x).sin())(q)|vmap(lambda x:(x*x).sum())(q)|vmap(lambda x:x.contiguous().exp())(n)
vmap(lambda x:F.dropout(x,0.)+x)(n)
"""


def _as(call: str, layout: str) -> str:
    """The call with tensors of a layout."""
    nested, leaf = ("s", "r") if layout == "strided" else ("j", "g")
    called = call.replace("(n", f"({nested}").replace(",n)", f",{nested})").replace("(q", f"({leaf}")
    return called.replace("vmap(", "torch.func.vmap(")


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("call", split(CALLS))
def test_calls(call: str, layout: str) -> None:
    said = _as(call, layout)
    assert outcome(said, torch) == outcome(said, _oracle.load())


def _nested(layout: str, scale: float = 1.0) -> Any:
    parts = [torch.arange(6.0).reshape(2, 3) * scale, torch.arange(3.0).reshape(1, 3) * scale]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return submodule("nested").nested_tensor(parts, layout=getattr(torch, layout))


@pytest.mark.filterwarnings("ignore")
def test_a_write_inside_vmap_is_refused() -> None:
    with pytest.raises(RuntimeError, match="vmap fallback not supported for in-place ops on nested tensors"):
        torch.func.vmap(lambda x: x.relu_())(_nested("jagged"))


@mindtorch_only
@pytest.mark.filterwarnings("ignore")
def test_what_vmap_would_lose_is_refused() -> None:
    n = _nested("jagged")
    vmap, grad = torch.func.vmap, torch.func.grad
    with pytest.raises(RuntimeError, match="not mapped over"):
        vmap(lambda x, y: x * y, in_dims=(None, 0))(n, torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="Only one level of vmap"):
        vmap(lambda x: vmap(lambda y: x * y)(torch.ones(2)))(n)
    with pytest.raises(RuntimeError, match="gradient is taken inside"):
        vmap(grad(lambda w, x: (w * x).sum()), in_dims=(None, 0))(torch.ones(3), n)


@mindtorch_only
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_tangents_are_those_of_the_values(layout: str) -> None:
    forward_ad = submodule("autograd.forward_ad")
    n = _nested(layout)
    with forward_ad.dual_level():
        result = forward_ad.make_dual(n, n * 2).sin()
        primal, tangent = forward_ad.unpack_dual(result)
        for value, along, x in zip(primal.unbind(), tangent.unbind(), n.unbind()):
            torch.testing.assert_close(value, x.sin())
            torch.testing.assert_close(along, x.cos() * x * 2)
        assert forward_ad.unpack_dual(primal).tangent is None
    value, along = torch.func.jvp(lambda x: (x * x).to_padded_tensor(0.0), (n,), (n,))
    torch.testing.assert_close(along, 2 * value)


@mindtorch_only
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_gradients_by_nested_tensors(layout: str) -> None:
    n = _nested(layout)
    found = torch.func.grad(lambda x: (x * x).to_padded_tensor(0.0).sum())(n)
    assert found.is_nested and found.layout is n.layout
    for g, x in zip(found.unbind(), n.unbind()):
        torch.testing.assert_close(g, 2 * x)
    with pytest.raises(NotImplementedError, match="of layout"):
        torch.func.jacrev(lambda x: x.sin())(n)
