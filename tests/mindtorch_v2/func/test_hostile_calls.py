"""Hostile and unusual calls of transforms against PyTorch: values, and the type and first line of what is refused.

Invariant: a call is one expression over a few fixed tensors and classes, and both libraries see the same ones. Levels
that a call leaves open are closed before the next one.
"""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import re
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from . import test_calls

pytestmark = [pytest.mark.oracle, mindtorch_only]

# Levels of forward mode, and dual tensors.
DUALS = r"""
fwAD.make_dual(x,x) | fwAD.exit_dual_level() | fwAD.exit_dual_level(level=0) | fwAD.exit_dual_level(level=-1)
fwAD.unpack_dual(x) | fwAD.unpack_dual(x,level=3) | level(lambda: fwAD.unpack_dual(x))
level(lambda: fwAD.unpack_dual(3)) | level(lambda: fwAD.unpack_dual("a")) | level(lambda: fwAD.make_dual(x,y))
level(lambda: fwAD.make_dual(x,x.float())) | level(lambda: fwAD.make_dual(I,I)) | level(lambda: fwAD.make_dual(x,I))
level(lambda: fwAD.make_dual(x,3)) | level(lambda: fwAD.make_dual(3,x)) | level(lambda: fwAD.make_dual(x,None))
level(lambda: fwAD.make_dual(fwAD.make_dual(x,x),x)) | level(lambda: fwAD.make_dual(x,fwAD.make_dual(x,x)))
level(lambda: fwAD.unpack_dual(fwAD.unpack_dual(fwAD.make_dual(x,x)).tangent))
level(lambda: fwAD.unpack_dual(fwAD.unpack_dual(fwAD.make_dual(x,x)).primal))
level(lambda: fwAD.make_dual(x,x,level=1)) | level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x),level=1))
level(lambda: level(lambda: 1)) | level(lambda: fwAD.enter_dual_level())
level(lambda: fwAD.exit_dual_level(level=3)) | fwAD.unpack_dual(level(lambda: fwAD.make_dual(x,x)))
level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x).long())) | level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x)>0))
level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x*1j))) | level(lambda: fwAD.unpack_dual(fwAD.make_dual(x*1j,x)))
level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x).detach()))
level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x).view(6)))
level(lambda: fwAD.unpack_dual(fwAD.make_dual(x,x).data)) | level(lambda: fwAD.make_dual(x,x).numpy())
level(lambda: fwAD.make_dual(x,x).tolist()) | level(lambda: repr(fwAD.make_dual(y,y)))
level(lambda: copy.deepcopy(fwAD.make_dual(y,y))) | level(lambda: pickle.dumps(fwAD.make_dual(y,y)))
level(lambda: fwAD.unpack_dual(y.add_(fwAD.make_dual(y.clone(),y.clone()))))
level(lambda: fwAD.unpack_dual(I[0].add_(fwAD.make_dual(y,y))))
level(lambda: fwAD.unpack_dual(torch.no_grad()(lambda: fwAD.make_dual(y,y)*2)()))
level(lambda: torch.inference_mode()(lambda: fwAD.make_dual(y,y))())
level(lambda: torch.inference_mode()(lambda: fwAD.unpack_dual(fwAD.make_dual(y,y)*2))())
fwAD.dual_level().__exit__(None,None,None)
level(lambda: fwAD.unpack_dual(torch.add(fwAD.make_dual(y,y),1,out=torch.zeros(3,dtype=torch.float64))))
level(lambda: fwAD.make_dual(y.expand(2,3),x).add_(1)) | level(lambda: fwAD.make_dual(torch.zeros(0),torch.zeros(0)))
level(lambda: fwAD.unpack_dual(torch.nn.Parameter(y)*fwAD.make_dual(y,y)))
level(lambda: Dbl.apply(fwAD.make_dual(y,y))) | fwAD.UnpackedDualTensor(1,2)
type(level(lambda: fwAD.unpack_dual(fwAD.make_dual(y,y)))).__name__
"""
# `torch.autograd.functional`.
DERIVATIVES = r"""
AF.vjp(lambda x:x.sin(),x) | AF.vjp(lambda x:x.sin(),x,y) | AF.vjp(lambda x:x.sum(),x) | AF.vjp(lambda x:3,x)
AF.vjp(lambda x:(x,3),x) | AF.vjp(lambda x:x.sin(),3) | AF.vjp(lambda x:x.sin(),[x]) | AF.vjp(lambda x:x.sin(),(x,3))
AF.vjp(lambda x:x.sin(),x,[x]) | AF.vjp(lambda x:x.sin(),x,(x,x)) | AF.vjp(lambda x:y,x,y,strict=True)
AF.vjp(lambda x:y,x,y) | AF.vjp(lambda x:x.detach(),x,x) | AF.vjp(lambda x:x.detach(),x,x,strict=True)
AF.vjp(lambda a,b:a*2,(x,x),x,strict=True) | AF.vjp(lambda a,b:a*2,(x,x),x) | AF.vjp(lambda x:x.sin(),I,I)
AF.vjp(lambda x:x.sin(),x,x,create_graph=True) | AF.vjp(lambda x:2*x,x,x,create_graph=True,strict=True)
AF.jvp(lambda x:x.sin(),x) | AF.jvp(lambda x:x.sin(),y[0]) | AF.jvp(lambda x:x.sin(),y[:1])
AF.jvp(lambda x:x.sin(),x,y) | AF.jvp(lambda x:x.sin(),x,x) | AF.jvp(lambda x:3,x,x) | AF.jvp(lambda x:y,x,x)
AF.jvp(lambda x:y,x,x,strict=True) | AF.jvp(lambda x:2*x,x,x,create_graph=True,strict=True)
AF.jacobian(lambda x:x.sin(),y) | AF.jacobian(lambda x:x.sin(),y,vectorize=True)
AF.jacobian(lambda x:x.sin(),y,strategy="forward-mode")
AF.jacobian(lambda x:x.sin(),y,strategy="forward-mode",vectorize=True) | AF.jacobian(lambda x:x.sin(),y,strategy="x")
AF.jacobian(lambda x:x.sin(),y,strategy="forward-mode",vectorize=True,create_graph=True)
AF.jacobian(lambda x:x.sin(),y,strict=True,vectorize=True)
AF.jacobian(lambda x:x.sin(),y,strict=True,vectorize=True,strategy="forward-mode")
AF.jacobian(lambda x:torch.ones(3),y,strict=True) | AF.jacobian(lambda x:torch.ones(3),y)
AF.jacobian(lambda x:torch.ones(3),y,vectorize=True) | AF.jacobian(lambda a,b:a*2,(y,y),strict=True)
AF.jacobian(lambda a,b:a*2,(y,y),vectorize=True) | AF.jacobian(lambda x:2*x,y,create_graph=True,strict=True)
AF.jacobian(lambda x:3,y) | AF.jacobian(lambda x:(x,3),y) | AF.jacobian(lambda x:x.sin(),3)
AF.jacobian(lambda x:x.sum().item()*x,y,vectorize=True) | AF.jacobian(lambda x:x.sin(),I)
AF.jacobian(lambda x:(x.sin(),x.sum()),(y,)) | AF.jacobian(lambda x:x.new_zeros(0),y)
AF.jacobian(lambda x:x.abs(),y*1j) | AF.hessian(lambda x:x.sin(),y) | AF.hessian(lambda x:(x.sum(),x.sum()),y)
AF.hessian(lambda x:3,y) | AF.hessian(lambda x:x.pow(3).sum(),y)
AF.hessian(lambda x:x.pow(3).sum(),y,vectorize=True)
AF.hessian(lambda x:x.pow(3).sum(),y,outer_jacobian_strategy="forward-mode")
AF.hessian(lambda x:x.pow(3).sum(),y,outer_jacobian_strategy="forward-mode",vectorize=True)
AF.hessian(lambda x:x.pow(3).sum(),y,outer_jacobian_strategy="bad") | AF.hessian(lambda x:x.sum(),y)
AF.hessian(lambda x:x.sum(),y,strict=True) | AF.hessian(lambda x:x.sum()[None],y)
AF.vhp(lambda x:x.pow(3).sum(),y,y) | AF.vhp(lambda x:x.pow(3).sum(),y) | AF.vhp(lambda x:x.pow(3).sum(),y,x)
AF.vhp(lambda x:x.pow(3),y,y) | AF.vhp(lambda x:x.sum(),y,y) | AF.vhp(lambda x:x.sum(),y,y,strict=True)
AF.hvp(lambda x:x.pow(3).sum(),y,y) | AF.hvp(lambda x:x.pow(3).sum(),y) | AF.hvp(lambda x:x.sum(),y,y,strict=True)
AF.hvp(lambda x:(x.sum(),),y,y)
"""
# `torch.cond` and loops.
CONTROL = r"""
torch.cond(True,lambda x:x,lambda x:-x,(x,)) | torch.cond(x.sum()>0,lambda x:x.sin(),lambda x:x.cos(),(x,))
torch.cond(x.sum()>0,lambda x:x.sin(),lambda x:x.cos(),[x])
torch.cond(x.sum()>0,lambda x:x.sin(),lambda x:x.cos(),x) | torch.cond(x>0,lambda x:x.sin(),lambda x:x.cos(),(x,))
torch.cond(x.sum(),lambda x:x.sin(),lambda x:x.cos(),(x,)) | torch.cond("a",lambda x:x.sin(),lambda x:x.cos(),(x,))
torch.cond(x.sum()>0,3,lambda x:x.cos(),(x,)) | torch.cond(x.sum()>0,lambda x:x.sin(),None,(x,))
torch.cond(x.sum()>0,lambda x:3,lambda x:4,(x,)) | torch.cond(x.sum()>0,lambda x:x.sin(),lambda x:x.cos(),(x,3))
torch.cond(x.sum()>0,lambda x,n:x*n,lambda x,n:x.cos(),(x,3))
torch.cond(x.sum()>0,lambda x:x.sin(),lambda x:x.cos(),(x,"a")) | torch.cond(x.sum()>0,lambda:x.sin(),lambda:x.cos())
torch.cond(1,lambda x:x,lambda x:-x,(x,)) | torch.cond(1.0,lambda x:x,lambda x:-x,(x,))
vmap(lambda a:torch.cond(a.sum()>0,lambda x:x.sin(),lambda x:x.cos(),(a,)))(x)
while_loop(lambda i,a:i<3,lambda i,a:(i+1,a*2),(torch.tensor(0),y))
while_loop(lambda i,a:i<3,lambda i,a:(i+1,a*2),(0,y)) | while_loop(3,lambda i,a:(i+1,a*2),(torch.tensor(0),y))
while_loop(lambda i,a:i<3,3,(torch.tensor(0),y)) | while_loop(lambda i,a:i<3,lambda i,a:(i+1,a*2),[torch.tensor(0),y])
while_loop(lambda:False,lambda:(),()) | scan(lambda c,a:(c+a,c*a),y[0],y)
scan(lambda c,a:(c+a,c*a),torch.zeros(3,dtype=torch.float64),x)
scan(lambda c,a:(c+a,c*a),torch.zeros(2,dtype=torch.float64),x,dim=1)
scan(lambda c,a:(c+a,c*a),torch.zeros(2,dtype=torch.float64),x,dim=1,reverse=True)
scan(lambda c,a:(c,a),torch.zeros(3,dtype=torch.float64),x,dim=5)
scan(lambda c,a:(c,a),torch.zeros(3,dtype=torch.float64),x,reverse=1) | scan(lambda c,a:(c,a),3,x)
scan(3,torch.zeros(3),x) | scan(lambda c,a:(c,a),torch.zeros(3),[]) | scan(lambda c,a:(c,a),[],x)
scan(lambda c,a:(c,a),torch.zeros(3),torch.zeros(0,3)) | associative_scan(lambda a,b:a+b,x,0,combine_mode="generic")
associative_scan(lambda a,b:a+b,x,1,combine_mode="generic",reverse=True) | associative_scan(lambda a,b:a+b,x,0)
associative_scan(lambda a,b:a+b,x,0,combine_mode="bad") | associative_scan(lambda a,b:a+b,x,5,combine_mode="generic")
associative_scan(lambda a,b:a+b,x,-1,combine_mode="generic") | associative_scan(3,x,0,combine_mode="generic")
associative_scan(lambda a,b:(a+b).float(),x,0,combine_mode="generic")
associative_scan(lambda a,b:a,x,0,reverse=3,combine_mode="generic")
associative_scan(lambda a,b:{"a":a["a"]+b["a"]},{"a":x},0,combine_mode="generic")
associative_scan(lambda a,b:a+b,torch.zeros(0,3),0,combine_mode="generic")
associative_scan(lambda a,b:a+b,x[:1],0,combine_mode="generic") | cmap(lambda a:a.sin(),x) | cmap(lambda a,b:a*b,x,y)
cmap(lambda a:a,3) | cmap(lambda a:a[0],(x,x[:1]))
"""
# `torch.vmap`, `torch.func`, gradients of many, functions of users.
TRANSFORMS = r"""
vmap(3)(x) | vmap(None)(x) | vmap(lambda x:x,in_dims=(0,),out_dims=None)(x) | vmap(lambda x:x,in_dims=True)(x)
vmap(lambda x:x,out_dims=True)(x) | vmap(lambda x:x,out_dims=0.5)(x) | vmap(lambda x:x,out_dims=(None,))(x)
vmap(lambda x:y,out_dims=None)(x) | vmap(lambda x:(),)(x) | vmap(lambda x:[[x],(x,{"k":x})])(x)
vmap(lambda x:"a")(x) | vmap(lambda x:("a",x))(x) | vmap(lambda x:x.shape)(x) | vmap(lambda x:print)(x)
vmap(lambda x:x,chunk_size="a")(x) | vmap(lambda x:x,randomness=3)(x) | vmap(lambda x:x,randomness=None)(x)
vmap(lambda x:x,0,0,"different",2)(x) | vmap(lambda x:x.sin())(torch.zeros(0,3))
vmap(lambda x:x.sum())(torch.zeros(0,3)) | vmap(lambda x:x)(torch.tensor(3.)) | vmap(lambda x,y:x,in_dims=(0,None))(x)
vmap(lambda x:x+1)(x,x) | vmap(lambda **k:k["a"])(a=x) | vmap(lambda x:captured.add_(x))(x)
vmap(lambda x:captured.add_(1))(x) | vmap(lambda x:captured.copy_(x))(x) | vmap(lambda x:setitem(captured,0,x[0]))(x)
vmap(lambda x:setitem(x,0,captured[0]))(x.clone()) | vmap(lambda x:captured.mul_(x.sum()))(x)
vmap(lambda x:x.data.add_(1))(x.clone()) | vmap(lambda x:torch.where(x>0)[0])(x) | vmap(lambda x:torch.nonzero(x))(x)
vmap(lambda x:x.item())(x) | vmap(lambda x:[i for i in x])(x) | vmap(lambda x:[v for v in x.unbind()])(x)
vmap(lambda x:x in [x])(y) | vmap(lambda x:x if x>0 else -x)(y) | vmap(lambda x:torch.bincount(x))(I)
vmap(lambda x:torch.repeat_interleave(x,x))(I) | vmap(lambda x:torch.repeat_interleave(x,2))(I)
vmap(lambda x:x.is_nonzero())(y) | vmap(lambda x:x.__complex__())(y) | vmap(lambda x:x.__index__())(I[0])
vmap(lambda x:repr(x))(y) | vmap(lambda x:hash(x)*0+x)(y) | vmap(lambda x:x.storage())(x)
vmap(lambda x:x.untyped_storage())(x) | vmap(lambda x:copy.deepcopy(x))(x) | vmap(lambda x:pickle.dumps(x))(x)
vmap(lambda x:x.cpu())(x) | vmap(lambda x:x.to("meta"))(x) | vmap(lambda x:torch.save(x,io.BytesIO()))(x)
vmap(lambda x:torch.randint(5,(2,)),randomness="error")(x) | vmap(lambda x:torch.randint(5,(2,)),randomness="same")(x)
vmap(lambda x:torch.normal(x,1.0),randomness="same")(x)
vmap(lambda x:torch.nn.functional.dropout(x,0.5,training=False))(x) | vmap(lambda x:x.unfold(0,2,1))(x)
vmap(lambda x:x.as_strided((2,),(1,)))(x) | vmap(lambda x:x.as_strided((2,),(1,),1))(x)
vmap(lambda x:x.view(-1))(x.t()) | vmap(lambda x:x.view(4,3))(B) | grad(lambda x:x.sum())() | grad(3)(x)
grad(lambda x:None)(x) | grad(lambda x:[x.sum()])(x) | grad(lambda x:x.sum(),has_aux=3)(x)
grad(lambda x:x.sum()>0)(x) | grad(lambda x:x.long().sum())(x) | grad(lambda x:x.add_(1).sum())(x.clone())
grad(lambda x:x.clone().add_(1).sum())(x) | jvp(3,(x,),(x,)) | jvp(lambda x:x,(x,),None) | jvp(lambda x:x,None,(x,))
jvp(lambda x:None,(x,),(x,)) | jvp(lambda a,b:a,(x,),(x,)) | jvp(lambda x:{"a":x},({"a":x},),({"b":x},))
jvp(lambda x:x,((x,x),),((x,),)) | vjp(3,x) | vjp(lambda x:None,x) | vjp(lambda x:x.sin(),x)[1](None)
vjp(lambda x:x.sin(),x)[1](3) | vjp(lambda x:x.sin(),x)[1](x,retain_graph=False) | vjp(lambda x:(x.sin(),),x)[1](x)
vjp(lambda x:x.sin(),x,3) | linearize(3,x) | linearize(lambda x:x.sin()) | linearize(lambda x:x.sin(),3)
linearize(lambda x:x.sin(),x)[1]() | linearize(lambda x:x.sin(),x)[1](x,x) | linearize(lambda x:x.sin(),x)[1](3)
linearize(lambda x:x.sin(),I) | linearize(lambda x:(x,),x)[1]((x,)) | linearize(lambda d:d["a"]*2,{"a":x})[1]({"a":x})
linearize(lambda d:d["a"]*2,{"a":x})[1]({"b":x}) | functionalize(3)(x) | functionalize(lambda x:3)(x)
functionalize(lambda x:None)(x) | functionalize(lambda x:(x,3))(x) | functionalize(lambda x:x)(3)
functionalize(lambda x:x)(x) is x | functionalize(lambda x:x.view(-1))(x)
functionalize(lambda x:x.t().add_(1))(x.clone()) | functionalize(lambda x:captured.add_(1))(x)
functionalize(lambda x:x.set_(x))(x.clone()) | functionalize(lambda x:x.as_strided((2,),(1,)).add_(1))(x.clone())
functionalize(lambda x:x.item())(y[:1]) | functionalize(lambda x:x.sin(),remove=3)
hessian(lambda x:x.sum(),argnums=3)(x) | hessian(lambda x:3)(x) | jacrev(lambda x:x.sin(),argnums=1)(x)
jacrev(lambda x:x.sin(),argnums="a")(x) | jacrev(lambda x:x.sin(),chunk_size="a")(x) | jacrev(lambda x:None)(x)
jacrev(lambda x:x.long())(x) | jacrev(lambda x:x>0)(x) | jacrev(lambda x:captured)(y) | jacfwd(lambda x:x.long())(y)
jacfwd(lambda x:None)(y) | jacfwd(lambda x:x.sin(),argnums=1)(y) | jacfwd(lambda x:x.sin(),randomness="bad")(y)
jacfwd(lambda x:(x,3))(y) | jacfwd(lambda x:x.abs())(y*1j) | jacrev(3)(y) | jacfwd(3)(y)
functional_call(lin,{"weight":x},(x,)) | functional_call(lin,{"weight":x,"bias":y[:2]},(x,))
functional_call(lin,{"nope":x},(x,)) | functional_call(lin,{"nope":x},(x,),strict=True)
functional_call(lin,{"weight":x},(x,),strict=True) | functional_call(lin,[{"weight":x},{"weight":x}],(x,))
functional_call(lin,[{"weight":x},{"bias":y[:2]}],(x,)) | functional_call(lin,3,(x,))
functional_call(lin,{"weight":3},(x,)) | functional_call(lin,{"weight":x},x) | functional_call(lin,{"weight":x},None)
functional_call(lin,{"weight":x},(x,),kwargs=3) | functional_call(lin,{"weight":x},(x,),{"input":x})
functional_call(3,{"weight":x},(x,)) | functional_call(lin,{"weight.a":x},(x,)) | functional_call(lin,{"":x},(x,))
stack_module_state([]) | stack_module_state([lin,torch.nn.Linear(2,2)]) | stack_module_state([lin,torch.nn.ReLU()])
stack_module_state([lin,torch.nn.Linear(3,2).double().eval()])
stack_module_state([torch.nn.Linear(3,2).requires_grad_(False),torch.nn.Linear(3,2)]) | stack_module_state(3)
replace_all_batch_norm_modules_(3) | replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(3)).running_mean
(lambda a:torch.autograd.grad(a.sin(),a,x,is_grads_batched=True))(y.clone().requires_grad_())
(lambda a:torch.autograd.grad(a.sin(),a,y,is_grads_batched=True))(y.clone().requires_grad_())
(lambda a:torch.autograd.grad(a.sin(),a,None,is_grads_batched=True))(y.clone().requires_grad_())
(lambda a:torch.autograd.grad(a.sin(),a,is_grads_batched=True))(y.clone().requires_grad_())
(lambda a:torch.autograd.grad(a.sum(),a,ones(4),is_grads_batched=True))(y.clone().requires_grad_())
Dbl.apply(y) | vmap(Dbl.apply)(y) | vmap(Nov.apply)(y) | grad(lambda a:Old.apply(a).sum())(y) | vmap(Old.apply)(y)
jvp(lambda w:torch.nn.functional.embedding(I[0]%2,w,padding_idx=1),(x,),(x,))
jvp(lambda a:a.round().amax(1),(x,),(x,)) | jvp(lambda a:a.round().amin((0,1)),(x,),(x,)) | jvp(torch.amax,(x,),(x,))
jvp(lambda a:torch.stack([a,x,a*2]),(x,),(x,)) | jvp(lambda a:x.index_put((I[0]%2,),a[0]),(x,),(x,))
jvp(lambda a:x.index_put((I[0]%2,),a[:1],accumulate=True),(x,),(x,)) | jvp(lambda a:torch.fft.rfft(a),(x,),(x,))
jvp(lambda a:torch.nn.functional.layer_norm(a,(3,),a[0],a[1]),(x,),(x,))
jvp(lambda a:torch.nn.functional.layer_norm(x,(3,),None,a[1]),(x,),(x,))
jvp(Nov.apply,(y,),(y,)) | jvp(Dbl.apply,(y,),(y,)) | vmap(Bad.apply)(y) | vmap(Both.apply)(y)
"""


