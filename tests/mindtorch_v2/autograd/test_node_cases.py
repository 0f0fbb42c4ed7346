"""What nodes say when they are called, and attributes that cannot be deleted.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ._cases import Cases

case = Cases()
pytestmark = pytest.mark.filterwarnings("ignore:'saved_variables' is deprecated")


@case
def how_many_gradients_a_node_takes(lib: Any) -> Any:
    x = (lib.arange(9.0).reshape(3, 3) + 9 * lib.eye(3)).requires_grad_()
    g = lib.ones(3, 3)
    made = [
        x * 2,
        x.max(0)[0],
        x.unbind()[0],
        x.split(2)[0],
        x.sort()[0],
        x.topk(2)[0],
        x.kthvalue(1)[0],
        lib.std_mean(x)[0],
        lib.aminmax(x)[0],
        lib.frexp(x)[0],
        lib.linalg.slogdet(x)[1],
        lib.nn.functional.layer_norm(x, (3,)),
        lib.nn.functional.batch_norm(x, None, None, training=True),
        lib.nn.functional.nll_loss(x, lib.tensor([0, 1, 2])),
        x.T,
    ]
    calls = [lambda v=v, n=n: v.grad_fn(*[g] * n) and None for v in made for n in (0, 9)]
    return tried([*calls, lambda: made[0].grad_fn("a"), lambda: made[0].grad_fn(g), lambda: made[4].grad_fn(g)])


@case
def attributes_that_cannot_be_deleted(lib: Any) -> Any:
    t = lib.ones(2, requires_grad=True)
    t.grad = lib.ones(2)
    names = ("data", "_backward_hooks", "_post_accumulate_grad_hooks", "T", "is_cuda", "retains_grad", "nothing")
    return [tried([lambda n=n: delattr(t, n) for n in names]), tried([lambda: delattr(t, "grad"), lambda: t.grad])]


@case
def distinct_values_have_a_node_without_derivative(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0, 2.0], requires_grad=True)
    found = [
        lib.unique(x, return_inverse=True, return_counts=True),
        lib.unique(x, return_counts=True, dim=0),
        lib.unique_consecutive(x, return_inverse=True),
        (x.unique(),),
        (x.detach().unique(),),
    ]
    with lib.no_grad():
        found.append((x.unique(),))
    facts = [[(r.requires_grad, type(r.grad_fn).__name__) for r in rs] for rs in found]
    return facts, tried([lambda r=rs[0]: r.sum().backward() for rs in found[:4]])


@case
def a_backward_that_is_differentiated_once(lib: Any) -> Any:
    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, k: float, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a + k * b

        @staticmethod
        @lib.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, None, g * a

    a, b = (lib.ones(2, requires_grad=True) for _ in range(2))
    w = lib.ones(2, requires_grad=True)
    (Scaled.apply(a, 2.0, b) * w).sum().backward(create_graph=True)
    node = a.grad.grad_fn
    chain = [type(n).__name__ for n, _ in node.next_functions]
    inner = next(n for n, _ in node.next_functions if n is not None) if "Error" in chain else node
    edges = [None if n is None else type(n).__name__ for n, _ in inner.next_functions]
    return type(node).__name__, chain, edges, tried([lambda: a.grad.sum().backward()])


@case
def passes_deep_inside_each_other(lib: Any) -> Any:
    class Deep(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, end: Any) -> Any:
            ctx.end = end
            with lib.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.x < 0:
                return ctx.end(g), None
            with lib.enable_grad():
                Deep.apply(ctx.x, ctx.end).backward()
            return g, None

    def fail(g: Any) -> Any:
        raise ValueError("the end")

    x = lib.tensor(300.0, requires_grad=True)
    return tried([lambda: Deep.apply(x, lambda g: g * 2).backward(), lambda: Deep.apply(x, fail).backward()]), x.grad


@case
def tensors_of_inference_mode_used_outside(lib: Any) -> Any:
    with lib.inference_mode():
        leaf, plain = lib.ones(2, 3, requires_grad=True), lib.ones(2, 3)
    other = lib.ones(2, 3, requires_grad=True)
    views = [leaf.view(-1), leaf[0], leaf.T, leaf.expand(2, 2, 3), leaf.unbind()[0], leaf.reshape(6), leaf * 1]
    facts = [(v.requires_grad, v.is_inference(), v.is_leaf, v.grad_fn is None) for v in views]
    return facts, tried(
        [
            lambda: lib.add(other, other, out=leaf),
            lambda: lib.add(other, other, out=plain),
            lambda: lib.add(plain, plain, out=plain),
            lambda: lib.add(plain, plain, out=leaf),
            lambda: leaf.add_(1),
            lambda: plain.add_(1),
            lambda: plain.add_(other),
            lambda: leaf.view(-1).add_(1),
        ]
    )


@case
def old_and_private_names(lib: Any) -> Any:
    x = lib.ones(2, requires_grad=True)
    seen: list[Any] = []

    class Kept(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.extend(t.tolist() for t in ctx.saved_variables)
            return g

    Kept.apply(x).sum().backward()
    hidden = [name in dir(x) for name in ("volatile", "__cuda_array_interface__", "shape", "imag")]
    will = lib._C._will_engine_execute_node
    return seen, hidden, tried([lambda: will(3), lambda: will(x), lambda: will((x * 1).grad_fn)])


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)


def test_own_words() -> None:
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        (torch.ones(1, requires_grad=True) * 2).grad_fn(torch.ones(1), torch.ones(1))
    with pytest.raises(RuntimeError, match="Deleting tensor data"):
        del torch.ones(1).data
