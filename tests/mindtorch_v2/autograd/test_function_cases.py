"""Custom functions and gradcheck, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome (a value, or the type and text of an error, and the
warnings) is the same for both.
"""

from __future__ import annotations

import types
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ._cases import Cases
from ._engine_leaves import function, leaf

case = Cases()

# Functions ------------------------------------------------------------------------------------------------------------


@case
def gradients_a_function_may_return(lib: Any) -> Any:
    def run(backward: Any, *more: Any) -> Any:
        x = leaf(lib)
        fn = function(lib, lambda ctx, x, *rest: x * 1, backward)
        fn.apply(x, *more).sum().backward()
        return x.grad

    return tried(
        [
            lambda: run(lambda ctx, g: 3),
            lambda: run(lambda ctx, g: (g, g)),
            lambda: run(lambda ctx, g: (g, None)),
            lambda: run(lambda ctx, g: g, leaf(lib)),
            lambda: run(lambda ctx, g: (g, g), 2),
            lambda: run(lambda ctx, g: (g, None), 2),
            lambda: run(lambda ctx, g: lib.ones(3, dtype=lib.float64)),
            lambda: run(lambda ctx, g: lib.ones(3, 2, dtype=lib.float64)),
            lambda: run(lambda ctx, g: g.float()),
            lambda: run(lambda ctx, g: g * (1 + 2j)),
            lambda: run(lambda ctx, g: None),
        ]
    )


@case
def what_a_function_tells_its_context(lib: Any) -> Any:
    def dirty_view(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x * 2

    def saved_result(ctx: Any, x: Any) -> Any:
        result = x.exp()
        ctx.save_for_backward(result, None)
        return result

    def double(fn: Any) -> Any:
        x = leaf(lib)
        (g,) = lib.autograd.grad(fn.apply(x).sum(), x, create_graph=True)
        return lib.autograd.grad(g.sum(), x)

    def freed() -> Any:
        y = function(lib, saved_result, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(lib))
        y.sum().backward()
        return y.grad_fn.saved_tensors

    def needs() -> Any:
        seen: list[Any] = []
        fn = function(lib, lambda ctx, *args: (seen.append(ctx.needs_input_grad), args[0] * 1)[1])
        fn.apply(leaf(lib), 3, lib.ones(2))
        with lib.no_grad():
            fn.apply(leaf(lib))
        return seen

    def materialized() -> Any:
        seen: list[Any] = []
        fn = function(lib, lambda ctx, x: (x * 1, (x * 1).long(), 3, x * 2), lambda ctx, *g: (seen.extend(g), g[0])[1])
        fn.apply(leaf(lib))[0].sum().backward()
        return seen

    return tried(
        [
            lambda: function(lib, lambda ctx, x: (ctx.save_for_backward(3), x * 1)[1]).apply(leaf(lib)),
            lambda: function(lib, lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1]).apply(leaf(lib) * 1),
            lambda: function(lib, dirty_view).apply((leaf(lib) * 1)[:1]),
            lambda: function(lib, lambda ctx, x: (x * 1, 3, "a", None)).apply(leaf(lib))[1:],
            lambda: function(lib, lambda ctx, x: 5).apply(leaf(lib)),
            lambda: function(lib, lambda ctx, x: (x * 1).long()).apply(leaf(lib)).requires_grad,
            lambda: function(lib, lambda ctx, x, k=2: x * k).apply(leaf(lib), k=5),
            lambda: function(lib, lambda ctx, x, *, k=2: x * k).apply(leaf(lib), k=5),
            lambda: vars(types)["new_class"]("Empty", (lib.autograd.Function,)).apply(leaf(lib)),
            lambda: double(function(lib, saved_result, lambda ctx, g: g * ctx.saved_tensors[0])),
            freed,
            needs,
            materialized,
        ]
    )


