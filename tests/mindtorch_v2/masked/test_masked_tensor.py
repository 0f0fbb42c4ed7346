"""`MaskedTensor` against PyTorch: what calls give, what they refuse, and gradients, by what is printed."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject

# What is asked of a masked tensor `t`, its data `d`, its mask `m`.
CALLS = """
t.stride()|t.layout|t+1|1+t|t-t|t*d|d*t|(t+1).grad_fn|t.sum().grad_fn|t.get_data().grad_fn|t.is_leaf|t.requires_grad
t.sum()|t.mean(1)|t.amax(dim=(0,1))|t.amin(0)|t.prod()|t.var()|t.std(0)|t.argmax()|t.argmin()|t.all()|t.all(0)
t.sum(dim=1,keepdim=True)|t.sum(1).sum()|M.sum(t)|M.sum(t,1)|M.norm(t,2,0)|M.softmax(t,0)|M.mean(t)|M.var(t,0)|M.amax(t,0)
torch.softmax(t,1)|t@t.T|t.masked_fill(m,1)|t.cumsum(0)|t.tolist()|t.numpy()|t[0]|t[:,1:]|t<3|t>3|t.median()|t.any()
t.to(torch.float64).dtype|t.half()|t.int()|t.bfloat16()|t.clone().grad_fn|t.add_(1)|t.detach().add_(1)|t.detach().exp_()
t.shape|t.dim()|t.numel()|len(t)|t.data|str(t)|torch.zeros_like(t)|torch.ones_like(t)|torch.add(t,t,alpha=2)|t.view(3,2)
t.reshape(6)|t.flatten()|t.unbind()|torch.stack([t,t])|torch.cat([t,t])|t.to_tensor(9)|t.pow(2)|t.float()|t.sum().item()
bool(t.sum()>1)|torch.where(m,t,t)|torch.where(m,t,d)|torch.nn.functional.relu(t)|t.squeeze()|t.permute(1,0)
t.expand(2,2,3)|t.transpose(0,1)|t.t().is_contiguous()|t.t().contiguous()|t.split(1)|t.chunk(2)|t.select(1,0)
t.unsqueeze(0)|t+masked_tensor(d,~m)|torch.clamp(t,min=1,max=2)|torch.clamp(t,1,2)|t.exp_()|t.detach().mul_(t.detach())
masked_tensor(d,d)|masked_tensor(d,m[0])|masked_tensor(d,m[:,:2])|masked_tensor([1],m)|masked_tensor(t,m)
masked_tensor(d.bfloat16(),m)|masked_tensor(d.to_sparse(),m)|torch.round(t,decimals=1)|torch.nan_to_num(t)|is_masked_tensor(t)
t.to_sparse()|t.to_sparse().layout|t.to_sparse().sum()|t.to_sparse()+t.to_sparse()|t.to_sparse()*2|t.to_sparse_csr().exp()
t.to_sparse().argmax()|t.to_sparse_csr().mean()|t.to_sparse().to_dense()|t.to_sparse_csr().to_dense()
t.to_sparse().is_contiguous()|t.to_sparse_csr().get_data()|masked_tensor(d[0],m[0]).to_sparse_csr()|t.detach().copy_(t)
t.new_empty_strided((2,3),(3,1)).shape|t.new_empty_strided((3,2),(2,1))|as_masked_tensor(d,m).grad_fn|type(t.get_data())
t==t|torch.maximum(t,t)|t/2|2/t|-t|abs(t)|t.isnan()|t.index_select(0,torch.tensor([0]))|t[torch.tensor([1,0])]|t[m]
masked_tensor(torch.arange(3),torch.tensor([True,False,True]))|masked_tensor(d[0,0],m[0,1])|t._is_any_true()
masked_tensor(m,m)._is_any_true()|t.unfold(0,2,1)|list(t)|M._combine_input_and_mask(M.sum,t,m)
"""
# What is differentiated.
GRADIENTS = """
t.sum()|t.mean()|(t*t).sum()|t.exp().sum()|(torch.softmax(t,1)*t).sum()|t.to_tensor(0).sum()|t.amax()|t.prod()|M.sum(t)
t.get_data().sum()|t.t().contiguous().sum()|t[0].sum()|(t*t.get_data().detach()).sum()|torch.cat([t,t]).sum()
t.view(6).sum()|(t+1).log().mean(0).sum()|(t/t).sum()|t.softmax(0).amax()|(t*2).to_sparse().exp().to_dense().sum()
torch.where(m,t,t).sum()
"""


def split(text: str) -> list[str]:
    return [call for line in text.split("\n") for call in line.split("|") if call]


def world(torch: Any) -> dict[str, Any]:
    masked = importlib.import_module(torch.__name__ + ".masked")
    d = torch.arange(6.0).reshape(2, 3)
    m = torch.tensor([[True, False, True], [False, False, True]])
    names = ("masked_tensor", "as_masked_tensor", "is_masked_tensor")
    found = {name: getattr(masked, name) for name in names}
    return {"torch": torch, "M": masked, "d": d, "m": m, "t": masked.masked_tensor(d, m, requires_grad=True), **found}


def printed(call: str, library: Any, grad: bool = False) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = world(library)
        try:
            result = eval(call, names)
            if grad:
                result.backward()
                result = names["t"].grad
            text = str(result)
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:300]}"
    return re.sub(r"0x[0-9a-f]+", "", text).replace("mindtorch_v2.", "torch.")


@pytest.mark.parametrize("call", split(CALLS))
def test_calls(call: str) -> None:
    assert printed(call, subject) == printed(call, _oracle.load())


@pytest.mark.parametrize("call", split(GRADIENTS))
def test_gradients(call: str) -> None:
    assert printed(call, subject, grad=True) == printed(call, _oracle.load(), grad=True)


def test_norm_is_that_of_what_counts() -> None:
    # PyTorch's own refuses every form of it; there is nothing to compare with.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = world(subject)["t"]
        assert abs(t.norm().get_data().item() - 29**0.5) < 1e-6
        assert t.norm(1, 1).get_data().tolist() == [2.0, 5.0]


def test_making_one_warns_and_copies() -> None:
    d, m = subject.arange(3.0), subject.tensor([True, False, True])
    masked = importlib.import_module(subject.__name__ + ".masked")
    with pytest.warns(UserWarning, match="prototype"):
        t = masked.masked_tensor(d, m)
    d.zero_()
    m.zero_()
    assert t.get_data().tolist() == [0.0, 1.0, 2.0]
    assert t.get_mask().tolist() == [True, False, True]
    with pytest.warns(UserWarning, match="prototype"), pytest.warns(UserWarning, match="not recommended"):
        masked.masked_tensor(subject.ones(3, requires_grad=True), m)


def test_names_are_pytorchs() -> None:
    oracle = _oracle.load()
    theirs = importlib.import_module(oracle.__name__ + ".masked")
    ours = importlib.import_module(subject.__name__ + ".masked")
    assert sorted(theirs.__all__) == sorted(ours.__all__)
    assert all(hasattr(ours, name) for name in theirs.__all__)


def test_allclose_is_refused() -> None:
    t = subject.masked.masked_tensor(subject.ones(2), subject.tensor([True, False]))
    with pytest.raises(TypeError, match="aten.allclose.default"):
        subject.allclose(t, t)
    with pytest.raises(TypeError, match="aten.allclose.default"):
        t.allclose(t)
