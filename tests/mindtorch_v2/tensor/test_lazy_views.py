"""Conjugate and negative views: what is lazy, what a write reaches, what refuses, what travels.

Invariant: each line and program says the same of PyTorch; `parity/test_lazy.py` has every operator.
"""

from __future__ import annotations

import copy
import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._outcome import outcome
from .._subject import mindtorch_only
from .._subject import subject as torch

# c: conjugate, n: negative, b: both, m: adjoint of a matrix, x: the memory of c.
LINES = """
c.is_conj(), c.is_neg(), n.is_neg(), b.is_conj(), b.is_neg(), torch.is_conj(c), torch.is_neg(n)
c.clone().is_conj(), c.resolve_conj().is_conj(), n.resolve_neg().is_neg(), b.resolve_conj().is_neg()
c.imag.is_neg(), c.imag, c.real.is_neg(), c.real, b.imag.is_neg(), b.real.is_neg(), b.imag, b.real
x.resolve_conj() is x, x.resolve_neg() is x, c.data_ptr() == x.data_ptr(), c._base is x, c.is_set_to(x)
c.numpy()
n.numpy()
b.numpy()
c.numpy(force=True).tolist(), n.numpy(force=True).tolist(), b.numpy(force=True).tolist()
c.__array__()
torch.view_as_real(c)
torch.view_as_real(x._neg_view()), torch.view_as_real(x._neg_view()).is_neg()
torch.view_as_complex(n).is_neg(), torch.view_as_complex(n)
c.view(torch.float32)
c.view(torch.complex64)
n.view(torch.int32)
b.view(torch.float32)
c.__dlpack__()
c.conj().is_conj(), c.conj()._base is x, n._neg_view().is_neg(), n.conj().is_neg(), b.conj().is_conj()
c.detach().is_conj(), c.data.is_conj(), c[0].is_conj(), c.expand(3, 2).is_conj(), c.contiguous().is_conj()
c.as_strided((1,), (1,)).is_conj(), c.chunk(2)[0].is_conj(), c.unbind()[0].is_conj(), c.reshape(2, 1).is_conj()
m.is_conj(), m.contiguous().is_conj(), m.mT.is_conj(), m.mH.is_conj(), m.T.is_conj(), m.reshape(-1).is_conj()
torch.ones(2).conj().is_conj(), torch.ones(2, 3).mH.is_conj(), torch.ones(2, 3).adjoint().is_conj()
c.mul(2).is_conj(), c.neg().is_conj(), c.repeat(2).is_conj(), torch.stack([c, c]).is_conj(), c.conj_physical().is_conj()
torch.conj_physical(c), c.abs(), c + 1, c * 1j, c.sum(), c.angle(), n * 2, n.abs(), n.sum(), b - 1
c.to(torch.complex128).is_conj(), c.to(torch.complex64).is_conj(), c.cpu().is_conj(), c.to(torch.complex64, copy=True)
torch.empty_like(c).is_conj(), torch.zeros_like(c).is_conj(), c.new_empty(2).is_conj(), torch.tensor(c.tolist())
c.tolist(), n.tolist(), b.tolist(), c[0].item(), n[0].item(), b[1].item(), bool(n[0]), complex(c[0])
repr(c), repr(n), repr(b), str(m), f"{n[0]:.3f}"
torch.dot(c, x), torch.dot(c, c), torch.dot(x, c), torch.vdot(c, x), torch.vdot(c, c), torch.vdot(x, c)
torch.dot(c, c).is_conj(), torch.vdot(x, c).is_conj(), torch.dot(b, b), torch.vdot(b, b).is_conj()
m @ m.mH, torch.mm(m, m.mT.resolve_conj()), m @ torch.ones(2, dtype=m.dtype), torch.linalg.inv(m[:2]).is_conj()
torch.addmm(m, m, m.mH @ m, beta=2, alpha=1j), torch.addmm(m.mH, m.mH, (m @ m.mH).conj()), torch.mv(m, c)
torch.bmm(m[None], m.mH[None]), torch.bmm(m.mT[None], m[None]), torch.baddbmm(m[None], m[None], (m.mH @ m)[None].conj())
torch.addmv(x, m.mT @ m, c), torch.addmv(c, m.mT @ m, c, beta=2j), (m @ m.mH).is_conj(), (m @ m.T).is_conj()
torch.mm(m, m.mH, out=torch.zeros(3, 3, dtype=m.dtype).conj()), m._neg_view() @ m.mH, torch.mv(m, x)
torch.add(x, 1, out=torch.zeros(2, dtype=x.dtype).conj()), torch.add(x, 1, out=torch.zeros(0, dtype=x.dtype).conj())
torch.add(x, 1, out=torch.zeros(2, dtype=x.dtype).conj()).is_conj()
torch.repeat_interleave(c, torch.tensor([1, 2])), torch.repeat_interleave(c, torch.tensor([1, 2])).is_conj()
torch._conj_copy(x), torch._neg_view_copy(x), torch._conj_copy(x).is_conj(), torch._neg_view(x).is_neg()
torch._conj_copy(x, out=torch.empty_like(x)), torch._neg_view_copy(c, out=torch.empty_like(x)), c
torch._conj_physical(c), torch._conj_physical(c).is_conj(), c._is_zerotensor()
torch.ones(2, dtype=torch.bool)._neg_view() + 0
torch.tensor([1, 2])._neg_view(), torch.tensor([1, 2])._neg_view().float(), torch.tensor([1.5])._neg_view().long()
x.to_sparse().conj().is_conj(), c.to_sparse().to_dense(), x.to_sparse().conj().to_dense()
c == c.resolve_conj(), torch.equal(c, c.clone()), torch.allclose(n, n.clone()), c[c.real > 1], c[torch.tensor([1, 0])]
torch.nn.Parameter(c).is_conj(), torch.asarray(c).is_conj(), torch.asarray(c, copy=True).is_conj()
copy.deepcopy(c).is_conj(), copy.deepcopy(c), copy.copy(c).is_conj(), copy.copy(c), copy.deepcopy(n)
pickle.loads(pickle.dumps(c)).is_conj(), pickle.loads(pickle.dumps(b)), pickle.loads(pickle.dumps(n)).is_neg()
saved(c).is_conj(), saved(c), saved(n).is_neg(), saved(b), saved(m)
torch.where(c.real > 1, c, x), torch.cat([c, x]), torch.outer(c, c), torch.fft.fft(c), torch.fft.ifft(c), c.cumsum(0)
""".strip().splitlines()


