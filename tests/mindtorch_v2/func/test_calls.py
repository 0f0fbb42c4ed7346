"""Calls of `torch.func` against PyTorch: values, and the type and first line of what is refused.

Invariant: a call is one expression over a few fixed tensors, and both libraries see the same ones.
"""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = [pytest.mark.oracle, mindtorch_only]

CALLS = """
vmap(lambda x:x)(3) | vmap(lambda x:x)() | vmap(lambda x,y:x)(x,y) | vmap(lambda x:x,in_dims=None)(x)
vmap(lambda x:x,in_dims=[0])(x) | vmap(lambda x:x,in_dims=({"a":0},))(x) | vmap(lambda x:x,in_dims=2)(x)
vmap(lambda x:x,in_dims=-3)(x) | vmap(lambda x:x,in_dims=-1)(x) | vmap(lambda x:x,in_dims=(0,0))(x)
vmap(lambda x:x,in_dims="a")(x) | vmap(lambda x:x,in_dims=(0.5,))(x) | vmap(lambda x,y:x*y,in_dims=(0,None))(x,2)
vmap(lambda x,y:x*y)(x,2) | vmap(lambda x:x,out_dims="a")(x) | vmap(lambda x:x,out_dims=(0,0))(x)
vmap(lambda x:(x,x),out_dims=(0,))(x) | vmap(lambda x:(x,x),out_dims=(0,1))(x)
vmap(lambda x:(x,x),out_dims=(0,2))(x) | vmap(lambda x:(x,x),out_dims=-2)(x) | vmap(lambda x:3)(x)
vmap(lambda x:None)(x) | vmap(lambda x:None,out_dims=None)(x) | vmap(lambda x:[x,3],out_dims=[0,None])(x)
vmap(lambda x:(x,3))(x) | vmap(lambda x:{"a":x,"b":[x,x*2]})(x)
vmap(lambda d:d["a"]+d["b"],in_dims=({"a":0,"b":None},))({"a":x,"b":y})
vmap(lambda d:d["a"]+d["b"],in_dims=({"a":0,"c":None},))({"a":x,"b":y})
vmap(lambda l:l[0]+l[1],in_dims=([0,None],))([x,y]) | vmap(lambda x,*,k:x*k)(x,k=2)
vmap(lambda x,*,k:x*k)(x,k=torch.tensor(2.)) | vmap(lambda x:x.item())(x[:,0]) | vmap(lambda x:bool(x>0))(x[:,0])
vmap(lambda x:x.nonzero())(x) | vmap(lambda x:x[x>0.5])(x) | vmap(lambda x:float(x))(x[:,0])
vmap(lambda x:int(x))(x[:,0]) | vmap(lambda x:x.tolist())(x) | vmap(lambda x:x.numpy())(x)
vmap(lambda x:x.data_ptr())(x) | vmap(lambda x:torch.unique(x))(x) | vmap(lambda x:x.masked_select(x>0))(x)
vmap(lambda x:torch.equal(x,x))(x) | vmap(lambda x:torch.allclose(x,x))(x) | vmap(lambda x:x if x.sum()>0 else -x)(x)
vmap(lambda x:range(x)[0])(I[:,0]) | vmap(lambda x:x.shape[0]*x)(x) | vmap(lambda x:x.size(0)*x)(x)
vmap(lambda x:x.dim()*x)(x) | vmap(lambda x:x.numel()*x)(x) | vmap(lambda x:len(x)*x)(x)
vmap(lambda x:torch.tensor([1.,2.]))(x) | vmap(lambda x:torch.zeros(2))(x) | vmap(lambda x:torch.zeros_like(x))(x)
vmap(lambda x:x.new_zeros(4))(x) | vmap(lambda x:x.new_full((2,),3.))(x) | vmap(lambda x:x.new_tensor([2.]))(x)
vmap(lambda x:torch.full_like(x,2))(x) | vmap(lambda x:torch.tensor([x,x]))(x[:,0])
vmap(lambda x:torch.as_tensor(x))(x) | vmap(lambda x:torch.arange(3)*x)(x)
vmap(lambda x:torch.zeros(3,dtype=torch.float64).add_(x))(x) | vmap(lambda x:torch.zeros_like(x).add_(x))(x)
vmap(lambda x:y.clone().add_(x))(x) | vmap(lambda x:y.clone().copy_(x))(x)
vmap(lambda x:torch.zeros(3).index_fill_(0,torch.tensor([0]),x[0]))(x)
vmap(lambda x:torch.add(x,1,out=torch.zeros(3)))(x) | vmap(lambda x:x.set_(x))(x.clone())
vmap(lambda x:x.requires_grad_())(x) | vmap(lambda x:x.backward())(x) | vmap(lambda x:x.detach_())(x.clone())
vmap(lambda x:x.t_())(B.clone()) | vmap(lambda x:x.unsqueeze_(0))(x.clone()) | vmap(lambda x:x.squeeze_())(x.clone())
vmap(lambda x:x.transpose_(0,1))(B.clone()) | vmap(lambda x:torch.rand(2))(x)
vmap(lambda x:torch.rand(2).shape[0]*x,randomness="same")(x) | vmap(lambda x:torch.randn_like(x),randomness="bad")(x)
vmap(lambda x:torch.nn.functional.dropout(x))(x) | vmap(lambda x:torch.nn.functional.dropout(x),randomness="same")(x)
vmap(lambda x:torch.bernoulli(x.sigmoid()),randomness="same")(x)
vmap(lambda x:x.normal_(),randomness="error")(x.clone())
vmap(lambda x:y.clone().normal_(),randomness="different")(x) | vmap(lambda x:torch.randperm(3),randomness="error")(x)
vmap(lambda x:torch.multinomial(x,1),randomness="error")(x) | vmap(lambda x:x.sin(),chunk_size=0)(x)
vmap(lambda x:x.sin(),chunk_size=-1)(x) | vmap(lambda x:x.sin(),chunk_size=1)(x)
vmap(lambda x:x.sin(),chunk_size=5)(x) | vmap(lambda x:(x.sin(),{"a":x}),chunk_size=1,out_dims=(1,0))(x)
vmap(lambda x,y:x*y,in_dims=(1,0),chunk_size=2)(x,y) | vmap(vmap(lambda x:x.sum()))(B)
vmap(vmap(lambda x,y:x*y,in_dims=(0,None)),in_dims=(None,0))(x,y) | vmap(lambda x:vmap(lambda y:x*y)(y))(x[:,0])
vmap(lambda x:vmap(lambda y:x.sum()*y)(x))(x) | vmap(torch.sin)(x) | vmap(functools.partial(torch.add,y))(x)
vmap(lambda x:x.sum(0))(x) | vmap(lambda x:x.sum(1))(x) | vmap(lambda x:x.sum(-2))(x)
vmap(lambda x:x.transpose(0,1))(x) | vmap(lambda x:x@x)(x) | vmap(lambda x:x@B[0])(x)
vmap(lambda x:torch.dot(x,y))(x) | vmap(torch.cat)([x,x]) | vmap(lambda x,y:torch.stack([x,y]))(x,x)
vmap(lambda x:x[0])(x) | vmap(lambda x:x[..., None])(x) | vmap(lambda x:x[torch.tensor([0,2])])(x)
vmap(lambda x,i:x[i])(x,torch.tensor([0,2])) | vmap(lambda i:y[i])(torch.tensor([0,2])) | vmap(lambda x:x[5])(x)
vmap(lambda x:x[None,[0,1]])(x) | vmap(lambda x,i:x.index_select(0,i))(x,I%3) | vmap(lambda x,i:x.gather(0,i))(x,I%3)
vmap(lambda i:y.gather(0,i))(I%3) | vmap(lambda x,i:x.scatter(0,i,1.))(x,I%3)
vmap(lambda x,i:torch.zeros(3,dtype=torch.float64).scatter_(0,i,x))(x,I%3)
vmap(lambda x,i:torch.zeros(3,dtype=torch.float64).index_add_(0,i,x))(x,I%3)
vmap(lambda x,i:torch.zeros(3,dtype=torch.float64).index_put_((i,),x))(x,I%3)
vmap(lambda x,i:x.index_put((i,),x,accumulate=True))(x,I%3) | grad(lambda x:x.sin())(x)
grad(lambda x:x.sum().item())(x) | grad(lambda x:3)(x) | grad(lambda x:(x.sum(),x))(x)
grad(lambda x:(x.sum(),x),has_aux=True)(x) | grad(lambda x:(x.sum(),3),has_aux=True)(x)
grad(lambda x:(x.sum(),{"a":x*2}),has_aux=True)(x) | grad(lambda x:x.sum(),has_aux=True)(x)
grad(lambda x:(x.sum(),x,x),has_aux=True)(x) | grad(lambda x,y:(x*y).sum(),argnums=1)(x,y)
grad(lambda x,y:(x*y).sum(),argnums=(0,1))(x,y) | grad(lambda x,y:(x*y).sum(),argnums=(1,))(x,y)
grad(lambda x,y:(x*y).sum(),argnums=-1)(x,y) | grad(lambda x,y:(x*y).sum(),argnums=2)(x,y)
grad(lambda x,y:(x*y).sum(),argnums=(0,0))(x,y) | grad(lambda x,y:(x*y).sum(),argnums=(0,-2))(x,y)
grad(lambda x,y:(x*y).sum(),argnums=())(x,y) | grad(lambda x,y:(x*y).sum(),argnums="a")(x,y)
grad(lambda x,y:(x*y).sum(),argnums=(0,2))(x,y) | grad(lambda x:x.sum())(I) | grad(lambda x:x.sum())(3)
grad(lambda x:x["a"].sum())({"a":x}) | grad(lambda x:x["a"].sum())({"a":x,"b":I})
grad(lambda x:x[0].sum()+x[1].sum())([x,y]) | grad(lambda x:y.sum())(x) | grad(lambda x:x.detach().sum())(x)
grad(lambda x:x.sum().real)(x*1j) | grad(lambda x:x.sum())(x*1j) | grad(lambda x:x.data.sum())(x)
grad(lambda x:x.requires_grad_().sum())(x) | grad(lambda x:torch.no_grad()(lambda:x.sum())())(x)
torch.no_grad()(lambda:grad(lambda x:x.pow(2).sum())(x))() | grad(lambda x:grad(lambda y:(x*y).sum())(x).sum())(x)
grad(lambda x:x.backward())(x) | grad(lambda x:torch.autograd.grad(x.pow(2).sum(),x)[0].sum())(x)
grad(lambda x:torch.autograd.grad(x.pow(2).sum(),x,create_graph=True)[0].sum())(x)
grad_and_value(lambda x:x.pow(2).sum())(x) | grad_and_value(lambda x:(x.pow(2).sum(),x),has_aux=True)(x)
vjp(lambda x:x.sin(),x)[1](x) | vjp(lambda x:x.sin(),x)[1](y) | vjp(lambda x:(x.sin(),x.cos()),x)[1]((x,x))
vjp(lambda x:(x.sin(),x.cos()),x)[1](x) | vjp(lambda x:{"a":x.sin()},x)[1]({"a":x})
vjp(lambda x:{"a":x.sin()},x)[1]({"b":x}) | vjp(lambda x:3,x) | vjp(lambda x:(x,3),x) | vjp(lambda x:[],x)
vjp(lambda x:(x.sin(),x),x,has_aux=True) | vjp(lambda x:x.sin(),x,has_aux=True) | vjp(lambda x:x.sin())
vjp(lambda x,y:x*y,x,y)[1](x) | vjp(lambda x:x.sin(),3) | vjp(lambda x:x.sin(),I)
vjp(lambda x:x.sin(),x)[1](x.float()) | vjp(lambda x:x.sin(),x)[1](I) | jvp(lambda x:x.sin(),(x,),(x,))
jvp(lambda x:x.sin(),x,x) | jvp(lambda x:x.sin(),(x,),(y,)) | jvp(lambda x:x.sin(),(x,),(x,x))
jvp(lambda x:x.sin(),(x,),[x]) | jvp(lambda x:x.sin(),(),()) | jvp(lambda x:x.sin(),(3,),(3,))
jvp(lambda x:x.sin(),(x,),(3,)) | jvp(lambda x:x.sin(),(I,),(I,)) | jvp(lambda x:x.sin(),(x,),(x.float(),))
jvp(lambda x:3,(x,),(x,)) | jvp(lambda x:(x,3),(x,),(x,)) | jvp(lambda x:[],(x,),(x,))
jvp(lambda x:(x,y),(x,),(x,)) | jvp(lambda x:(x.sin(),x),(x,),(x,),has_aux=True)
jvp(lambda x:x.sin(),(x,),(x,),has_aux=True) | jvp(lambda x:(x.sin(),3),(x,),(x,),has_aux=True)
jvp(lambda x:y,(x,),(x,)) | jvp(lambda x:y,(x,),(x,),strict=True) | jvp(lambda x:x.detach(),(x,),(x,))
jvp(lambda x:x.long(),(x,),(x,)) | jvp(lambda x:x>0,(x,),(x,)) | jvp(lambda x:x.clone().mul_(x),(x,),(x,))
jvp(lambda x:x.clone().fill_(1),(x,),(x,)) | jvp(lambda x:torch.zeros_like(x).copy_(x),(x,),(x,))
jvp(lambda x,y:x*y,(x,y),(x,y)) | jvp(lambda d:d["a"]*2,({"a":x},),({"a":x},))
jvp(lambda x:jvp(lambda y:x*y,(x,),(x,))[1],(x,),(x,)) | jvp(grad(lambda x:x.pow(3).sum()),(x,),(x,))
grad(lambda x:jvp(lambda x:x.pow(3),(x,),(x,))[1].sum())(x) | jacrev(lambda x:x.sin())(y)
jacrev(lambda x:x.sin(),chunk_size=1)(y) | jacrev(lambda x:x.sin(),chunk_size=2)(y)
jacrev(lambda x:x.sin(),chunk_size=0)(y) | jacrev(lambda x:x.sin(),chunk_size=-1)(y)
jacrev(lambda x:(x.sin(),x.sum()))(y) | jacrev(lambda x:{"a":x.sin()})(y)
jacrev(lambda x:(x.sin(),x),has_aux=True)(y) | jacrev(lambda x,z:x*z,argnums=(0,1))(y,y)
jacrev(lambda x,z:x*z,argnums=(0,))(y,y) | jacrev(lambda x:3)(y) | jacrev(lambda x:(x,3))(y)
jacrev(lambda x:x.sin())(I) | jacrev(lambda x:x.sin())(3) | jacrev(lambda x:x.new_zeros(0))(y)
jacrev(lambda x:y)(y) | jacrev(lambda x:x*1j)(y) | jacrev(lambda x:x.abs())(y*1j) | jacfwd(lambda x:x.sin())(y)
jacfwd(lambda x:(x.sin(),x.sum()))(y) | jacfwd(lambda x:{"a":x.sin()})(y)
jacfwd(lambda x:(x.sin(),x),has_aux=True)(y) | jacfwd(lambda x,z:x*z,argnums=(0,1))(y,y) | jacfwd(lambda x:3)(y)
jacfwd(lambda x:x.sin())(I) | jacfwd(lambda x:torch.rand(3)*x)(y)
jacfwd(lambda x:torch.rand(3).shape[0]*x,randomness="same")(y) | jacfwd(lambda x:y)(y) | jacfwd(lambda x:x*1j)(y)
jacfwd(lambda x:x.new_zeros(0))(y) | hessian(lambda x:x.pow(3).sum())(y)
hessian(lambda x,z:(x*z).sum(),argnums=(0,1))(y,y) | linearize(lambda x:x.sin(),y)[1](y)
linearize(lambda x:x.sin(),y)[0] | linearize(lambda x:x.sin(),y)[1](x) | linearize(lambda x:x.sin(),y)[1](y.float())
linearize(lambda x,z:(x*z,x),y,y)[1](y,y) | linearize(lambda x:3,y) | functionalize(lambda x:x.clone().add_(1))(x)
functionalize(lambda x:x.add_(1))(x) | functionalize(lambda x:x.sin(),remove="bad")(x)
functionalize(lambda x:x.view(6).mul_(2),remove="mutations_and_views")(x.clone())
vmap(functionalize(lambda x:x.clone().add_(1)))(x) | functionalize(vmap(lambda x:x.clone().add_(1)))(x)
functionalize(grad(lambda x:x.clone().mul_(2).sum()))(x) | grad(functionalize(lambda x:x.clone().mul_(2).sum()))(x)
jvp(functionalize(lambda x:x.clone().mul_(2)),(x,),(x,)) | vmap(lambda x:ones(3).sub_(x))(x)
vmap(lambda x:ones(3).mul_(x))(x) | vmap(lambda x:ones(3).div_(x))(x) | vmap(lambda x:ones(3).pow_(x))(x)
vmap(lambda x:ones(3).atan2_(x))(x) | vmap(lambda x:ones(3).remainder_(x))(x) | vmap(lambda x:ones(3).fmod_(x))(x)
vmap(lambda x:ones(3).xlogy_(x))(x) | vmap(lambda x:ones(3).hypot_(x))(x) | vmap(lambda x:ones(3).copysign_(x))(x)
vmap(lambda x:ones(3).clamp_min_(x))(x) | vmap(lambda x:ones(3).clamp_(x))(x) | vmap(lambda x:ones(3).copy_(x))(x)
vmap(lambda x:ones(3).eq_(x))(x) | vmap(lambda x:ones(3).lt_(x))(x) | vmap(lambda x:ones(3).floor_divide_(x))(x)
vmap(lambda x:ones(3).logical_and_(x))(x) | vmap(lambda x:ones(3).nextafter_(x))(x)
vmap(lambda x,i:ones(3).scatter_add_(0,i,x))(x,I%3) | vmap(lambda x,i:ones(3).index_copy_(0,i,x))(x,I%3)
vmap(lambda x,i:ones(3).index_fill_(0,i,1.))(x,I%3)
vmap(lambda x,i:ones(3).scatter_reduce_(0,i,x,reduce='sum'))(x,I%3) | vmap(lambda x:ones(3).masked_fill_(x>0,1.))(x)
vmap(lambda x:ones(3).masked_fill_(x>0,x[0]))(x) | vmap(lambda x:ones(3).fill_(x[0]))(x)
vmap(lambda x:ones(3).lerp_(x,0.5))(x) | vmap(lambda x:ones(3).addcmul_(x,x))(x)
vmap(vmap(lambda x:ones(4).pow_(x)))(B) | jacrev(lambda x:(x,x*1j))(y) | jacrev(lambda a,x:x.abs(),argnums=0)(y,y*1j)
hessian(lambda x:x.abs().sum())(y*1j) | jacfwd(lambda x:(x.sin(),3),has_aux=True)(y)
jacrev(lambda x,z:(x*z).sum(),argnums=(0,-2))(y,y)
"""
NAMES = "vmap grad vjp jvp jacrev jacfwd hessian functionalize grad_and_value linearize".split()


