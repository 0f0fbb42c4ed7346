"""In-place operators and out=: the same values as the functional form, into the same memory, in every layout.

Invariant: an in-place method equals its functional form followed by a copy, for values, dtype, version and history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._subject import subject as torch
from ..contract import _inplace_calls as inplace

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t.clone(),
    "transposed": lambda t: t.t().clone().t(),
    "offset": lambda t: torch.cat([t, t])[3:],
    "stepped": lambda t: torch.stack([t, t], -1).flatten(1)[:, ::2],
}

# In-place methods whose functional form has the same name without the underscore and the same arguments.
PAIRS: list[str] = [
    name
    for name in inplace.available(torch)
    if name not in inplace.LAYOUT
    and name not in inplace.RANDOM
    and name.endswith("_")
    and not name.startswith("__")
    and name not in ("zero_", "fill_", "copy_", "fill_diagonal_", "put_")
    and hasattr(torch.Tensor, name[:-1])
]


class Functional:
    """Stands for the tensor in a call of the table and turns `t.add_(...)` into `t.add(...)`."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor, name[:-1] if name.endswith("_") and not name.endswith("__") else name)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PAIRS)
def test_inplace_equals_functional(name: str, layout: str) -> None:
    call = inplace.CALLS[name]
    source = call.make(torch)
    if source.dim() != 2 and layout != "contiguous":
        layout = "contiguous"
    target = LAYOUTS[layout](source)
    pointer, stride = target.data_ptr(), target.stride()
    expected = call.call(torch, Functional(source))
    result = call.call(torch, target)
    assert result is target
    assert target.data_ptr() == pointer and target.stride() == stride
    assert target.dtype == source.dtype
    assert repr(target.tolist()) == repr(expected.to(source.dtype).tolist())
    assert source.tolist() == call.make(torch).tolist()


# No derivative, or, for the last four, none in place in PyTorch.
NO_DERIVATIVE = frozenset(
    "logical_and_ logical_or_ logical_xor_ logical_not_ eq_ ne_ lt_ le_ gt_ ge_ not_equal_ less_ less_equal_ "
    "greater_ greater_equal_ nextafter_ heaviside_ igamma_ igammac_ acosh_ arccosh_ floor_divide_ "
    "asinh_ atanh_ arcsinh_ arctanh_".split()
)
DIFFERENTIABLE = [name for name in PAIRS if name in inplace.differentiable(torch) and name not in NO_DERIVATIVE]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_inplace_gradient_equals_functional_gradient(name: str) -> None:
    call = inplace.CALLS[name]
    first, second = call.make(torch).requires_grad_(), call.make(torch).requires_grad_()
    functional = call.call(torch, Functional(first * 1))
    target = second * 1
    call.call(torch, target)
    assert target.grad_fn is not None
    assert functional.requires_grad == target.requires_grad
    weight = torch.linspace(1, 2, functional.numel(), dtype=torch.float64).view(functional.shape)
    (functional * weight).sum().backward()
    (target * weight).sum().backward()
    # A gradient that is zero everywhere may be held without memory; adding makes it an ordinary tensor.
    assert repr((first.grad + 0).tolist()) == repr((second.grad + 0).tolist())


UNARY_OUT = "exp log sin cos tanh sigmoid sqrt rsqrt abs neg floor ceil round trunc sign reciprocal".split()
BINARY_OUT = "add sub mul div pow maximum minimum atan2 remainder fmod".split()


@pytest.mark.parametrize("name", [name for name in UNARY_OUT + BINARY_OUT if hasattr(torch, name)])
def test_out_variants(name: str) -> None:
    function = getattr(torch, name)
    a = inplace.floats(torch)
    arguments = (a,) if name in UNARY_OUT else (a, a.t() + 0.5)
    expected = function(*arguments)
    plain = torch.zeros(6, 3, dtype=torch.float64)
    for target in (plain[:3].clone(), plain[:3].clone().t(), plain.clone()[::2]):
        pointer = target.data_ptr()
        assert function(*arguments, out=target) is target
        assert target.data_ptr() == pointer
        assert target.tolist() == expected.tolist()
        assert target._version == 1