def told(lib: Any, line: str) -> Any:
    def saved(t: Any) -> Any:
        file = io.BytesIO()
        lib.save(t, file)
        file.seek(0)
        return lib.load(file)

    x = lib.tensor([1 + 2j, 3 - 4j])
    space = {
        "torch": lib,
        "copy": copy,
        "pickle": pickle,
        "saved": saved,
        "x": x,
        "c": x.conj(),
        "n": lib.tensor([1.0, -2.5])._neg_view(),
        "b": lib.tensor([1 + 2j, 3 - 4j]).conj()._neg_view(),
        "m": lib.complex(lib.arange(6.0), lib.arange(6.0) * 2 - 3).reshape(2, 3).mH,
    }
    return outcome(lambda: eval(line, space))


@pytest.mark.oracle
@mindtorch_only
@pytest.mark.parametrize("line", LINES)
def test_as_pytorch_does(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)


def start(lib: Any, *shape: int) -> Any:
    n = lib.arange(1.0, 1.0 + lib.ones(shape).numel(), dtype=lib.float64).reshape(shape)
    return lib.complex(n, n * n - 3)


def written(lib: Any, write: Callable[[Any], Any], grad: bool) -> list[Any]:
    """The base after a write through views, its version, and what autograd makes of it."""
    leaf = start(lib, 2, 3).requires_grad_(grad)
    base = leaf * 1
    made = write(base)
    found = [base.detach(), base._version, str(base.grad_fn).partition(" ")[0], getattr(made, "is_conj", bool)()]
    if grad:
        (base.abs() ** 2 + base.real).sum().backward()
        # Without the signs of zeros, which depend on the order of sums.
        found.append(
            [[round(v, 6) + 0.0 for v in part.flatten().tolist()] for part in (leaf.grad.real, leaf.grad.imag)]
        )
    return found


def through_imag(base: Any) -> Any:
    return base.conj().imag.mul_(base.detach().real)


