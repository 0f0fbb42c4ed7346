"""Calls with jagged nested tensors against PyTorch: values, structure, gradients, and what is refused."""

from __future__ import annotations

import copy
import importlib
import io
import subprocess
import sys
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._told import outcome, split, told, total, world

CALLS = """
1-j|torch.rsub(j,2,alpha=3)|torch.rsub(j,j)|j.__rsub__(2.)|bool(j)
j|j.shape|j.size(0)|j.dim()|j.numel()|j.layout|j.is_nested|j.values()|j.offsets()|j.lengths()|h.lengths()|h|h.numel()
j.unbind()|j.unbind(1)|j.to_padded_tensor(0.)|j.to_padded_tensor(-1.,(3,6,3))|w.to_padded_tensor(5.)|h.to_padded_tensor(0.)
j+1|1+j|j*j|j-j.clone()|j*some(3)|j*some(1,1,3)|j*some(3,1,3)|j*some(2,1,3)|some(3,1,3)*j|j+some(3,3)|j+w|j+h|h*2|h*h
j[...,:1]*some(3,1,4)|some(3,1,4)-j[...,:1]|j[...,:1]*some(3,4,5)|j*some(3,1,2)|j[...,:1].clone().mul_(some(3,1,4))
j>0|j==j|j.abs()|-j|j.exp()|j.relu()|F.gelu(j)|F.silu(w)|j.clamp(-1,1)|j.pow(2)|j/2|j.sigmoid()|torch.maximum(j,j)
torch.where(j>0,j,-j)|torch.where(some(3)>0,j,j)|j.logical_not()|j.float().dtype|j.double()
j.to(torch.float32)|j.clone()|h.clone()|h.contiguous()|j.detach()|g.detach().requires_grad|j.contiguous()|j.is_contiguous()
torch.zeros_like(j)|torch.ones_like(w)|torch.full_like(j,2.)|torch.empty_like(j).shape|torch.randn_like(j).shape|j.new_zeros(())
j.sum()|j.sum(0)|j.sum(1)|j.sum(2)|j.sum(-1)|j.sum((1,2))|j.sum((0,1))|j.sum((0,1,2))|j.sum(1,keepdim=True)|h.sum(1)|h.sum(2)
j.mean()|j.mean(1)|j.mean(2)|w.mean(-1)|w.mean((2,3))|j.mean(1,keepdim=True)|j.mean((1,2))|j.amax(1)|j.amin(1)|j.amax(2)
j.max(1)|j.min(1)[0]|j.max(2)[1]|j.max()|j.min()|j.prod(1)|j.prod(2)|j.any(1)|j.all(2)|j.all()|j.argmax(1)|j.argmax(2)|j.var(2)
j.softmax(-1)|j.softmax(1)|j.softmax(0)|w.softmax(2)|j.log_softmax(-1)|j.log_softmax(1)|h.softmax(1)|j.cumsum(1)|j.sort(2)
F.layer_norm(j,(3,))|F.layer_norm(j,(3,),some(3),some(3))|F.layer_norm(j,(j.size(1),3))|F.layer_norm(w,(4,))|j.norm()
F.rms_norm(j,(3,))|F.linear(j,some(5,3))|F.linear(j,some(5,3),some(5))|F.linear(h,some(5,3))|F.linear(w,some(2,4))
j@some(3,4)|w@some(4,2)|j@some(3,3,2)|j.transpose(1,2)@j|j@j.transpose(1,2)|torch.bmm(j,some(3,3,2))|j@some(3)|some(2,3)@j.transpose(1,2)
j.transpose(1,2)|j.transpose(0,1)|w.transpose(2,3)|w.transpose(1,2)|w.transpose(1,2).transpose(1,2)|w.permute(0,2,1,3)|j.permute(1,0,2)
j.unsqueeze(1)|j.unsqueeze(-1)|j.unsqueeze(0)|j.unsqueeze(2).squeeze(2)|j.squeeze(0)|w.flatten(2)|w.flatten(1)|w.flatten(-2,-1)
w.view(3,-1,8)|w.view(3,w.size(1),8)|w.view(-1,8)|w.reshape(3,-1,8)|j.unflatten(2,(3,1))|j.unflatten(0,(3,1))|w.view(3,-1,2,2,2)
j.expand(3,j.size(1),3)|j.unsqueeze(2).expand(3,j.size(1),4,3)|j.expand(3,4,3)|j.split(1,2)|j.split([1,2],-1)|j.split(1,1)
j.chunk(3,-1)|j.chunk(2,0)|j.chunk(2,1)|j.narrow(2,0,2)|j.narrow(1,0,1)|j[0]|j[-1]|j[...,:2]|j.select(2,0)|j.select(1,0)
torch.cat([j,j],2)|torch.cat([j,j],1)|torch.cat([j,j],0)|torch.cat([j,some(1,1,3)],2)|torch.stack([j,j],2)|torch.stack([j,j],-1)
F.embedding(words,some(4,2))|F.dropout(j,0.)|F.dropout(j,0.5,training=False)|torch.is_same_size(j,j)|torch.is_same_size(j,w)
j.clone().add_(1)|j.clone().mul_(j)|j.clone().zero_()|j.clone().fill_(3.)|j.clone().copy_(j*2)|j.clone().relu_()|g.add_(1)
F.scaled_dot_product_attention(w.transpose(1,2),w.transpose(1,2),w.transpose(1,2))
F.scaled_dot_product_attention(w,w,w)|F.scaled_dot_product_attention(j,j,some(3,4,3))|F.scaled_dot_product_attention(j,j,j,some(4,4)>0)
nested.nested_tensor(many,layout=torch.jagged)|nested.as_nested_tensor(many,layout=torch.jagged)|nested.nested_tensor([],layout=torch.jagged)
nested.as_nested_tensor(some(2,3,4),layout=torch.jagged)|nested.nested_tensor([some(2,3),some(3,2)],layout=torch.jagged)
nested.nested_tensor([some(2,3),some(2,5)],layout=torch.jagged)|nested.nested_tensor([some(2),some(2,3)],layout=torch.jagged)
nested.nested_tensor([[1.,2.],[3.]],layout=torch.jagged)|nested.nested_tensor([1.,2.],layout=torch.jagged)|nested.nested_tensor(many,layout=torch.sparse_coo)
nested.narrow(some(3,5),1,torch.tensor([0,1,2]),torch.tensor([2,3,1]),layout=torch.jagged)|nested.narrow(some(3,5),1,1,2,layout=torch.jagged)
nested.narrow(some(3,5),0,1,2,layout=torch.jagged)|nested.narrow(some(3,5),1,'a',2)|nested.nested_tensor_from_jagged(some(6,2),lengths=torch.tensor([2,4]))
nested.nested_tensor_from_jagged(some(6,2))|nested.nested_tensor_from_jagged(some(2,6),torch.tensor([0,2,6]),jagged_dim=2)
nested.masked_select(some(3,4),some(3,4)>0)|j.masked_select(j>0)|nested.nested_tensor_from_jagged(some(6,2),torch.tensor([0,2,6]),jagged_dim=0)
torch._nested_get_values(j)|torch._nested_get_offsets(j)|torch._nested_get_ragged_idx(w.transpose(1,2))|torch._nested_get_lengths(h)
j.shape==w.shape[:2]+(3,)|j.size(1)==w.size(1)|j.size(1)==4|j.size(1)>=1|isinstance(j.size(1),torch.SymInt)|isinstance(j,torch.Tensor)
j.transpose(1,2).to_padded_tensor(0.)|j.tolist()|j.item()|j._max_seqlen|j._min_seqlen|str(j)|repr(w)
"""
# Of each: the sum of the results, differently weighted, is differentiated.
GRADIENTS = """
g*2|g*g+g|g.exp()|g.mean()|g.softmax(-1)|g.unbind()[1]|g[2]
F.layer_norm(g,(3,))|F.linear(g,some(5,3))|g@some(3,2)|g.transpose(1,2)|g.to_padded_tensor(0.)|g.values()*3|g.chunk(3,-1)[1]
torch.cat([g,g*2],2)|g.clone().mul_(2)|torch.where(g>0,g,g*3)|g*some(3)|F.gelu(g)
F.linear(g,some(1,3))*some(3,1,4)|g.float().double()|(g*1).add_(g)|g.transpose(1,2)@g
"""
# What PyTorch has no derivative of, or a wrong one: the same of one of the many, which is `p`.
OF_EACH = {
    "g.sum(1)": "p.sum(0)",
    "g.sum(2)": "p.sum(1)",
    "g.amax(2)": "p.amax(1)",
    "g.prod(2)": "p.prod(1)",
    "g.mean(1)": "p.mean(0)",
    "g.softmax(1)": "p.softmax(0)",
    "g.unsqueeze(1)*2": "p.unsqueeze(0)*2",
    "g.split([1,2],-1)[1]": "p.split([1,2],-1)[1]",
    "g.narrow(2,1,2)": "p.narrow(1,1,2)",
    "g.unflatten(2,(3,1)).sum(3)": "p.unflatten(1,(3,1)).sum(2)",
    "F.layer_norm(g,(g.size(1),3))": "F.layer_norm(p,p.shape)",
    "F.rms_norm(g,(3,))": "F.rms_norm(p,(3,))",
}