@case
def results_that_are_inputs_or_views(lib: Any) -> Any:
    def facts(y: Any, x: Any) -> Any:
        return y is x, y._is_view(), y._base is x, type(y.grad_fn).__name__, y._version, y.requires_grad, y.is_leaf

    same = function(lib, lambda ctx, x: x)
    part = function(lib, lambda ctx, x: x[:1])
    x, c = leaf(lib) * 1, lib.ones(2)
    with lib.no_grad():
        quiet = facts(same.apply(x), x)
    return (
        facts(same.apply(x), x),
        facts(part.apply(x), x),
        facts(same.apply(c), c),
        quiet,
        tried([lambda: part.apply(x).add_(1), lambda: same.apply(x).add_(1)]),
    )


@case
def setup_context(lib: Any) -> Any:
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(x: Any, k: int = 3) -> Any:
            return x * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.k, None

    class Kept(Scale):
        @staticmethod
        def forward(x: Any, k: int = 3) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])

    def gradient(*args: Any, **kwargs: Any) -> Any:
        x = leaf(lib)
        Scale.apply(x, *args, **kwargs).sum().backward()
        return x.grad

    return tried(
        [gradient, lambda: gradient(4), lambda: gradient(k=5), lambda: gradient(z=5), lambda: Kept.apply(leaf(lib))]
    )


@case
def vjp_and_once_differentiable(lib: Any) -> Any:
    class Vjp(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g * 2

    class Both(Vjp):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    def gradient(fn: Any) -> Any:
        x = leaf(lib)
        fn.apply(x).sum().backward()
        return x.grad

    def twice() -> Any:
        x = leaf(lib)
        once = lib.autograd.function.once_differentiable
        fn = function(lib, lambda ctx, x: x * x, once(lambda ctx, g: g * 2))
        (g,) = lib.autograd.grad(fn.apply(x).sum(), x, create_graph=True)
        g.sum().backward()

    return tried([lambda: gradient(Vjp), lambda: gradient(Both), twice])


@case
def a_context_is_the_node(lib: Any) -> Any:
    fn = function(lib, lambda ctx, x, k, z: x * 1, lambda ctx, g: (g, None, None))
    node = fn.apply(leaf(lib), 3, lib.ones(1)).grad_fn
    # Names that a user may well choose for what belongs to the forward pass.
    for i, name in enumerate(("kind", "saved", "shape", "payload", "need", "hooks", "seq", "freed", "formulas")):
        setattr(node, name, i)
    return (
        type(node).__name__,
        node.name(),
        len(node.next_functions),
        node.needs_input_grad,
        node.kind,
        node.saved,
        isinstance(node, lib.autograd.function.FunctionCtx),
        repr(node),
    )


# Gradcheck ------------------------------------------------------------------------------------------------------------


@case
def gradcheck(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 3 - 1j], dtype=lib.complex128, requires_grad=True)
    wrong = function(
        lib, lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: g * ctx.saved_tensors[0] * 3
    )
    check, check2 = lib.autograd.gradcheck, lib.autograd.gradgradcheck
    spread = lib.ones(1, dtype=lib.float64).expand(2).requires_grad_()
    return tried(
        [
            lambda: check(lambda a, b: (a * b, a.sum()), (leaf(lib), leaf(lib))),
            lambda: check(lambda a: a * a.conj(), (z,)),
            lambda: check(lambda a: a * a, z),
            lambda: check2(lambda a: a * a * a, (z,)),
            lambda: check2(lambda a, b: (a * b).tanh(), (leaf(lib), leaf(lib))),
            lambda: check(lambda a: lib.view_as_real(a), (z,)),
            lambda: check(lambda a: a, (lib.ones(2),)),
            lambda: check(lambda a: a.detach() * 2, (leaf(lib),)),
            lambda: check(wrong.apply, (leaf(lib),)),
            lambda: check(wrong.apply, (leaf(lib),), raise_exception=False),
            lambda: check(lambda a: a * 1, (spread,)),
            lambda: check(lambda a: a * a, (lib.ones(2, requires_grad=True),), raise_exception=False),
        ]
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
