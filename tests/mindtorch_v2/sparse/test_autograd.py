"""Gradients through sparse tensors against PyTorch: small programs that run in both libraries.

In a program `D(n, ...)` is a new leaf, `W` and `D2` are constants and `I` the coordinates of three entries. A line that
is indented goes on with the program above.
"""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject
from . import _compare

PROGRAMS = """
d=D(4,6); s=d.to_sparse(); s.to_dense().pow(2).sum().backward(); return d.grad
d=D(4,6); s=d.to_sparse_csr(); s.to_dense().pow(2).sum().backward(); return d.grad
v=D(3); s=torch.sparse_coo_tensor(I,v,(2,3)); (s.to_dense()*W).sum().backward(); return v.grad
v=D(3); s=torch.sparse_coo_tensor(I,v,(2,3)); torch.sparse.mm(s,D2).sum().backward(); return v.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); torch.sparse.mm(s,D2).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    torch.sparse.mm(s,D2).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); e=D(3,4)
    torch.sparse.mm(s,e).pow(2).sum().backward(); return s.grad,e.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); e=D(3,4)
    torch.mm(s,e).pow(2).sum().backward(); return s.grad,e.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); e=D(3,4); (s@e).sum().backward()
    return s.grad,e.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_(); s.values().pow(2).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); torch.sparse.sum(s).backward()
    return s.grad.coalesce()
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    torch.sparse.sum(s,0).to_dense().pow(2).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); torch.sparse.sum(s,(0,1)).backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); s.sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    torch.sparse.softmax(s,1).to_dense().mul(W).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    torch.sparse.log_softmax(s,0).to_dense().mul(W).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); s.to_dense().mul(W).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    s.to_dense(masked_grad=False).mul(W).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); (s*2).to_dense().mul(W).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); (W+s).mul(W).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    (-s).t().to_dense().mul(W.t()).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    s.unsqueeze(0).to_dense().mul(W).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); torch.cat([s,s]).to_dense().sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); s.double().to_dense().mul(W).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    s.float().to_dense().mul(W.float()).sum().backward(); return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); (s/2).to_dense().mul(W).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); torch.mv(s,D2[:,0]).sum().backward()
    return s.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)); e=D(3); torch.mv(s,e).pow(2).sum().backward(); return e.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)); e=D(2,4); b=D(3,4)
    torch.addmm(e,s,b,beta=2,alpha=3).pow(2).sum().backward(); return e.grad,b.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_(); e=D(2,4); b=D(3,4)
    torch.sparse.addmm(e,s,b,beta=2,alpha=3).pow(2).sum().backward(); return e.grad,b.grad,s.grad
c=W.to_sparse_csr().requires_grad_(); e=D(3,4); torch.sparse.mm(c,e).pow(2).sum().backward()
    return c.grad,e.grad
c=W.to_sparse_csr().requires_grad_(); e=D(3,4); (c@e).pow(2).sum().backward(); return c.grad,e.grad
c=W.to_sparse_csr().requires_grad_(); e=D(3,4); torch.sparse.mm(c,e,"sum").pow(2).sum().backward()
    return c.grad,e.grad
c=W.to_sparse_csr().requires_grad_(); e=D(3,4); torch.sparse.mm(c,e,"mean").pow(2).sum().backward()
    return c.grad,e.grad
c=W.to_sparse_csr().requires_grad_(); e=D(3,4); torch.sparse.mm(c,e,"amax").pow(2).sum().backward()
    return c.grad,e.grad
c=W.to_sparse_csr().requires_grad_(); e=D(3,4); torch.sparse.mm(c,e,"amin").pow(2).sum().backward()
    return c.grad,e.grad
c=W.to_sparse_csr().requires_grad_(); c.to_dense().pow(2).sum().backward(); return c.grad
c=W.to_sparse_csr().requires_grad_(); c.values().pow(2).sum().backward(); return c.grad
c=W.to_sparse_csr().requires_grad_(); a=D(2,4); b=D(4,3)
    torch.sparse.sampled_addmm(c,a,b,beta=2,alpha=3).to_dense().pow(2).sum().backward(); return c.grad,a.grad,b.grad
v=D(4); c=torch.sparse_csr_tensor(torch.tensor([0,2,4]),torch.tensor([0,1,0,2]),v,(2,3))
    c.to_dense().mul(W).sum().backward(); return v.grad
a=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    b=torch.sparse_coo_tensor(I.flip(0),D(3).detach(),(3,2)).requires_grad_()
    torch.sparse.mm(a,b).to_dense().sum().backward(); return a.grad,b.grad
d=D(2,3); m=torch.sparse_coo_tensor(I,torch.ones(3,dtype=torch.float64),(2,3)).coalesce()
    d.sparse_mask(m).to_dense().mul(W).sum().backward(); return d.grad
w=D(5,3); e=F.embedding(torch.tensor([[1,2],[1,4]]),w,sparse=True); e.pow(2).sum().backward()
    return w.grad
w=D(5,3); e=F.embedding(torch.tensor([[1,2],[1,4]]),w,padding_idx=1,sparse=True)
    e.pow(2).sum().backward(); return w.grad
w=D(5,3); e=F.embedding(torch.tensor([1]),w,sparse=True); e.sum().backward()
    F.embedding(torch.tensor([2,0]),w,sparse=True).sum().backward(); return w.grad
w=D(5,3); e=F.embedding(torch.tensor([1]),w,sparse=True); e.sum().backward()
    (w*2).sum().backward(); return w.grad
w=D(5,3); (w*2).sum().backward()
    F.embedding(torch.tensor([1]),w,sparse=True).sum().backward(); return w.grad
w=D(5,3); ((w*2).sum()+F.embedding(torch.tensor([1]),w,sparse=True).sum()).backward()
    return w.grad
w=D(5,3)
    (F.embedding(torch.tensor([1,3]),w,sparse=True).sum()+F.embedding(torch.tensor([1]),w,sparse=True).sum()).backward()
    return w.grad
w=D(5,3)
    F.embedding_bag(torch.tensor([1,2,4,2]),w,torch.tensor([0,2]),mode='sum',sparse=True).pow(2).sum().backward()
    return w.grad
w=D(5,3)
    F.embedding_bag(torch.tensor([1,2,4,2]),w,torch.tensor([0,2]),mode='mean',sparse=True).pow(2).sum().backward()
    return w.grad
w=D(5,3); p=D(4)
    F.embedding_bag(torch.tensor([1,2,4,2]),w,torch.tensor([0,2]),mode='sum',sparse=True,per_sample_weights=p).pow(2).sum().backward()
    return w.grad,p.grad
w=D(5,3); torch.gather(w,1,torch.tensor([[0,1],[2,2]]),sparse_grad=True).pow(2).sum().backward(); return w.grad
w=D(5); torch.gather(w,0,torch.tensor([0,1,1]),sparse_grad=True).pow(2).sum().backward(); return w.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    return torch.autograd.grad(s.to_dense().sum(),s)
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    m=torch.sparse.mm(s,D2)
    return [t.grad_fn.name() for t in (s*2,s.to_dense(),s.coalesce(),s.t(),m)],s.is_leaf
x=D(4,6); x.to_sparse().sum().backward(); return x.grad
x=D(4,6); torch.sparse.sum(x.to_sparse(),1).to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().sin().to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().abs().to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().tanh().to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().relu().to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().pow(2).to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().neg().to_dense().sum().backward(); return x.grad
x=D(2,3); x.to_sparse().sqrt().to_dense().sum().backward(); return x.grad
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.SGD([p],lr=.1)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward(); o.step(); o.step()
    return p
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.SGD([p],lr=.1,momentum=.9)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward(); o.step(); o.step()
    return p
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.SGD([p],lr=.1,momentum=.9,foreach=True)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward(); o.step(); o.step()
    return p
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.Adagrad([p],lr=.1)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward(); o.step(); o.step()
    return p
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.SparseAdam([p],lr=.1)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward(); o.step(); o.step()
    return p
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.Adam([p],lr=.1)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward(); o.step(); return p
p=torch.nn.Parameter(D(5,3).detach()); o=torch.optim.SGD([p],lr=.1)
    F.embedding(torch.tensor([1,1,2]),p,sparse=True).pow(2).sum().backward()
    o.zero_grad(set_to_none=False); return p.grad
p=torch.nn.Parameter(D(5,3).detach())
    p.grad=torch.sparse_coo_tensor(torch.tensor([[1]]),torch.ones(1,3,dtype=torch.float64),(5,3)); return p.grad
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).requires_grad_()
    return torch.autograd.gradcheck(lambda t: torch.sparse.sum(t,0).to_dense(),(s,),masked=True)
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    return torch.autograd.gradcheck(lambda t: t.to_dense(masked_grad=False),(s,),masked=False)
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    return torch.autograd.gradcheck(lambda t: torch.sparse.mm(t,D2),(s,),masked=True)
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    return checked(lambda t: torch.sparse.mm(t,D2),(s,),masked=True)
s=torch.sparse_coo_tensor(I,D(3).detach(),(2,3)).coalesce().requires_grad_()
    return checked(lambda t: t.to_dense(masked_grad=False),(s,),masked=False)
"""