def test_out_is_resized_when_empty_and_warned_about_when_not() -> None:
    a = torch.ones(2, 3)
    target = torch.empty(0)
    assert torch.add(a, 1, out=target) is target
    assert tuple(target.shape) == (2, 3)
    wrong = torch.zeros(4)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized since it had shape"):
        torch.add(a, 1, out=wrong)
    assert tuple(wrong.shape) == (2, 3)


def test_out_may_be_of_a_wider_dtype() -> None:
    target = torch.zeros(2, dtype=torch.float64)
    torch.add(torch.tensor([1, 2]), 1, out=target)
    assert target.tolist() == [2, 3]


def test_out_may_alias_an_input() -> None:
    a = torch.arange(4.0)
    torch.mul(a, a, out=a)
    assert a.tolist() == [0, 1, 4, 9]


def test_out_of_reductions_and_products() -> None:
    a = torch.arange(6.0).view(2, 3)
    target = torch.zeros(2)
    torch.sum(a, 1, out=target)
    assert target.tolist() == [3, 12]
    product = torch.zeros(2, 2)
    torch.mm(a, a.t(), out=product)
    assert product.tolist() == [[5, 14], [14, 50]]
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    torch.max(a, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([2, 5], [2, 2])
    both = torch.zeros(4, 3)
    torch.cat([a, a], out=both)
    assert both.tolist() == a.tolist() * 2


def test_inplace_keeps_the_dtype_of_self() -> None:
    a = torch.ones(2, dtype=torch.float32)
    a.add_(torch.ones(2, dtype=torch.float64))
    assert a.dtype == torch.float32
    b = torch.ones(2, dtype=torch.float16)
    b.mul_(3)
    assert b.dtype == torch.float16 and b.tolist() == [3, 3]
    c = torch.tensor([5, 7])
    c.floor_divide_(2)
    assert c.tolist() == [2, 3]


def test_inplace_with_itself() -> None:
    a = torch.tensor([1.0, 2.0, 3.0])
    a.add_(a)
    a.mul_(a)
    a.sub_(a * 0.5)
    assert a.tolist() == [2, 8, 18]
    square = torch.arange(4.0).view(2, 2)
    square.copy_(square.t().clone())
    assert square.tolist() == [[0, 2], [1, 3]]


def test_copy_converts_broadcasts_and_returns_self() -> None:
    a = torch.zeros(2, 3)
    assert a.copy_(torch.tensor([1, 2, 3])) is a
    assert a.tolist() == [[1, 2, 3], [1, 2, 3]]
    a.t().copy_(torch.tensor([[True, False]] * 3))
    assert a.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_fill_and_zero_through_layouts() -> None:
    for layout in LAYOUTS.values():
        t = layout(inplace.floats(torch))
        assert t.fill_(3).tolist() == [[3.0] * 3] * 3
        assert t.zero_().sum().item() == 0
        assert t.fill_(torch.tensor(2.0)).sum().item() == 18


def test_inplace_layout_methods_change_the_tensor_itself() -> None:
    t = torch.arange(6.0).view(2, 3).clone()
    pointer = t.data_ptr()
    t.t_()
    assert tuple(t.shape) == (3, 2) and t.stride() == (1, 3)
    t.unsqueeze_(0)
    assert tuple(t.shape) == (1, 3, 2)
    t.squeeze_(0)
    t.transpose_(0, 1)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    t.as_strided_((2, 2), (3, 1))
    assert t.tolist() == [[0, 1], [3, 4]]
    assert t.data_ptr() == pointer


def test_inplace_layout_methods_are_differentiable() -> None:
    a = torch.arange(6.0).view(2, 3).requires_grad_()
    b = a * 1
    b.t_()
    assert type(b.grad_fn).__name__ == "TBackward1"
    (b * torch.arange(6.0).view(3, 2)).sum().backward()
    assert a.grad.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_requires_grad_spreads_through_inplace() -> None:
    a = torch.zeros(2)
    w = torch.ones(2, requires_grad=True)
    a.add_(w)
    assert a.requires_grad and not a.is_leaf
    (a * a).sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_inplace_result_is_used_in_its_own_history() -> None:
    w = torch.tensor([2.0], requires_grad=True)
    x = w * 3
    x.mul_(w)
    x.add_(x * 2)
    x.backward()
    assert w.grad.item() == 36


def test_random_inplace_writes_all_elements() -> None:
    torch.manual_seed(1)
    t = torch.full((100,), 7.0)
    t.uniform_(0, 1)
    assert t.max().item() < 1
    t.normal_(5, 0.1)
    assert t.mean().item() == pytest.approx(5, abs=0.1)
    assert set(torch.empty(50).bernoulli_(0.5).tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 70_000, 300_000])
