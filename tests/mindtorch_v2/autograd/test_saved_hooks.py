"""Hooks of saved values, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome (a value, or the type and text of an error, and the
warnings) is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ._cases import Cases
from ._hook_leaves import leaf

case = Cases()

# Saved values ---------------------------------------------------------------------------------------------------------


@case
def packing_of_operators(lib: Any) -> Any:
    log: list[Any] = []

    def pack(t: Any) -> Any:
        log.append(("pack", t, t.is_leaf, t.grad_fn and t.grad_fn.name(), lib.is_grad_enabled()))
        return t.detach()

    def unpack(t: Any) -> Any:
        log.append(("unpack", t, lib.is_grad_enabled()))
        return t

    x, w = leaf(lib), leaf(lib, 3, 4)
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * w
        z = (y * 3).exp()
        u = z.clone()
        u.tanh_()
        v = u.clone()
        v[0].mul_(x[1])
        s = lib.cat([v * x, v]).sum()
    t = s * 2
    log.append("backward")
    t.backward()
    return log, x.grad, w.grad


@case
def values_are_unpacked_once(lib: Any) -> Any:
    counts = []
    for fn in (
        lambda x, w: x**w,
        lambda x, w: x / w,
        lib.maximum,
        lib.hypot,
        lambda x, w: x.var() * w,
        lambda x, w: lib.cat([x, w]).prod(),
        lib.atan2,
        lambda x, w: x.softmax(0) * w,
    ):
        log: list[str] = []

        def pack(t: Any, log: list[str] = log) -> Any:
            log.append("pack")
            return t.detach()

        def unpack(t: Any, log: list[str] = log) -> Any:
            log.append("unpack")
            return t

        with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = fn(leaf(lib), leaf(lib, 3, 4)).sum()
        y.backward()
        counts.append((log.count("pack"), log.count("unpack")))
    return counts


@case
def packed_values_keep_their_history(lib: Any) -> Any:
    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * 1
        z = (y * y).exp()
    (g,) = lib.autograd.grad(z.sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x, retain_graph=True)
    kept = (y * y).grad_fn
    return g, h, z.grad_fn._saved_result.grad_fn is z.grad_fn, kept._saved_self.grad_fn is y.grad_fn


@case
def packed_leaves_accumulate_into_the_leaf(lib: Any) -> Any:
    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), lib.tensor):
        y = (x * x).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    return g, x.grad


@case
def inner_hooks_win(lib: Any) -> Any:
    log: list[Any] = []
    hooks = lib.autograd.graph.saved_tensors_hooks
    x = leaf(lib)

    def naming(name: str) -> Any:
        def pack(t: Any) -> Any:
            log.append(name)
            return t.detach()

        return hooks(pack, lambda t: t)

    with naming("outer"):
        x * x
        with naming("inner"):
            x.exp()
        x.exp()
    x * x
    return log


@case
def packing_of_custom_functions(lib: Any) -> Any:
    log: list[Any] = []

    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * x
            ctx.save_for_backward(x, None, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, none, y = ctx.saved_tensors
            log.append((x, none, y.grad_fn is not None))
            return 2 * g * x

    def pack(t: Any) -> Any:
        log.append(("pack", t))
        return t.detach()

    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = Square.apply(x)
    raw = y.grad_fn._raw_saved_tensors
    y.sum().backward()
    return log, x.grad, len(raw), tried([lambda: y.grad_fn._raw_saved_tensors, lambda: y.grad_fn.saved_tensors])


@case
def packing_refuses(lib: Any) -> Any:
    hooks = lib.autograd.graph.saved_tensors_hooks
    x = leaf(lib)

    def used(pack: Any, unpack: Any) -> Any:
        with hooks(pack, unpack):
            y = (x * 1).exp()
        y.sum().backward()

    def disabled() -> Any:
        with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
            (x * x).sum().backward()
            used(lambda t: t, lambda t: t)

    def disabling_inside() -> Any:
        with hooks(lambda t: t, lambda t: t), lib.autograd.graph.disable_saved_tensors_hooks("not now"):
            return 1

    return tried(
        [
            lambda: used(lambda t: t.add_(1), lambda t: t),
            lambda: used(lambda t: t, lambda t: 3),
            lambda: used(lambda t: 1 / 0, lambda t: t),
            disabled,
            disabling_inside,
            lambda: used(lambda t: t.detach(), lambda t: t),
        ]
    )


@case
def writes_to_packed_values_are_not_seen(lib: Any) -> Any:
    x = leaf(lib)
    y = x * 1
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        z = (y * y).sum()
    y.add_(10)
    z.backward()
    return x.grad


@case
def raw_saved_values(lib: Any) -> Any:
    x, w = leaf(lib), leaf(lib)
    log: list[Any] = []
    y = x * w
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: (log.append(("pack", t)), t.clone())[1], lambda t: (log.append("unpack"), t * 10)[1])
    again = tried([lambda: raw.register_hooks(lambda t: t, lambda t: t)])
    saved = y.grad_fn._saved_self
    e = (x * 1).exp()
    e.grad_fn._raw_saved_result.register_hooks(lambda t: (log.append(("pack", t)), t)[1], lambda t: t)
    (y + e).sum().backward()
    late = tried([lambda: e.grad_fn._saved_result, lambda: y.grad_fn._saved_self])
    half = (x * lib.ones(2)).grad_fn
    none = tried([lambda: half._raw_saved_self.register_hooks(lambda t: t, lambda t: t), lambda: half._saved_self])
    return log, again, saved, late, none, x.grad, w.grad


@case
def saved_attributes(lib: Any) -> Any:
    x, y = leaf(lib), lib.ones(2, 2, dtype=lib.float64, requires_grad=True)

    def names(t: Any) -> list[str]:
        return [n for n in dir(t.grad_fn) if n.startswith(("_saved_", "_raw_saved_"))]

    by_number = x * 3
    return (
        names(x * x),
        names(by_number),
        by_number.grad_fn._saved_other,
        by_number.grad_fn._saved_self,
        (x * 2.5).grad_fn._saved_other,
        (x**2).grad_fn._saved_exponent,
        names(y @ y),
        (y @ y).grad_fn._saved_mat2_sym_strides,
        y.sum(1).grad_fn._saved_dim,
        y.view(4).grad_fn._saved_self_sym_sizes,
        x.exp().grad_fn._saved_result,
        tried([lambda: x.exp().grad_fn._saved_self]),
        [(m.shape, m.dtype, m.device) for m in (y @ y).grad_fn._input_metadata],
        (y @ y).grad_fn.requires_grad,
    )


@case
def saving_on_the_cpu(lib: Any) -> Any:
    x = leaf(lib)
    with lib.autograd.graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    return x.grad


@case
def mutation_of_saved_values(lib: Any) -> Any:
    def basic(write: Callable[[Any], Any]) -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as kept:
            x = leaf(lib)
            y = x * 1
            z = (y**2).sum()
            write(y)
            z.backward()
            result = x.grad, y, len(kept.original) + len(kept.cloned) > 0
        return result, len(kept.original), len(kept.cloned)

    def twice() -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            x = leaf(lib)
            y = x * 1
            z = y * y
            y.sin_()
            u = y * y
            y.mul_(3)
            (z + u).sum().backward()
            return x.grad

    def result() -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            x = leaf(lib)
            y = (x * 1).exp()
            y.mul_(2)
            y.sum().backward()
            return x.grad

    def outside() -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            x = leaf(lib)
            y = (x * x).sum()
        y.backward()

    def nested() -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            with lib.autograd.graph.allow_mutation_on_saved_tensors():
                pass

    def second() -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            x = leaf(lib)
            y = x.clone()
            z = (y**3).sum()
            y.zero_()
            (g,) = lib.autograd.grad(z, x, create_graph=True)
            return g, lib.autograd.grad(g.sum(), x)

    return tried(
        [
            lambda: basic(lambda y: y.sin_()),
            lambda: basic(lambda y: y.view(2).zero_()),
            lambda: basic(lambda y: lib.mul(y.detach(), 3, out=y.detach())),
            lambda: basic(lambda y: None),
            twice,
            result,
            outside,
            nested,
            second,
        ]
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
