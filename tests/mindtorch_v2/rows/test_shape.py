"""Rows of views, creation, copies, shapes and random numbers, one expression at a time, against PyTorch: values, shape,
strides, dtype, offset, version, node name, whether the result is a view; or the exception and its text.

Invariant: every line of a table means the same in both libraries; a line that cannot is not here.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._creation_lines import CREATION, RANDOM
from ._view_lines import GEOMETRY, SHAPES, VIEWS

DERIVATIVES = r"""
x.view(6,4)
x.reshape(4,6)
x.transpose(0,1).reshape(6,4)
x.expand(3,2,3,4)
x[:,:1].expand(2,3,4)
x.permute(2,0,1)
x.transpose(0,2)
x[0].t()
x.select(1,2)
x[:,1:]
x[...,::2]
x[1,:,1]
x.narrow(1,1,2)
x[:1].squeeze()
x[:1].squeeze(0)
x[:1].squeeze((0,1))
x.unsqueeze(1)
x.as_strided((2,2),(1,2),3)
x.as_strided((3,4),(2,1),1)
x.transpose(0,1).as_strided((2,2),(3,5),2)
x[:,:1].expand(2,3,4).as_strided((2,4),(1,2),1)
x.diagonal()
x.diagonal(1,0,2)
x.unfold(2,2,1)
x.unfold(1,2,2)
x.unfold(0,1,1)
torch.cat(x.split(2,1)[1:],1)
x.split([1,3],2)[1]
x.split_with_sizes([1,3],2)[0]
x.unbind(1)[1]
torch.stack(x.unbind(1)[:2])
x.chunk(2,2)[0]
x.tensor_split(3,2)[1]
x.flatten(1)
x.unflatten(2,(2,2))
x.ravel()
x.movedim(0,2)
x.mT
x.T
x.clone()
x.contiguous()
x.transpose(0,1).contiguous()
x.to(torch.float32)
x.to(torch.float32,memory_format=torch.contiguous_format)
x.detach()
torch.cat([x,x])
torch.cat([x,x*2,x.new_zeros(0)],-1)
torch.stack([x,x*3],1)
torch.hstack([x,x])
torch.vstack([x[0],x[1]])
torch.dstack([x,x])
torch.column_stack([x[0,0],x[0,1]])
torch.flip(x,(0,2))
x.roll(1)
x.roll((1,2),(0,2))
x.rot90()
x.rot90(2,(0,2))
x.rot90(3,(1,2))
x.tril()
x.triu(1)
x.repeat(2,1,2)
x.repeat(2,2,1,1)
x.repeat(2,0,1)
torch.tile(x,(2,))
x.repeat_interleave(2)
x.repeat_interleave(3,1)
x.repeat_interleave(torch.tensor([1,2,0]),1)
torch.diag(x[0,0])
torch.diag(x[0,0],-1)
torch.diag(x[0])
torch.diag_embed(x,1,0,2)
torch.atleast_3d(x[0])
torch.constant_pad_nd(x,(1,2,0,1),3)
torch.constant_pad_nd(x,(-1,2,1,-1))
torch.meshgrid(x[0,0],x[0,1],indexing="ij")[0]
torch.meshgrid(x[0,0],x[0,1],indexing="xy")[1]
torch.complex(x,x*2)
torch.complex(x,x*2).real
torch.complex(x,x*2).imag
torch.view_as_real(torch.complex(x,x*2))
torch.view_as_complex(x.view(2,3,2,2))
torch.polar(x,x*2)
torch.broadcast_tensors(x[:, :1],x)[0]
x.clone().fill_(3)
x.clone().zero_()
x.clone().copy_(x[:1]*2)
x.clone().fill_(x[0,0,0])
torch.fill(x,x[0,0,0])
torch.zeros(2,3,4,dtype=torch.float64).copy_(x)
torch.zeros(2,3,4).copy_(x)
[y:=torch.zeros(2,3,4,dtype=torch.float64), y[:,1].copy_(x[:,0]), y][2]
[y:=x.clone(), y[:,1].copy_(x[:,0]*2), y][2]
[y:=x.clone(), y.view(-1)[3:9].mul_(2), y][2]
[y:=x.clone(), v:=y[1], v.mul_(x[0]), v.add_(1), v][2]
[y:=x.clone(), v:=y.transpose(0,1), y.mul_(2), v][3]
[y:=x.clone(), y.diagonal(0,1,2).fill_(5), y][2]
[y:=x.clone(), y.tril_(), y][2]
[y:=x.clone(), y[0].zero_(), y][2]
[y:=x.clone(), y.unfold(2,2,2).copy_(x[:,:,:,None].expand(2,3,4,2)[:,:,::2]*3), y][2]
x.swapaxes(0,1)
x.adjoint()
x.view_as(x)
x.expand_as(torch.ones(2,2,3,4))
x.hsplit(3)[0]
x.type_as(torch.ones(1))
x.float().double()
x.real
SLICE(x,1,0,2,1)
"""


# -- evaluating a line in one library -------------------------------------------------------------------------------
def slice_row(library: Any) -> Any:
    """`aten::slice`, which has no public name."""
    if library.__name__ == "torch":
        return library.ops.aten.slice
    row = submodule("_dispatch.registry").get("slice")
    return lambda t, dim=0, start=None, end=None, step=1: row.call((t, dim, start, end, step))


def shown(value: Any, library: Any) -> Any:
    """What must agree of a result."""
    if isinstance(value, library.Tensor):
        numbers = None if value.device.type == "meta" else value.detach().tolist()
        node = None if value.grad_fn is None else type(value.grad_fn).__name__
        return [
            "tensor",
            list(value.shape),
            list(value.stride()),
            str(value.dtype),
            str(value.device),
            numbers,
            node,
            value.requires_grad,
            value._is_view(),
            value.storage_offset(),
            value._version,
        ]
    if isinstance(value, (tuple, list)):
        return [shown(item, library) for item in value]
    if isinstance(value, (library.dtype, library.device)):
        return str(value)
    return value


def outcome(line: str, library: Any, setup: str) -> Any:
    space: dict[str, Any] = {"torch": library, "np": numpy, "SLICE": slice_row(library)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(setup, space)
        try:
            return shown(eval(line, space), library)
        except Exception as e:
            return [type(e).__name__, str(e).replace("privateuseone", "npu").strip()]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, (float, complex)) and type(a) is type(b):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    return type(a) is type(b) and bool(a == b)


def differences(table: str, setup: str) -> list[str]:
    oracle = _oracle.load()
    found = []
    for line in table.strip().splitlines():
        expected, actual = outcome(line, oracle, setup), outcome(line, torch, setup)
        if not same(actual, expected):
            found.append(f"{line}\n    expected {expected}\n    got      {actual}")
    return found


FAMILIES = {
    "views": (VIEWS, "x = torch.arange(24.0).view(2, 3, 4); e = torch.empty(0, 3); s = torch.tensor(1.0)"),
    "creation": (CREATION, "x = torch.ones(2, 3)"),
    "shapes": (
        SHAPES,
        "x = torch.arange(6.0).view(2, 3); s = torch.tensor(1.0); y = torch.arange(24.0).view(2, 3, 4); "
        "e = torch.empty(0); c4 = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)",
    ),
    "random": (RANDOM, "x = torch.ones(2, 3); g = torch.Generator().manual_seed(7); torch.manual_seed(0)"),
    "geometry in place": (GEOMETRY, "x = torch.arange(24.0).view(2, 3, 4).clone(); s = torch.tensor(1.0)"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("family", FAMILIES)
def test_lines_agree(family: str) -> None:
    found = differences(*FAMILIES[family])
    assert not found, f"{len(found)} lines differ:\n" + "\n".join(found)


# -- derivatives ----------------------------------------------------------------------------------------------------
def weights(library: Any, like: Any, salt: int) -> Any:
    """Numbers to weigh a result with, so that no gradient is lost by symmetry."""
    w = library.tensor([((i * 37 + salt * 11) % 13 - 6) / 5 for i in range(like.numel())], dtype=library.float64)
    w = w.reshape(tuple(like.shape))
    if like.is_complex():
        w = library.complex(w, w.flip(tuple(range(w.dim()))) * 0.5)
    return w.to(like.dtype)


def derivatives(line: str, library: Any) -> Any:
    """Node name, first and second derivative of an expression of `x = leaf * leaf`."""
    leaf = library.tensor([((i * 7) % 11 - 5) / 4 + 0.1 for i in range(24)], dtype=library.float64).reshape(2, 3, 4)
    leaf.requires_grad_(True)
    space: dict[str, Any] = {"torch": library, "SLICE": slice_row(library), "x": leaf * leaf}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = eval(line, space)
        if not out.requires_grad:
            return shown(out, library)
        grad = library.autograd.grad
        (first,) = grad(out, leaf, weights(library, out, 1), create_graph=True, allow_unused=True)
        found = [type(out.grad_fn).__name__, out._is_view(), out.detach().tolist()]
        if first is None:
            return [*found, None]
        found.append(first.detach().tolist())
        if first.requires_grad:
            (second,) = grad(first, leaf, weights(library, first, 2), allow_unused=True)
            found.append(None if second is None else second.tolist())
        return found


@pytest.mark.oracle
@pytest.mark.parametrize("line", DERIVATIVES.strip().splitlines())
def test_derivatives_agree(line: str) -> None:
    expected, actual = derivatives(line, _oracle.load()), derivatives(line, torch)
    assert same(actual, expected), f"expected {expected}\ngot {actual}"


# -- without PyTorch ------------------------------------------------------------------------------------------------
def test_a_conversion_that_changes_nothing_is_the_tensor_itself() -> None:
    x = torch.ones(2, 3)
    for same_tensor in (
        x.to(torch.float32),
        x.to("cpu"),
        x.to(x),
        x.float(),
        x.cpu(),
        x.contiguous(),
        x.type_as(x),
        x.to(device="cpu", dtype=torch.float32),
        x.to(memory_format=torch.contiguous_format),
    ):
        assert same_tensor is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.double().dtype is torch.float64 and x.double().stride() == (3, 1)


def test_seeds_give_the_same_numbers_again() -> None:
    torch.manual_seed(0)
    assert torch.rand(3).tolist() == pytest.approx([0.4962566, 0.7682218, 0.0884774], abs=1e-7)
    torch.manual_seed(0)
    assert torch.randn(3).tolist() == pytest.approx([1.5409961, -0.2934289, -2.1787894], abs=1e-6)
    state = torch.get_rng_state()
    first = (torch.rand(5).tolist(), torch.randperm(10).tolist(), torch.empty(4).normal_().tolist())
    torch.set_rng_state(state)
    assert (torch.rand(5).tolist(), torch.randperm(10).tolist(), torch.empty(4).normal_().tolist()) == first
    a, b = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    assert torch.randint(100, (20,), generator=a).tolist() == torch.randint(100, (20,), generator=b).tolist()


@mindtorch_only
def test_a_generator_can_be_pickled() -> None:
    g = torch.Generator().manual_seed(3)
    torch.rand(7, generator=g)
    again = pickle.loads(pickle.dumps(g))
    assert torch.rand(4, generator=again).tolist() == torch.rand(4, generator=g).tolist()


def test_distributions_have_their_moments() -> None:
    torch.manual_seed(1)
    n = 40000
    for t, mean, variance in (
        (torch.rand(n, dtype=torch.float64), 0.5, 1 / 12),
        (torch.randn(n, dtype=torch.float64), 0.0, 1.0),
        (torch.empty(n, dtype=torch.float64).uniform_(-1, 3), 1.0, 16 / 12),
        (torch.empty(n, dtype=torch.float64).normal_(2, 3), 2.0, 9.0),
        (torch.empty(n, dtype=torch.float64).exponential_(2), 0.5, 0.25),
        (torch.empty(n, dtype=torch.float64).geometric_(0.25), 4.0, 12.0),
        (torch.empty(n, dtype=torch.float64).bernoulli_(0.3), 0.3, 0.21),
        (torch.randint(0, 10, (n,)).to(torch.float64), 4.5, 8.25),
    ):
        values = numpy.array(t.tolist())
        assert abs(values.mean() - mean) < 6 * (variance / n) ** 0.5
        assert abs(values.var() - variance) < 0.1 * variance
    drawn = torch.multinomial(torch.tensor([0.1, 0.0, 0.9]), 2000, replacement=True).tolist()
    assert 1 not in drawn and 100 < drawn.count(0) < 320
    assert sorted(torch.multinomial(torch.ones(6), 6).tolist()) == list(range(6))


def test_random_fills_bump_the_version_once() -> None:
    x = torch.ones(4)
    fills = ("uniform_", "normal_", "random_", "exponential_", "bernoulli_", "cauchy_", "log_normal_")
    for i, fill in enumerate(fills):
        getattr(x, fill)()
        assert x._version == i + 1


def test_numpy_memory_is_shared_both_ways() -> None:
    a = numpy.arange(12.0).reshape(3, 4)[:, ::2]
    t = torch.from_numpy(a)
    assert t.shape == (3, 2) and t.stride() == (4, 2)
    t[1, 1] = 50.0
    assert a[1, 1] == 50.0
    a[0, 0] = -1.0
    assert t[0, 0].item() == -1.0
    raw = bytearray(8)
    torch.frombuffer(raw, dtype=torch.int16, count=2, offset=2).fill_(257)
    assert raw == bytes([0, 0, 1, 1, 1, 1, 0, 0])


def test_the_device_context_redirects_factories() -> None:
    x = torch.ones(2)
    with torch.device("meta"):
        made = [
            torch.tensor([1]),
            torch.as_tensor([1]),
            torch.zeros(2),
            torch.arange(3),
            torch.rand(2),
            torch.eye(2),
            torch.full((2,), 1),
            torch.randperm(3),
            torch.empty_strided((2,), (1,)),
            torch.linspace(0, 1, 2),
        ]
        assert {t.device.type for t in made} == {"meta"}
        kept = [torch.zeros_like(x), x.new_zeros(2), torch.from_numpy(numpy.ones(2)), torch.zeros(2, device="cpu")]
        assert {t.device.type for t in kept} == {"cpu"}
    assert torch.zeros(2).device.type == "cpu"


META_CALLS = r"""
torch.cat([x, x], 1)
torch.stack([x, x])
torch.flip(x, (0,))
x.roll(1)
x.rot90()
x.tril()
x.repeat(2, 2)
torch.diag_embed(x)
torch.constant_pad_nd(x, (1, 1))
x.as_strided((2, 2), (1, 2))
x.transpose(0, 1).reshape(6)
x.clone()
x.to(torch.float64)
x.fill_(2)
x.zero_()
x.copy_(torch.ones(3))
torch.zeros_like(x)
x.new_full((2,), 3)
x.normal_()
torch.bernoulli(x)
torch.multinomial(x, 2)
x.unfold(1, 2, 1)
"""


@pytest.mark.parametrize("line", META_CALLS.strip().splitlines())
def test_meta_gives_the_same_layout(line: str) -> None:
    real = eval(line, {"torch": torch, "x": torch.ones(2, 3)})
    meta = eval(
        line.replace("torch.ones(3)", "torch.ones(3, device='meta')"),
        {"torch": torch, "x": torch.ones(2, 3, device="meta")},
    )
    assert (meta.shape, meta.stride(), meta.dtype) == (real.shape, real.stride(), real.dtype)
    assert meta.device.type == "meta"


def test_overlapping_as_strided_accumulates() -> None:
    x = torch.arange(5.0, dtype=torch.float64, requires_grad=True)
    windows = x.as_strided((3, 3), (1, 1))
    (windows * torch.arange(9.0, dtype=torch.float64).view(3, 3)).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 12.0, 12.0, 8.0]


def test_a_failed_call_changes_nothing() -> None:
    x = torch.arange(4.0)
    for call in (
        lambda: x.copy_(torch.ones(5)),
        lambda: x.fill_(1j),
        lambda: x.fill_(torch.ones(2)),
        lambda: x[1:].copy_(x[:-1]),
        lambda: x.uniform_(1, 0),
        lambda: x.normal_(0, -1),
        lambda: x.random_(3, 1),
    ):
        with pytest.raises(RuntimeError):
            call()
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and x._version == 0