def test_inplace_of_many_sizes(size: int) -> None:
    """Small, odd and large enough for threads."""
    t = torch.arange(size, dtype=torch.float64)
    t.mul_(2).add_(1)
    assert t[0].item() == 1 and t[-1].item() == 2 * (size - 1) + 1
    assert t.sum().item() == size * (size - 1) + size
    strided = torch.zeros(size, 2)
    strided[:, 1].add_(3)
    assert strided.sum().item() == 3 * size


_LOST_SIGN = (
    "In-place {} backward calculation is triggered with a negative slope which is not supported. This is caused by "
    "calling in-place forward function with a negative slope, please call out-of-place version instead."
)
# Call with a slope, and the name its refusal and its node have.
FROM_RESULT: dict[str, tuple[Callable[[Any, float], Any], str, str]] = {
    "leaky_relu_": (lambda t, a: torch.nn.functional.leaky_relu_(t, a), "leakyReLu", "LeakyReluBackward1"),
    "leaky_relu": (lambda t, a: torch.nn.functional.leaky_relu(t, a, inplace=True), "leakyReLu", "LeakyReluBackward1"),
    "module": (lambda t, a: torch.nn.LeakyReLU(a, inplace=True)(t), "leakyReLu", "LeakyReluBackward1"),
    "elu_": (lambda t, a: torch.nn.functional.elu_(t, a), "elu", "EluBackward1"),
    "elu": (lambda t, a: torch.nn.functional.elu(t, a, inplace=True), "elu", "EluBackward1"),
    "celu_": (lambda t, a: torch.celu_(t, a), "elu", "CeluBackward1"),
    "celu": (lambda t, a: torch.nn.functional.celu(t, a, inplace=True), "elu", "CeluBackward1"),
    "rrelu_": (lambda t, a: torch.rrelu_(t, a, a), "leakyReLu", ""),
}


@pytest.mark.parametrize("name", FROM_RESULT)
def test_the_result_of_a_negative_slope_has_no_derivative(name: str) -> None:
    call, title, node = FROM_RESULT[name]
    w = torch.tensor([-1.0, 2.0], requires_grad=True)
    out = call(w.clone(), -0.5)
    with pytest.raises(RuntimeError) as refused:
        out.sum().backward()
    assert str(refused.value).startswith(_LOST_SIGN.format(title))
    out = call(w.clone(), 0.5)
    if node:
        assert type(out.grad_fn).__name__ == node
    out.sum().backward()
    other = w.detach().clone().requires_grad_()
    functional = {"module": "leaky_relu"}.get(name, name).removesuffix("_")
    arguments = (0.5, 0.5) if functional == "rrelu" else (0.5,)
    getattr(torch.nn.functional, functional)(other, *arguments).sum().backward()
    assert torch.allclose(w.grad, other.grad)


def test_an_activation_in_place_keeps_its_result() -> None:
    w = torch.tensor([-1.0, 2.0], requires_grad=True)
    out = torch.nn.functional.elu_(w.clone())
    out.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