def through_views(base: Any) -> Any:
    return base.mH[1:].conj()._neg_view().t().copy_(base.detach().conj()[:, 1:])


def filled(base: Any) -> Any:
    base.conj()[0] = 2 + 1j
    return base._neg_view()[1].fill_(3j)


WRITES: list[Callable[[Any], Any]] = [
    through_imag,
    through_views,
    filled,
    lambda base: base.conj().mul_(2j),
    lambda base: base.mH.add_(base.detach().mT, alpha=1j),
    lambda base: base.copy_(base.detach().conj()),
    lambda base: base.conj().copy_(base.detach().real),
    lambda base: base._neg_view().copy_(base.detach().conj()._neg_view()),
    lambda base: base.conj().zero_(),
    lambda base: base.conj().conj_physical_(),
    lambda base: base._neg_view().neg_(),
    lambda base: base.conj().masked_fill_(base.detach().real > 2, 1j),
    lambda base: base.mH.index_put_((base.new_ones((), dtype=None).real.long(),), base.detach()[:, 0]),
]


@pytest.mark.oracle
@mindtorch_only
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_writes_reach_the_base(write: Callable[[Any], Any], grad: bool) -> None:
    oracle = _oracle.load()
    assert outcome(lambda: written(torch, write, grad)) == outcome(lambda: written(oracle, write, grad))


def transformed(lib: Any) -> list[Callable[[], Any]]:
    f, x = lib.func, start(lib, 2, 3)
    fake = importlib.import_module(f"{lib.__name__}._subclasses.fake_tensor")

    def lazy(a: Any) -> tuple[Any, ...]:
        return a.conj(), a.conj() * 2, a.conj().real, a.mH if a.dim() > 1 else a

    def writes(a: Any) -> Any:
        b = a.clone()
        b.conj().mul_(1j)
        return b

    def bits(found: Any) -> Any:
        return [(t.is_conj(), t.is_neg(), t.resolve_conj().resolve_neg()) for t in found]

    def in_fake_mode() -> Any:
        with fake.FakeTensorMode() as mode:
            a = lib.ones(2, 3, dtype=lib.complex64)
            inside = [a.conj().is_conj(), (a.mH * 2).is_conj(), a.conj().imag.is_neg(), a.mH.stride()]
        return inside, mode.from_tensor(x.conj()).is_conj()

    def loss(a: Any) -> Any:
        return (a.conj() * a.mH.mT).real.sum() + (a.conj().imag ** 3).sum()

    return [
        lambda: bits(f.vmap(lazy)(x)),
        lambda: bits(f.vmap(lazy)(x.conj())),
        lambda: bits(f.vmap(lazy, in_dims=1, out_dims=-1)(x._neg_view())),
        lambda: bits(f.vmap(f.vmap(lazy))(x.conj())),
        lambda: f.vmap(writes)(x.conj()),
        lambda: f.functionalize(writes)(x.conj()),
        lambda: f.jvp(lambda a: a.conj() * a.imag, (x,), (x.conj(),)),
        lambda: f.jvp(writes, (x.conj(),), (x,)),
        lambda: f.grad(loss)(x),
        lambda: f.grad(loss)(x.conj()),
        lambda: f.vmap(f.grad(lambda a: (a.conj() * a).real.sum()))(x.conj()),
        lambda: lib.autograd.grad(loss(x.requires_grad_()), x)[0].is_conj(),
        in_fake_mode,
    ]


@pytest.mark.oracle
@mindtorch_only
@pytest.mark.parametrize("at", range(13))
def test_transforms(at: int) -> None:
    oracle = _oracle.load()
    assert outcome(transformed(torch)[at])[0] == outcome(transformed(oracle)[at])[0]


def test_without_an_oracle() -> None:
    x = torch.tensor([1 + 2j, 3 - 4j])
    c = x.conj()
    assert c.is_conj() and c.data_ptr() == x.data_ptr()
    c.mul_(2)
    assert x.tolist() == [2 + 4j, 6 - 8j] and c.tolist() == [2 - 4j, 6 + 8j]
    assert c.imag.is_neg() and c.imag.tolist() == [-4.0, 8.0]
    with pytest.raises(RuntimeError, match="conjugate bit set"):
        c.numpy()