class Doubled:
    """What the classes below do: twice their argument."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def _with_context(ctx: Any, x: Any) -> Any:
    return x * 2


def _alone(info: Any, dims: Any, x: Any) -> Any:
    return x


def _pair(info: Any, dims: Any, x: Any) -> Any:
    return x * 2, 0


def functions(base: Any) -> dict[str, Any]:
    """Functions of users: with a rule that is generated, without one, of the old form, and with wrong rules."""
    return {
        "Dbl": type("Dbl", (Doubled, base), {"generate_vmap_rule": True}),
        "Nov": type("Nov", (Doubled, base), {}),
        "Old": type(
            "Old", (base,), {"forward": staticmethod(_with_context), "backward": staticmethod(Doubled.backward)}
        ),
        "Bad": type("Bad", (Doubled, base), {"vmap": staticmethod(_alone)}),
        "Both": type("Both", (Doubled, base), {"generate_vmap_rule": True, "vmap": staticmethod(_pair)}),
    }


def world(library: Any) -> dict[str, Any]:
    name = library.__name__
    func = importlib.import_module(name + ".func")
    forward = importlib.import_module(name + ".autograd.forward_ad")
    loops = importlib.import_module(name + "._higher_order_ops")

    def level(fn: Any) -> Any:
        with forward.dual_level():
            return fn()

    def setitem(a: Any, i: Any, v: Any) -> Any:
        a[i] = v
        return a

    linear = library.nn.Linear(3, 2).double()
    with library.no_grad():
        linear.weight.fill_(0.5)
        linear.bias.fill_(0.25)
    return {
        **test_calls.world(library),
        **functions(library.autograd.Function),
        **{n: getattr(loops, n) for n in ("while_loop", "scan", "associative_scan")},
        **{n: getattr(func, n) for n in ("functional_call", "stack_module_state", "replace_all_batch_norm_modules_")},
        "cmap": importlib.import_module(name + "._higher_order_ops.map").map,
        "fwAD": forward,
        "AF": importlib.import_module(name + ".autograd.functional"),
        "level": level,
        "setitem": setitem,
        "copy": copy,
        "pickle": pickle,
        "io": io,
        "captured": library.ones(2, 3, dtype=library.float64),
        "lin": linear,
    }


def outcome(call: str, library: Any) -> Any:
    library.manual_seed(0)
    forward = importlib.import_module(library.__name__ + ".autograd.forward_ad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(call, world(library))
            return str(value) if isinstance(value, (str, bool, int)) else test_calls.told(value)
        except Exception as error:
            text = str(error).split("\n")[0].replace("mindtorch_v2", "torch")
            return f"{type(error).__name__}: {re.sub('0x[0-9a-f]+', '', text)}"
        finally:
            while forward._current_level >= 0:
                forward.exit_dual_level()


def _calls() -> list[str]:
    return [c.strip() for text in (DUALS, DERIVATIVES, CONTROL, TRANSFORMS) for line in text.split("\n")
            for c in line.split(" | ") if c.strip()]  # fmt: skip


@pytest.mark.parametrize("call", _calls())
def test_call(call: str) -> None:
    assert outcome(call, torch) == outcome(call, _oracle.load())