def world(library: Any) -> dict[str, Any]:
    func = importlib.import_module(library.__name__ + ".func")
    double = library.float64
    return {
        "torch": library,
        "functools": functools,
        "x": library.arange(6.0, dtype=double).reshape(2, 3) * 0.3 + 0.1,
        "y": library.arange(3.0, dtype=double) + 1,
        "B": library.arange(24.0, dtype=double).reshape(2, 3, 4) * 0.1,
        "I": library.arange(6).reshape(2, 3),
        "ones": lambda *shape: library.ones(shape, dtype=double),
        **{name: getattr(func, name) for name in NAMES},
    }


def told(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    if isinstance(value, dict):
        return {key: told(v) for key, v in value.items()}
    if hasattr(value, "tolist"):
        return str(value.dtype), tuple(value.shape), value.requires_grad, rounded(value.detach().tolist())
    return type(value).__name__


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, complex):
        return rounded(value.real), rounded(value.imag)
    return float(f"{value:.6g}") + 0.0 if isinstance(value, float) else value


def outcome(call: str, library: Any) -> Any:
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return told(eval(call, world(library)))
        except Exception as error:
            text = str(error).split("\n")[0].replace("mindtorch_v2", "torch")
            return f"{type(error).__name__}: {re.sub('0x[0-9a-f]+', '', text)}"


@pytest.mark.parametrize("call", [call.strip() for line in CALLS.strip().split("\n") for call in line.split(" | ")])
def test_call(call: str) -> None:
    assert outcome(call, torch) == outcome(call, _oracle.load())