@pytest.mark.parametrize("call", split(CALLS))
def test_calls(call: str) -> None:
    assert outcome(call, torch) == outcome(call, _oracle.load())


@pytest.mark.parametrize("call", split(GRADIENTS))
def test_gradients(call: str) -> None:
    assert outcome(call, torch, "g") == outcome(call, _oracle.load(), "g")


@pytest.mark.parametrize("call", OF_EACH)
def test_gradients_are_those_of_each(call: str) -> None:
    names = world(torch)
    total(eval(call, names)).backward()
    leaves = [t.clone().requires_grad_() for t in names["many"]]
    for p in leaves:
        total(eval(OF_EACH[call], {**names, "p": p})).backward()
    torch.testing.assert_close(names["g"].grad.values(), torch.cat([p.grad for p in leaves]))


def _many(sizes: list[int], *rest: int) -> list[Any]:
    gen = torch.Generator().manual_seed(3)
    return [torch.randn(n, *rest, dtype=torch.float64, generator=gen) for n in sizes]


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_each(causal: bool) -> None:
    nested = submodule("nested")
    sdpa = torch.nn.functional.scaled_dot_product_attention
    dense = [_many([3, 5, 1], 2, 4) for _ in range(3)]
    leaves = [[t.clone().requires_grad_() for t in many] for many in dense]
    offsets = torch.tensor([0, 3, 8, 9])
    given = [nested.nested_tensor_from_jagged(torch.cat(many), offsets).requires_grad_() for many in dense]
    found = sdpa(*[t.transpose(1, 2) for t in given], is_causal=causal)
    found.values().sum().backward()
    for i, part in enumerate(found.unbind()):
        own = sdpa(*[many[i].transpose(0, 1).unsqueeze(0) for many in leaves], is_causal=causal)[0]
        torch.testing.assert_close(part, own)
        own.sum().backward()
    for t, many in zip(given, leaves):
        torch.testing.assert_close(t.grad.values(), torch.cat([x.grad for x in many]))


