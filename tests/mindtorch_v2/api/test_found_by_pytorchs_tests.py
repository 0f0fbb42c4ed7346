"""Differences that PyTorch's own tests found: lines of code on both libraries."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import mindtorch_only
from .._subject import subject as torch


def told(library: Any, line: str) -> Any:
    def leaf() -> Any:
        return library.ones(2, requires_grad=True)

    def asked(t: Any, **kwargs: Any) -> tuple[bool, ...]:
        made = library.asarray(t, **kwargs)
        return made is t, t.requires_grad, made.requires_grad, made.is_leaf

    space = {
        "torch": library,
        "leaf": leaf,
        "asked": asked,
        "Like": type("Like", (), {"__torch_function__": classmethod(lambda *a, **k: None)}),
        "pool": library.ops.aten,
        "int8": lambda *shape: (library.arange(shape[0] * shape[1]) * 37 - 90).to(library.int8).reshape(shape),
        "once": once(library),
        "mode": import_module(f"{library.__name__}.autograd.grad_mode")._force_original_view_tracking,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(line, space))
        except Exception as error:  # every error is part of what a line does
            return f"{type(error).__name__}: {error}".replace(library.__name__, "torch")


def once(library: Any) -> Any:
    class Once(library.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx: Any, x: Any, times: int) -> Any:
            ctx.save_for_backward(x)
            ctx.times = times
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            for _ in range(ctx.times):
                (x,) = ctx.saved_tensors
            return g * x * 3, None

    def run(times: int) -> Any:
        x = library.full((2,), 2.0, requires_grad=True)
        Once.apply(x, times).sum().backward()
        return x.grad

    return run


LINES = """
torch.triangular_solve(torch.eye(2) * 1j, torch.tensor([[1j, 2], [0, 1]]), transpose=True)[0].tolist()
torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), beta=True)
torch.addr(torch.ones(2, 2).short(), torch.ones(2).short(), torch.ones(2).short(), alpha=True)
torch.addr(torch.ones(2, 2).bool(), torch.ones(2).bool(), torch.ones(2).bool(), alpha=True).tolist()
torch.asarray(__import__('numpy').float64(0.5), copy=False)
torch.range(0, 3, out=torch.zeros(2, 3).narrow(1, 1, 2)).tolist()
torch.view_as_complex(torch.empty_strided((2, 1, 2), (6, 7, 1))).stride()
torch.ones(2, 2, 2).to_sparse().t()
torch.ones(2, 2, 2).to_sparse(1).t()
setattr(torch.ones(2), 'data', torch.eye(2).to_sparse())
torch._utils._maybe_view_chunk_cat(torch.arange(24).reshape(4, 2, 3), 4, 2).tolist()
torch._utils._maybe_view_chunk_cat(torch.arange(24).reshape(4, 2, 3), 2, 1).tolist()
asked(leaf())
asked(leaf() * 2)
asked(leaf(), requires_grad=False)
asked(leaf() * 2, requires_grad=False)
asked(leaf() * 2, requires_grad=True)
asked(leaf(), dtype=torch.float64, requires_grad=True)
asked(leaf(), dtype=torch.float64, requires_grad=False)
asked(leaf(), copy=True)
asked(leaf(), copy=True, requires_grad=True)
asked(torch.ones(2), requires_grad=True)
asked(torch.ones(2))
torch.cummax(torch.tensor(1.0), 2)
torch.cummin(torch.tensor(1.0), 3)
torch.cummax(torch.tensor(1.0), -1).values
torch.cummax(torch.ones(2), 1)
torch._pack_padded_sequence(torch.ones(0, 0), torch.tensor([]), True)
torch._pack_padded_sequence(torch.ones(2, 3, 4), torch.ones(2), True)
pool.adaptive_max_pool2d_backward(torch.ones(1, 2, 7, 7), torch.ones(1, 2, 7, 7), torch.ones(1, 2, 3, 3).long())
pool.adaptive_max_pool3d_backward(torch.ones(2, 7, 7, 7), torch.ones(2, 7, 7, 7), torch.ones(2, 3, 3, 3).long())
torch.nn.TransformerDecoderLayer(4, 2, 16)(torch.ones(0, 0, 4), torch.ones(0, 0, 4)).shape
torch.nn.MultiheadAttention(4, 2)(*[torch.ones(3, 0, 4)] * 3, need_weights=True)[1].shape
torch.nn.MultiheadAttention(4, 2)(*[torch.ones(3, 0, 4)] * 3, need_weights=False)[0].shape
torch.testing.make_tensor((2,), dtype=torch.float8_e4m3fnuz, device="cpu").shape
torch.testing.make_tensor((2,), dtype=torch.float8_e5m2fnuz, device="cpu", low=1, high=3).shape
torch.nn.Module().register_buffer("b", Like())
torch.nn.Module().register_buffer("b", object())
len(torch.nn.Linear(1, 1)._forward_hooks_with_kwargs), len(torch.nn.Linear(1, 1)._forward_hooks_always_called)
len(torch.nn.Linear(1, 1)._forward_pre_hooks_with_kwargs)
once(1)
once(2)
torch._C._is_view_replay_enabled(), mode(True).__enter__(), torch._C._is_view_replay_enabled(), mode(False).__enter__()
torch._int_mm(int8(3, 4), int8(4, 5)), torch._int_mm(int8(3, 4).to(torch.uint8), int8(4, 5))
torch._int_mm(int8(3, 4), int8(4, 5), out=torch.empty(3, 5, dtype=torch.int32))
torch._int_mm(int8(3, 4), int8(4, 5).to(torch.uint8))
torch._int_mm(int8(3, 4).int(), int8(4, 5))
torch._int_mm(int8(3, 4), int8(3, 5))
torch._int_mm(int8(3, 4)[0], int8(4, 5))
torch._int_mm(int8(3, 4), int8(4, 5)[:, 0])
torch.margin_ranking_loss(torch.arange(6.).view(2, 3), torch.ones(2, 3), torch.ones(3), 0.5, 1)
torch.margin_ranking_loss(torch.arange(6.).view(2, 3), torch.ones(2, 3), torch.ones(2), 0.5, 1)
torch._foreach_norm([torch.ones(2), torch.ones(0)], float("inf"))
torch._foreach_norm([torch.ones(2, 0).long()], float("inf"))
torch._foreach_norm([torch.ones(2), torch.ones(0)], -float("inf"))
torch._foreach_addcmul([torch.ones(2)], [torch.ones(2)], [torch.ones(2)], torch.ones(1, 1))
[x.is_contiguous(memory_format=torch.preserve_format) for x in (torch.ones(2, 3), torch.ones(2, 3).t())]
torch.jit.wait(None)
torch.futures.wait_all((None,))
torch.futures.collect_all((torch.futures.Future(), None))
torch._C._set_conj(torch.ones(2), False), torch._C._set_neg(torch.ones(2), False)
""".strip().split("\n")


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_as_pytorch_does(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)


def test_asarray_says_once_that_history_is_kept() -> None:
    x = torch.ones(2, requires_grad=True)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="unspecified requires_grad now defaults to obj.requires_grad"):
            torch.asarray(x)
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_warn_of_an_out_tensor_of_another_size(name: str) -> None:
    out = torch.zeros(7)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="out tensor of shape .7. is 7 which does not match"):
            getattr(torch.fft, name)(4, out=out)
    finally:
        torch.set_warn_always(False)
    assert out.tolist() == getattr(torch.fft, name)(4).tolist()


def test_what_hooks_want_is_told_by_pytorchs_names() -> None:
    module = torch.nn.Linear(1, 1)
    with_kwargs = module.register_forward_hook(lambda *a: None, with_kwargs=True)
    always = module.register_forward_hook(lambda *a: None, always_call=True)
    before = module.register_forward_pre_hook(lambda *a: None, with_kwargs=True)
    assert list(module._forward_hooks_with_kwargs) == [with_kwargs.id]
    assert list(module._forward_hooks_always_called) == [always.id]
    assert list(module._forward_pre_hooks_with_kwargs) == [before.id]
    for handle in (with_kwargs, always, before):
        handle.remove()
    assert not module._forward_hooks_with_kwargs and not module._forward_pre_hooks_with_kwargs


@mindtorch_only
def test_namespaces_of_operators_can_be_forgotten() -> None:
    with torch.library._scoped_library("forgotten", "FRAGMENT") as made:
        made.define("f(Tensor x) -> Tensor")
        made.impl("f", lambda x: x + 1, "CPU")
        assert torch.ops.forgotten.f(torch.ones(1)).item() == 2.0
        del torch.ops.forgotten
        assert torch.ops.forgotten.f(torch.ones(1)).item() == 2.0
    with pytest.raises(AttributeError):
        del torch.ops.never_asked_for


@mindtorch_only
def test_kinds_of_convolutions() -> None:
    image, volume = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 4, 4, 4)

    def kind(x: Any, dilation: int = 1, transposed: bool = False) -> str:
        n = x.dim() - 2
        weight = torch.ones(1, 1, *[2] * n)
        given = (x, weight, None, [1] * n, [0] * n, [dilation] * n, transposed, [0] * n, 1)
        return str(torch._C._select_conv_backend(*given).name)

    assert (kind(image), kind(volume)) == ("Slow2d", "Slow3d")
    assert (kind(image, 2), kind(volume, 2)) == ("SlowDilated2d", "SlowDilated3d")
    assert (kind(image, 1, True), kind(volume, 1, True)) == ("SlowTranspose2d", "SlowTranspose3d")
    assert kind(image[:0]) == "Empty"


ARRAYS = """
a == n
n == a
a == n[0]
a == n.astype("float64")
a == n.astype("int8")
a == numpy.array(3)
a == numpy.arange(4)
a == numpy.array(["x"])
a == numpy.array([None])
a == n[::-1]
a != n
a < n
n / (a + 1)
a.__rtruediv__(n + 1)
numpy.arange(4) / a
[1, 2, 3] / a
a == [1, 2, 3]
a == None
""".strip().split("\n")


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", ARRAYS)
def test_operators_with_arrays(line: str) -> None:
    import numpy

    def result(library: Any) -> Any:
        a = library.arange(6.0).reshape(2, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return plain(eval(line, {"a": a, "n": a.numpy().copy(), "numpy": numpy}))
            except Exception as error:  # every error is part of what a line does
                return type(error).__name__

    assert result(torch) == result(_oracle.load())


@mindtorch_only
def test_gradients_are_lost_in_numbers_with_a_warning() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    torch.set_warn_always(True)
    try:
        for convert in (float, complex):
            with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
                convert(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            int(x), bool(x), x.item(), float(x.detach())
    finally:
        torch.set_warn_always(False)


@mindtorch_only
def test_operators_of_functions_are_served_by_key() -> None:
    keys, seen = torch._C.DispatchKey, []
    op: Any = import_module(f"{torch.__name__}._ops").HigherOrderOperator("an_operator")

    @op.py_impl(keys.AutogradCPU)
    def above(x: Any) -> Any:
        seen.append("autograd")
        with torch._C._AutoDispatchBelowAutograd():
            return op(x)

    @op.py_impl(keys.CPU)
    def below(x: Any) -> Any:
        seen.append("cpu")
        return x + 1

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    @op.py_impl(Mode)
    def between(mode: Any, x: Any) -> Any:
        seen.append("mode")
        return op(x)

    assert op(torch.ones(1)).tolist() == [2] and seen == ["autograd", "cpu"]
    seen.clear()
    with Mode():
        assert op(torch.ones(1)).tolist() == [2]
    assert seen == ["autograd", "mode", "cpu"]
    with pytest.raises(RuntimeError, match="Trying to override"):
        op.py_impl(keys.CPU)(below)
    with pytest.raises(NotImplementedError, match="could not find kernel"):
        op(torch.ones(1, device="meta"))
