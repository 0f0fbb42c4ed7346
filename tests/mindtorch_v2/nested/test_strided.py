"""Calls with strided nested tensors against PyTorch: values, structure, gradients, and what is refused."""

from __future__ import annotations

import io

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from ._told import outcome, split

CALLS = """
torch._native_multi_head_attention(s,s,s,3,1,some(9,3),some(9),some(3,3),some(3),None,True,False,1)|torch._native_multi_head_attention(s,s,s,3,1,some(9,3),some(9),some(3,3),some(3),None,True)
torch._native_multi_head_attention(s,s,s,3,1,some(9,3),some(9),some(3,3),some(3),None,False)[0]|torch._native_multi_head_attention(s,s,s,3,1,some(9,3),some(9),some(3,3),some(3),some(3,4)>0)
torch._native_multi_head_attention(s,some(3,4,3),s,3,1,some(9,3),some(9),some(3,3),some(3))
torch._transformer_encoder_layer_fwd(s,3,1,some(9,3),some(9),some(3,3),some(3),True,True,1e-5,some(3),some(3),some(3),some(3),some(2,3),some(2),some(3,2),some(3))
torch._transformer_encoder_layer_fwd(s,3,1,some(9,3),some(9),some(3,3),some(3),True,False,1e-5,some(3),some(3),some(3),some(3),some(2,3),some(2),some(3,2),some(3))
s|s.dim()|s.size(0)|s.size(1)|s.size(2)|s.shape|s.stride()|s.numel()|s.is_contiguous()|s.unbind()|s.unbind(1)|s.layout|str(s)|repr(r)
s+s|s*s|s-s|s+1|2*s|s/2|s*torch.tensor(2.)|s*some(3)|s+some(2,1,3)|s+s.transpose(1,2)|s.neg()|s.abs()|s.relu()|F.gelu(s)|s.sin()
s.transpose(1,2)|s.transpose(0,1)|s.transpose(1,2).relu()|s.transpose(1,2).contiguous()|s.squeeze(0)|s.squeeze(1)|s.unsqueeze(1)
s.unsqueeze(1).squeeze(1)|s.unsqueeze(0)|s.sum(1)|s.sum(-1,keepdim=True)|s.sum(-1)|s.softmax(-1)|s.softmax(0)|s.clone()|s.detach()
s.view(3,-1,3,1)|s.view(3,3)|s.view(-1,-1,3)|s.reshape(3,-1,1,3)|torch.cat([s,s])|torch.cat([s,some(3)])|s.narrow(0,0,2)|s.narrow(1,0,1)
s[0]|s[0,1]|s[[0]]|s[None]|s.select(0,7)|s.select(1,-1)|s.select(2,-1)|s.select(2,0)|s.select(1,7)|s.chunk(3,-1)|s.chunk(2,-1)|s.chunk(2,1)|s.split_with_sizes([1,2],-1)|s.split_with_sizes([1,1],-1)
s.to_padded_tensor(0.)|s.to_padded_tensor(-1.,(3,5,4))|s.to_padded_tensor(0.,(3,2,2))|s.to_padded_tensor(0.,(3,5))|s.float()|s.bool()
s@s.transpose(1,2)|torch.bmm(s,some(3,3,1))|torch.bmm(s,some(2,3,1))|F.linear(s,some(2,3))|F.linear(s,some(2,3),some(2))
F.linear(s.transpose(1,2),some(2,3))|F.layer_norm(s,(3,),some(3),some(3))|F.layer_norm(s,(3,))|F.dropout(s,0.)|s.is_same_size(s)
s.clone().mul_(2)|s.clone().add_(s)|s.clone().fill_(2.)|s.clone().copy_(s*2)|s.clone().copy_(some(3))|s.clone().zero_()|s.eq(1)|s>0
torch.zeros_like(s)|torch.ones_like(s)|nested.nested_tensor([some(2),some(2,3)])|nested.nested_tensor([[1.,2.],[3.]])|nested.nested_tensor([])
nested.as_nested_tensor(many)|nested.as_nested_tensor(some(2,3,4))|nested.as_nested_tensor(some(3))|nested.as_nested_tensor(3)|s.cumsum(1)
s.permute(0,2,1)|torch.stack([s,s])|s.expand(3,-1,3)|s.max()|s._nested_tensor_size()|s._nested_tensor_strides()|s._nested_tensor_storage_offsets()
torch._nested_tensor_from_mask(some(2,3,2),torch.tensor([[True,True,False],[True,False,False]]))
torch._nested_tensor_from_mask(some(2,3,2),torch.tensor([[True,False,True],[True,False,False]]))
s.exp()|s.cos()|s.abs().sqrt()|s.log()|s.erf()|s.maximum(s)|s.pow(2)|s**s|s.eq(s)|s.ge(0)|s.lt(0)|s.ne(1)|s.clone().exp_()|s.clone().sub_(s)
s.clone().tanh_()|s.clone().uniform_()|s.clone().cos_()|s.all()|s.any()|s.log_softmax(-1)|torch.full_like(s,2.)|torch.rand_like(s)
s.maximum(some(3))|some(3).minimum(s)|torch.addcmul(s,s,s)|s.flatten()|F.cross_entropy(s,s)|F.batch_norm(s,None,None)|s.expand_as(s)
s.positive()|torch.vstack([s,s])|torch.dstack([s,s])|F.group_norm(s,1)|torch.bernoulli(s)|s.isnan()|s.isfinite()
torch._nested_from_padded(some(2,3,2),torch.tensor([[2,2],[1,1]]))|nested.to_padded_tensor(s,1.)|nested.narrow(some(3,5),0,1,2)
"""
GRADIENTS = """
r*2|r+r|r.transpose(1,2)|r.softmax(-1)|r.unbind()[1]|r[0]|r.to_padded_tensor(0.)|F.linear(r,some(5,3))|r@r.transpose(1,2)|r.clone()
r.unsqueeze(1)|r.relu()|r.reshape(3,-1,3,1)|F.layer_norm(r,(3,),some(3),some(3))|r.sum(-1,keepdim=True)
"""


@pytest.mark.parametrize("call", split(CALLS))
def test_calls(call: str) -> None:
    assert outcome(call, torch) == outcome(call, _oracle.load())


@pytest.mark.parametrize("call", split(GRADIENTS))
def test_gradients(call: str) -> None:
    assert outcome(call, torch, "r") == outcome(call, _oracle.load(), "r")


def test_pickles_both_ways() -> None:
    oracle = _oracle.load()
    t = submodule("nested").nested_tensor([torch.ones(2, 3), torch.arange(4.0).reshape(2, 2)])
    file = io.BytesIO()
    torch.save(t, file)
    for library in (torch, oracle):
        file.seek(0)
        back = library.load(file, weights_only=True)
        assert [p.tolist() for p in back.unbind()] == [p.tolist() for p in t.unbind()]