def _programs() -> list[str]:
    found: list[str] = []
    for line in PROGRAMS.strip().split("\n"):
        if line.startswith("    "):
            found[-1] += "; " + line.strip()
        else:
            found.append(line)
    return found


def _run(library: Any, program: str) -> Any:
    float64 = library.float64

    def leaf(*shape: int) -> Any:
        return (library.arange(1, 1 + prod(shape), dtype=float64).reshape(shape) * 0.5 - 2.0).requires_grad_()

    world: dict[str, Any] = {
        "torch": library,
        "F": library.nn.functional,
        "checked": library.sparse.as_sparse_gradcheck(library.autograd.gradcheck),
        "D": leaf,
        "W": library.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=float64),
        "D2": library.arange(12, dtype=float64).reshape(3, 4),
        "I": library.tensor([[0, 1, 1], [2, 0, 2]]),
    }
    exec("def program():\n" + "\n".join("    " + part for part in program.split("; ")), world)
    return world["program"]()


@pytest.mark.parametrize("program", _programs())
def test_program(program: str) -> None:
    oracle = _oracle.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = _run(oracle, program)
        except (RuntimeError, NotImplementedError) as error:
            with pytest.raises(type(error)):
                _run(subject, program)
            return
        _compare.assert_same(_run(subject, program), expected, program)


@pytest.mark.parametrize(("shape", "at"), [((4, 0), [1, 3]), ((0, 0), []), ((4, 3), [])])
def test_embeddings_of_nothing(shape: tuple[int, int], at: list[int]) -> None:
    layer = subject.nn.Embedding(*shape, sparse=True)
    layer(subject.tensor(at, dtype=subject.int64)).sum().backward()
    grad = layer.weight.grad
    assert (tuple(grad.shape), tuple(grad._indices().shape), tuple(grad._values().shape)) == (
        *(shape, (1, 0), (0, shape[1])),
    )