def test_derivatives_of_derivatives() -> None:
    nested = submodule("nested")
    t = nested.nested_tensor(_many([2, 3], 2), layout=torch.jagged, requires_grad=True)
    (first,) = torch.autograd.grad((t**3).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), t)
    torch.testing.assert_close(second.values(), (36 * t.detach().values() ** 3))


def test_a_view_shares_memory_and_a_copy_does_not() -> None:
    nested = submodule("nested")
    values = torch.arange(6.0)
    t = nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 6]))
    t.add_(1)
    assert values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert t._is_view()
    assert t._base is values
    own = nested.nested_tensor([values], layout=torch.jagged)
    own.zero_()
    assert values[0] == 1.0


def test_pickles_both_ways() -> None:
    oracle = _oracle.load()
    nested = submodule("nested")
    t = nested.nested_tensor(_many([2, 3], 2), layout=torch.jagged, requires_grad=True)
    for weights_only in (False, True):
        file = io.BytesIO()
        torch.save(t, file)
        file.seek(0)
        back = torch.load(file, weights_only=weights_only)
        assert back.requires_grad
        torch.testing.assert_close(back.values(), t.values())
        assert back.offsets().tolist() == [0, 2, 5]
    theirs = oracle.nested.nested_tensor([oracle.ones(2, 3), oracle.ones(1, 3)], layout=oracle.jagged)
    file = io.BytesIO()
    oracle.save(theirs, file)
    importlib.import_module(torch.__name__ + "._dynamo.decorators")
    for weights_only in (False, True):
        file.seek(0)
        assert torch.load(file, weights_only=weights_only).offsets().tolist() == [0, 2, 3]


def test_deep_copies_are_leaves_of_their_own() -> None:
    nested = submodule("nested")
    t = nested.nested_tensor(_many([2, 3], 2), layout=torch.jagged, requires_grad=True)
    own = copy.deepcopy(t)
    assert own.is_leaf
    assert own.requires_grad
    own.detach().zero_()
    assert t.detach().values().abs().sum() > 0


@mindtorch_only
def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys, mindtorch_v2 as t; x = t.ones(2, requires_grad=True); (x * x).sum().backward(); "
        "print([m for m in sys.modules if '_ragged' in m or 'nested' in m.split('.')[-1] and '_nested' not in m "
        "or 'maskedtensor' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_refusal_names_operator_and_layout() -> None:
    nested = submodule("nested")
    t = nested.nested_tensor(_many([2, 3], 2), layout=torch.jagged)
    with pytest.raises(NotImplementedError, match="cumsum"):
        t.cumsum(1)
    with pytest.raises(NotImplementedError, match="sort"):
        torch.sort(t)


WRONG_SIZES = """
j+some(3,5,3)|j+some(3,3,3)|j+some(3,1,3)|j+some(3,4,1)|j+some(3,4,3)|some(3,5,3)*j|torch.einsum('bij,jk->bik',j,some(3,2))
torch.einsum('bij,bij->b',j,j)
"""


@pytest.mark.oracle
def test_dense_operands_of_a_wrong_ragged_size() -> None:
    """Type and first words of PyTorch's refusal, or the same result."""
    ours, theirs = world(torch), world(_oracle.load())
    for call in split(WRONG_SIZES):
        found: list[tuple[str, Any]] = []
        for names in (ours, theirs):
            try:
                found.append(("value", told(eval(call, dict(names)))))
            except RuntimeError as error:
                found.append(("RuntimeError", str(error)))
        (kind, mine), (wanted, expected) = found
        assert kind == wanted, (call, mine, expected)
        assert mine == expected if kind == "value" else mine.startswith(expected[:60]), (call, mine, expected)
