"""`gradcheck(check_batched_grad=True)`: gradients asked for in a batch are those of one pass after the other."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch


def _inputs() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(3, dtype=torch.float64, generator=generator, requires_grad=True)
    w = torch.randn(3, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    return x, w


def test_right_gradients_pass() -> None:
    assert torch.autograd.gradcheck(lambda x, w: (x.sin() @ w, w.exp()), _inputs(), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda x, w: x.sin() @ w, _inputs(), check_batched_grad=True)


class _Hasty(torch.autograd.Function):
    """Its gradient is right for a number of passes only."""

    passes = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        _Hasty.passes += 1
        return g * (2 if _Hasty.passes <= _Hasty.right else 3)

    right = 10**6


def test_gradients_that_differ_in_a_batch_do_not() -> None:
    x = _inputs()[0]
    _Hasty.passes = 0
    assert torch.autograd.gradcheck(_Hasty.apply, (x,), check_batched_grad=False)
    _Hasty.right = _Hasty.passes + 2
    _Hasty.passes = 0
    with pytest.raises(RuntimeError, match="For output 0 and input 0"):
        torch.autograd.gradcheck(_Hasty.apply, (x,), check_batched_grad=True)


@pytest.mark.parametrize("name", "attention LSTM GRU RNN".split())
def test_what_a_device_serves_whole_takes_gradients_of_many(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    attend = torch.nn.functional.scaled_dot_product_attention
    layer = None if name == "attention" else getattr(torch.nn, name)(4, 2).double()

    def fn(t: Any) -> Any:
        return attend(t, t, t) if layer is None else layer(t)[0]

    assert torch.autograd.gradcheck(fn, (x,), check_batched_grad=True)
    (found,) = torch.autograd.grad(fn(x), x, torch.ones(2, *fn(x).shape, dtype=torch.float64), is_grads_batched=True)
    assert not found.requires_grad
