"""Differences that wide samples of PyTorch's own tests found: lines of code on both libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from .test_found_by_pytorchs_tests import told

LINES = """
torch.pow(1, torch.ones(2, dtype=torch.complex32))
torch.pow(1 + 0j, torch.ones(2, dtype=torch.float16))
torch.pow(2, torch.ones(2, dtype=torch.complex32))
torch.nn.functional.fold(torch.tensor([[True, False, False, True]] * 4).t().reshape(1, 4, 4), (3, 3), (2, 2))
[t.mul_(2)._version for t in torch.ones(3, 3).unsafe_split(1)]
[t.add_(1)._version for t in torch.ones(3, 3).unsafe_split_with_sizes((1, 1, 1))]
[t.add_(1)._version for t in torch.ones(3, 3).unsafe_chunk(3)]
torch.inference_mode()(lambda: torch.ones(1, 2, requires_grad=True).resize_(3).shape)()
torch.ones(1, 2, requires_grad=True).resize_(3)
(lambda x, m: pool.native_layer_norm_backward(x, x, [3], m, m, x[0], x[0], MASK))(torch.ones(2, 3), torch.ones(2, 1))[0]
(lambda x, m: pool.native_group_norm_backward(x, x, m, m, x[0], 1, 4, 1, 2, MASK))(torch.ones(1, 4), torch.ones(1, 2))
pool.convolution_backward(*([torch.ones(1, 1, 1)] * 3), [1], [1], [0], [1], False, [0], 1, (True, True, False))[2]
pool.convolution_backward(*([torch.ones(1, 1, 1, device="meta")] * 3), [1], [1], [0], [1], False, [0], 1, MASK)[0]
pool.native_batch_norm_backward(*([torch.ones(2, 1, 2)] * 2), *([torch.ones(1)] * 5), True, 1e-5, (False, False, False))
torch._running_with_deploy()
pool.multilabel_margin_loss_forward(torch.arange(8.0).view(2, 4) / 8, torch.tensor([[1, 2, -1, 0], [3, -1, 0, 1]]), 0)
pool.multilabel_margin_loss_forward(torch.arange(4.0) / 8, torch.tensor([3, 1, -1, 0]), 2)
pool.where.Scalar(torch.tensor([True, False]), 1, 2.5)
pool.where.ScalarSelf(torch.tensor([True, False]), 1, torch.zeros(2))
pool.max_pool2d_with_indices.out(torch.ones(1, 2, 2), [2, 2], out=torch.ones(0), indices=torch.ones(0).long())
pool.adaptive_max_pool3d.out(torch.ones(1, 2, 2, 2), [1, 1, 1], out=torch.ones(0), indices=torch.ones(0).long())
torch.full((2,), 2.0, out=leaf())
torch.zeros(2, out=leaf())
torch.empty(2, out=leaf())
torch.arange(2, out=leaf())
torch.linspace(0, 1, 2, out=leaf())
torch.rand(2, out=leaf())
torch.randn(2, out=leaf())
torch.normal(0.0, 1.0, (2,), out=leaf())
torch.randperm(2, out=leaf())
torch.eq(torch.ones(2), 1, out=leaf())
torch.ones(2, 3)[0]._view_func(torch.ones(3))
torch.ones(2, 3)._view_func(torch.ones(2, 3))
torch.ones(2, 3)[0]._view_func(1)
""".strip().split("\n")


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_lines(line: str) -> None:
    line = line.replace("MASK", "(False, True, True)")
    assert told(torch, line) == told(_oracle.load(), line)


STEPS = """
a.pow(2.5)
a[1:]
torch.special.i1(a)
torch.pow(a, a)
torch.where(a > 1, a, 0.0)
torch.where(a > 1, 0.0, a)
torch.where(a > 1, 1.0, 2.0) * a
""".strip().split("\n")


@pytest.mark.parametrize("line", STEPS)
def test_modes_get_what_their_operators_take(line: str) -> None:
    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    a, b = (torch.tensor([[0.5, 1.5], [2.0, 0.7]], requires_grad=True) for _ in range(2))
    with Mode():
        eval(line, {"a": a, "torch": torch}).sum().backward()
    eval(line, {"a": b, "torch": torch}).sum().backward()
    assert torch.equal(a.grad, b.grad)


def test_softmax_of_nothing_by_its_parts() -> None:
    table = import_module(f"{torch.__name__}._decomp").decomposition_table
    for name in ("_softmax", "_log_softmax"):
        fn = table[getattr(torch.ops.aten, name).default]
        assert tuple(fn(torch.ones(5, 0, 0), -1, False).shape) == (5, 0, 0)


VIEWS = """
x.select(1, 2)
x[:, 1:].transpose(0, 1)
x.unsqueeze(-1).transpose(-1, -2).squeeze(1)
x.split([1, 3], 1)[1]
x.chunk(2, 1)[0].t()
x.unbind(0)[1]
x.diagonal()
x.unfold(1, 3, 1)
x.view(-1)
x.expand(2, 3, 4)
torch.view_as_complex(x.view(3, 2, 2))
torch.view_as_real(x.to(torch.complex64)).real
x.to(torch.complex64).conj()
""".strip().split("\n")


@pytest.mark.parametrize("line", VIEWS)
def test_views_are_made_again(line: str) -> None:
    x = torch.arange(12.0).reshape(3, 4).clone()
    with import_module(f"{torch.__name__}.autograd.grad_mode")._force_original_view_tracking(True):
        view = eval(line, {"x": x, "torch": torch})
    base = view._base
    other = torch.ones_like(base) * 2 + base
    made = view._view_func(other)
    for again, first in ((made, view), (view._view_func_unsafe(other), view)):
        assert (again.shape, again.stride(), again.storage_offset()) == (
            view.shape,
            view.stride(),
            view.storage_offset(),
        )
        assert again.dtype is first.dtype and again._base is other
    back = view._rev_view_func_unsafe(view.detach())
    assert (back.shape, back.stride(), back.dtype) == (base.shape, base.stride(), base.dtype)
    assert torch.equal(back, base) and back._is_view()


def test_views_are_made_again_elsewhere() -> None:
    x = torch.arange(12.0).reshape(3, 4).clone()
    with import_module(f"{torch.__name__}.autograd.grad_mode")._force_original_view_tracking(True):
        view = x.select(1, 2)
    assert view._view_func(x + 0, symint_visitor_fn=lambda n: n + 1).tolist() == x[:, 3].tolist()


def test_sparse_gradients_do_not_share_the_indices() -> None:
    layer, indices = torch.nn.Embedding(9, 2, sparse=True), torch.tensor([7, 1])
    layer(indices).sum().backward()
    indices.zero_()
    assert layer.weight.grad._indices().tolist() == [[7, 1]]
