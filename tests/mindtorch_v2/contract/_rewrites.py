"""Small differentiable programs that write in place through views, for contract C6 and D6.

Invariant: every program maps two (3, 3) tensors of one floating dtype to one tensor of at most nine elements and is
smooth around the points where the tests evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._subject import subject as torch

Program = Callable[[Any, Any], Any]


def on_copy(*writes: Callable[[Any, Any, Any], Any]) -> Program:
    """The program that copies x to b, applies `write(b, x, y)` for each of `writes`, and returns b."""

    def program(x: Any, y: Any) -> Any:
        b = x * 1
        for write in writes:
            write(b, x, y)
        return b

    return program


def read_of_old_view(x: Any, y: Any) -> Any:
    b = x * 1
    view = b[0]
    b.mul_(y)
    return view * b[1]


def read_of_sibling_view(x: Any, y: Any) -> Any:
    b = x * 1
    left, right = b[:2], b[1:]
    left.mul_(y[:2])
    return right * right


def constant_base(x: Any, y: Any) -> Any:
    b = torch.zeros(3, 3, dtype=x.dtype, device=x.device)
    b[0].add_(x[0] * y[0])
    b[:, 1] = y[2]
    return b * 2


def view_before_base_requires_grad(x: Any, y: Any) -> Any:
    b = torch.ones(3, 3, dtype=x.dtype, device=x.device)
    view = b.t()
    b.mul_(x)
    return view * y


REWRITES: dict[str, Program] = {
    "select": on_copy(lambda b, x, y: b[0].mul_(y[0])),
    "slice": on_copy(lambda b, x, y: b[1:].mul_(y[1:])),
    "step": on_copy(lambda b, x, y: b[::2, ::2].mul_(y[:2, :2])),
    "transpose": on_copy(lambda b, x, y: b.t().mul_(y)),
    "permute": on_copy(lambda b, x, y: b.permute(1, 0).add_(y * x)),
    "view": on_copy(lambda b, x, y: b.view(-1)[2:7].mul_(y.reshape(-1)[2:7])),
    "unsqueeze": on_copy(lambda b, x, y: b.unsqueeze(1)[0].mul_(y[0])),
    "narrow": on_copy(lambda b, x, y: b.narrow(1, 1, 2).mul_(y[:, 1:])),
    "diagonal": on_copy(lambda b, x, y: b.diagonal().mul_(y[0])),
    "as_strided": on_copy(lambda b, x, y: b.as_strided((2, 2), (3, 1), 1).mul_(y[:2, :2])),
    "view_of_view": on_copy(lambda b, x, y: b[1:].t()[0].mul_(y[0, :2])),
    "copy": on_copy(lambda b, x, y: b[0].copy_(y[1])),
    "copy_broadcast": on_copy(lambda b, x, y: b.copy_(y[0].expand(3, 3))),
    "fill": on_copy(lambda b, x, y: b.mul_(y), lambda b, x, y: b[:, 1].fill_(2.0)),
    "zero": on_copy(lambda b, x, y: b.mul_(y), lambda b, x, y: b[1].zero_()),
    "setitem": on_copy(lambda b, x, y: b.__setitem__((slice(0, 2), 1), y[0, :2])),
    "setitem_mask": on_copy(lambda b, x, y: b.__setitem__(x.detach() > 0.3, 3.0)),
    "setitem_index": on_copy(lambda b, x, y: b.__setitem__(torch.tensor([0, 2]), y[:2])),
    "masked_fill": on_copy(lambda b, x, y: b.mul_(y), lambda b, x, y: b.t().masked_fill_(x.detach() > 0.3, 0.0)),
    "two_views": on_copy(lambda b, x, y: b[0].mul_(y[0]), lambda b, x, y: b[:, 0].mul_(y[1])),
    "base_then_view": on_copy(lambda b, x, y: b.mul_(y), lambda b, x, y: b[1].add_(x[0])),
    "view_then_base": on_copy(lambda b, x, y: b[1].mul_(y[1]), lambda b, x, y: b.mul_(x)),
    "exp": on_copy(lambda b, x, y: b.mul_(y).exp_()),
    "exp_of_view": on_copy(lambda b, x, y: b[1:].mul_(y[1:]).exp_()),
    "chain": on_copy(lambda b, x, y: b.sin_().add_(x).mul_(2).sub_(y)),
    "read_of_old_view": read_of_old_view,
    "read_of_sibling_view": read_of_sibling_view,
    "constant_base": constant_base,
    "view_before_base_requires_grad": view_before_base_requires_grad,
}
