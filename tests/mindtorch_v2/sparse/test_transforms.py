"""Sparse tensors under `torch.func`: what PyTorch computes against it, what only this library does against dense
tensors, and refusals that name the layout."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

CALLS = """
func.grad(lambda x:x.to_dense().pow(2).sum())(s)|func.grad(lambda x:torch.sparse.sum(x*x))(s)
func.grad(lambda x:(s@x).sum())(d.T)
func.grad(lambda x:(x@d.T).sum())(s)|func.vjp(lambda x:x.to_dense(),s)[1](d)
func.grad_and_value(lambda x:x.coalesce().values().sum())(s)
func.vmap(lambda x:x*2)(s)|func.vmap(lambda x:x*2,in_dims=1)(s)|func.vmap(lambda x:x*2,out_dims=1)(s)
func.vmap(lambda x:s@x)(ones(2,3))
func.vmap(lambda x:x*s.to_dense().sum())(ones(4))|func.vmap(lambda x:x*torch.sparse.sum(s))(ones(4))
func.vmap(lambda x:s*x)(ones(4,2,3))
func.vmap(lambda x:s)(ones(4))|func.vmap(lambda x:c)(ones(4))|func.vmap(lambda x:x*2)(c)
func.vmap(lambda x:x*c.to_dense().sum())(ones(4))
"""


def _world(library: Any) -> dict[str, Any]:
    d = library.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], dtype=library.float64)
    return {
        "torch": library,
        "func": library.func,
        "d": d,
        "s": d.to_sparse(),
        "c": d.to_sparse_csr(),
        "ones": lambda *shape: library.ones(shape, dtype=library.float64),
    }


def _told(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_told(v) for v in value]
    return str(value.layout), value.to_dense().tolist()


def _outcome(call: str, library: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _told(eval(call, _world(library)))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS.replace("\n", "|").strip("|").split("|"))
def test_calls(call: str) -> None:
    assert _outcome(call, torch) == _outcome(call, _oracle.load())


# `s` is sparse or dense: the same function, and the same numbers.
LIKE_DENSE = """
func.jvp(lambda x:s@x,(d.T,),(d.T,))|func.jacrev(lambda x:s@x)(d.T)|func.jacfwd(lambda x:s@x)(d.T)
func.hessian(lambda x:(s@x).pow(2).sum())(ones(3))
func.vmap(lambda x:s@x)(ones(2,3,4))|func.vmap(lambda x:x+s)(ones(4,2,3))
func.vmap(func.grad(lambda x:(s@x).sin().sum()))(ones(2,3))
func.vmap(func.vmap(lambda x:s@x))(ones(2,2,3))|func.vmap(lambda x:(x@d.T).sum(),in_dims=0)(ones(2,2,3)*2)
func.grad(lambda w:func.vmap(lambda x:s@x*w)(ones(2,3)).sum())(ones(1))
"""


@mindtorch_only
@pytest.mark.parametrize("layout", ["s", "c"])
@pytest.mark.parametrize("call", LIKE_DENSE.replace("\n", "|").strip("|").split("|"))
def test_as_with_dense_tensors(call: str, layout: str) -> None:
    world = _world(torch)
    sparse, dense = {**world, "s": world[layout]}, {**world, "s": world["d"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _told(eval(call, sparse)) == _told(eval(call, dense))


@mindtorch_only
@pytest.mark.filterwarnings("ignore")
def test_refusals_name_the_layout() -> None:
    world = _world(torch)
    d, s, c = world["d"], world["s"], world["c"]
    forward_ad = submodule("autograd.forward_ad")
    with forward_ad.dual_level():
        for primal, tangent in ((s, s), (c, c), (d, s), (s, d)):
            with pytest.raises(NotImplementedError, match="forward AD is not supported .* torch.sparse_cs?[ro]"):
                forward_ad.make_dual(primal, tangent)
        with pytest.raises(NotImplementedError, match="forward AD with _to_sparse"):
            forward_ad.make_dual(d, d).to_sparse()
    with pytest.raises(RuntimeError, match="layout torch.sparse_coo cannot be mapped over"):
        torch.func.vmap(lambda x: x.to_sparse())(d)
    with pytest.raises(RuntimeError, match="aten::mul: tensors of layout torch.sparse_csr"):
        torch.func.vmap(lambda x: c * x)(torch.ones(2, 2, 3, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match="torch.sparse_coo"):
        torch.func.jacrev(lambda x: x.to_dense())(s)
