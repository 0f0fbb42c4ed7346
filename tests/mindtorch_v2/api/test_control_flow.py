"""`torch.cond`, `torch.while_loop` and the scans: what runs, what it returns, and gradients through it."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2
from mindtorch_v2 import _higher_order_ops as hop

torch: Any = mindtorch_v2


@pytest.mark.parametrize("pred", [True, False, 1, 0.0])
def test_cond_takes_one_branch(pred: Any) -> None:
    x = torch.arange(3.0, requires_grad=True)
    for asked in (pred, torch.tensor(bool(pred))):
        x.grad = None
        y = torch.cond(asked, lambda a: a.sin(), lambda a: a * 3, (x,))
        y.sum().backward()
        assert torch.equal(y, x.sin() if pred else x * 3)
        assert torch.equal(x.grad, x.cos() if pred else torch.full((3,), 3.0))


# PyTorch's texts, asked of 2.13 (its own checks come before anything is compiled).
@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: torch.cond("a", len, len, (x,)), "Expected pred to be bool or tensor, but got a."),
        (lambda x: torch.cond(x, len, len, (x,)), "Expected pred to be bool or single-element tensor, but got tensor("),
        (lambda x: torch.cond(x.sum() > 0, 3, len, (x,)), "Expect both branches to be callable."),
        (
            lambda x: torch.cond(x.sum() > 0, len, len, (x, 3)),
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but",
        ),
        (lambda x: torch.while_loop(3, len, (x,)), "Expect cond_fn and body_fn to be callable."),
        (
            lambda x: torch.while_loop(lambda a: a, len, (x,)),
            "cond_fn must return a boolean scalar tensor or a boolean but got tensor(",
        ),
        (lambda x: hop.map(len, 3), "Mapped xs can only consist of tensors. Got xs [3]."),
        (lambda x: hop.scan(3, x, x), "Combine_fn must be a callable, but got 3"),
        (lambda x: hop.scan(len, [], x), "scan() operator requires init leaves."),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        call(torch.arange(3.0))
    assert str(raised.value).startswith(text)


def test_while_loop() -> None:
    x = torch.arange(3.0, requires_grad=True)
    i, y = torch.while_loop(lambda i, a: (i < 3).all(), lambda i, a: (i + 1, a * 2), (torch.zeros(1), x))
    y.sum().backward()
    assert i.item() == 3 and torch.equal(y, x * 8) and x.grad.tolist() == [8.0] * 3
    # No step: copies, as in PyTorch.
    number, same = torch.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a), (0, x))
    assert number == 0 and same is not x and torch.equal(same, x)
    with pytest.raises(AssertionError, match="body_fn should return a tuple but got"):
        torch.while_loop(lambda a: (a < 3).all(), lambda a: a + 1, (x,))


def test_scans() -> None:
    xs = torch.arange(6.0).reshape(3, 2).requires_grad_()
    carry, products = hop.scan(lambda c, v: (c + v, c * v), torch.zeros(2), xs)
    assert carry.tolist() == [6.0, 9.0] and products.tolist() == [[0, 0], [0, 3], [8, 20]]
    carry.sum().backward()
    assert xs.grad.tolist() == [[1.0, 1.0]] * 3
    carry, products = hop.scan(lambda c, v: (c + v, c * v), torch.zeros(3), xs, dim=1, reverse=True)
    assert carry.tolist() == [1.0, 5.0, 9.0] and products.tolist() == [[0, 0], [6, 0], [20, 0]]
    running = hop.associative_scan(torch.mul, xs.detach() + 1, 0, True, "generic")
    assert running.tolist() == [[15, 48], [15, 24], [5, 6]]
    sums, rest = hop.map(lambda a, b: (a + b, {"k": a * b}), xs.detach(), torch.ones(2))
    assert torch.equal(sums, xs + 1) and torch.equal(rest["k"], xs)
