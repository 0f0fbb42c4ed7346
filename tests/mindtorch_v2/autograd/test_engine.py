"""The engine and its hooks, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome (a value, or the type and text of an error, and the
warnings) is the same for both. What PyTorch has no name for is tested
below on its own.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch
from ._cases import Cases
from ._engine_leaves import function, leaf

case = Cases()

# What backward and grad accept ----------------------------------------------------------------------------------------


@case
def backward_arguments(lib: Any) -> Any:
    x, c, ag = leaf(lib), lib.ones(2), lib.autograd
    one = lib.ones((), dtype=lib.float64)
    return tried(
        [
            lambda: ag.backward(c.sum()),
            lambda: ag.backward([x.sum(), c.sum()]),
            lambda: ag.backward([x.sum(), x.sum()], [None]),
            lambda: ag.backward([x.sum()], [None, None]),
            lambda: ag.backward(3),
            lambda: ag.backward([3]),
            lambda: (x * 1).backward(),
            lambda: (x * 1).backward(lib.ones(3)),
            lambda: (x * 1).backward(lib.ones(2, dtype=lib.complex128)),
            lambda: (x * 1).sum().to(lib.complex64).backward(),
            lambda: (x * 1).backward(lib.ones(2)),
            lambda: (x * 1).sum().backward(inputs=[]),
            lambda: (x * 1).sum().backward(inputs=[c]),
            lambda: (x * 1).sum().backward(inputs=[3]),
            lambda: ag.backward(lib.arange(3).sum()),
            lambda: ag.backward(x.sum(), grad_variables=one),
            lambda: ag.backward(x.sum(), grad_tensors=one, grad_variables=one),
        ]
    )


@case
def grad_arguments(lib: Any) -> Any:
    x, c, ag = leaf(lib), lib.ones(2), lib.autograd
    return tried(
        [
            lambda: ag.grad(x.sum(), c),
            lambda: ag.grad(x.sum(), leaf(lib)),
            lambda: ag.grad(c.sum(), x),
            lambda: ag.grad(x.sum(), 3),
            lambda: ag.grad(x.sum(), [3]),
            lambda: ag.grad(x.sum(), []),
            lambda: ag.grad(x.sum(), x, materialize_grads=True, allow_unused=False),
            lambda: ag.grad(x.sum(), x, only_inputs=False),
            lambda: ag.grad(x.sum(), {"a": x}),
            lambda: ag.grad((x * x).sum(), x, grad_outputs=lib.ones(3)),
            lambda: ag.grad([x.sum(), c.sum()], x),
            lambda: ag.grad([x.sum()], [x], [None, None]),
            lambda: ag.grad([x * 1], [x], [None]),
            lambda: ag.grad(x, x, lib.ones(2, dtype=lib.float64)),
            lambda: ag.grad(x.sum(), [x, x]),
            lambda: ag.grad([x.sum(), x.sum()], [x]),
            lambda: ag.grad((x * 2).sum(), [leaf(lib)], allow_unused=True),
            lambda: ag.grad((x * 2).sum(), [leaf(lib, 3), x], materialize_grads=True),
        ]
    )


@case
def grad_of_computed_tensors(lib: Any) -> Any:
    x = leaf(lib)
    a = x * 2
    b = a * 3
    first = lib.autograd.grad(b.sum(), [a, b, x], retain_graph=True)
    b.sum().backward(inputs=[a, x])
    return first, a.grad, x.grad, a.retains_grad


@case
def gradient_edges(lib: Any) -> Any:
    graph = lib.autograd.graph
    x = leaf(lib)
    y = x * 2
    found = lib.autograd.grad((y * y).sum(), [graph.get_gradient_edge(y), graph.get_gradient_edge(x)])
    edge = graph.get_gradient_edge((x * x).sum())
    return found, lib.autograd.grad(edge, x), edge.output_nr, tried([lambda: graph.get_gradient_edge(lib.ones(1))])


@case
def assigning_grad(lib: Any) -> Any:
    def assign(g: Any) -> Any:
        x = leaf(lib)
        x.grad = g
        return x.grad

    return tried(
        [
            lambda: assign(lib.ones(3, dtype=lib.float64)),
            lambda: assign(3),
            lambda: assign(lib.ones(2, dtype=lib.float64)),
            lambda: assign(None),
        ]
    )


# Accumulation ---------------------------------------------------------------------------------------------------------


@case
def accumulation_keeps_or_replaces_grad(lib: Any) -> Any:
    x = leaf(lib)
    x.sum().backward()
    first = x.grad
    x.sum().backward()
    seen = [x.grad is first]
    (x * x).sum().backward(create_graph=True)
    return seen, x.grad is first, x.grad.requires_grad


@case
def a_gradient_somebody_holds_is_copied(lib: Any) -> Any:
    kept: list[Any] = []
    x = leaf(lib)
    y = x * 2
    y.register_hook(kept.append)
    y.backward(lib.ones(2, dtype=lib.float64))
    z = leaf(lib)
    z.register_hook(kept.append)
    (z * 2).sum().backward()
    for g in kept:
        g.zero_()
    a, b = leaf(lib), leaf(lib)
    (a + b).sum().backward()
    a.grad.add_(5)
    saved = lib.full((2,), 7.0, dtype=lib.float64)
    c = leaf(lib)
    function(lib, lambda ctx, t: t * 1, lambda ctx, g: saved).apply(c).sum().backward()
    c.grad.zero_()
    return x.grad, z.grad, b.grad, saved


@case
def layout_of_grad_follows_the_leaf(lib: Any) -> Any:
    dense = lib.ones(2, 3, dtype=lib.float64).t().requires_grad_()
    (dense * 2).sum().backward()
    gaps = lib.ones(2, 4, dtype=lib.float64)[:, ::2].detach().requires_grad_()
    (gaps * 2).sum().backward()
    recorded = lib.ones(2, 3, dtype=lib.float64).t().requires_grad_()
    (recorded * recorded).sum().backward(create_graph=True)
    row = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
    row.t().contiguous().sum().backward()
    return [t.grad.stride() for t in (dense, gaps, recorded, row)]


@case
def graph_is_freed_node_by_node(lib: Any) -> Any:
    def twice(make: Callable[[Any], Any]) -> Any:
        x = leaf(lib)
        y = make(x)
        y.sum().backward()
        y.sum().backward()
        return x.grad

    def partly() -> Any:
        x, w = leaf(lib), leaf(lib)
        h = x * x
        (h * w).sum().backward(inputs=[w])
        h.sum().backward()
        return x.grad

    def sliced(x: Any) -> Any:
        y = x + 0
        y[0].add_(1)
        return y

    x = leaf(lib)
    freed = x * x
    freed.sum().backward()
    return tried(
        [
            lambda: twice(lambda x: x * x),
            lambda: twice(lambda x: x * 2),
            lambda: twice(lambda x: x + 2),
            lambda: twice(lambda x: x.view(1, 2)),
            lambda: twice(sliced),
            lambda: twice(lambda x: x.exp()),
            partly,
            lambda: freed.grad_fn._saved_self,
        ]
    )


# Hooks ----------------------------------------------------------------------------------------------------------------


@case
def order_of_hooks(lib: Any) -> Any:
    log: list[str] = []
    x = leaf(lib)
    y = x * 2
    z = y * 3
    x.register_hook(lambda g: log.append("x"))
    y.register_hook(lambda g: log.append("y1"))
    y.register_hook(lambda g: log.append("y2"))
    z.register_hook(lambda g: log.append("z"))
    y.retain_grad()
    y.grad_fn.register_prehook(lambda g: log.append("before y"))
    y.grad_fn.register_hook(lambda a, b: log.append("after y"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    z.grad_fn.register_hook(lambda a, b: log.append("after z"))
    z.sum().backward()
    return log, y.grad


@case
def what_hooks_may_return(lib: Any) -> Any:
    def run(result: Any, kind: str) -> Any:
        x = leaf(lib)
        y = x * x
        if kind == "tensor":
            y.register_hook(lambda g: result)
        elif kind == "node":
            y.grad_fn.register_hook(lambda a, b: result)
        else:
            y.grad_fn.register_prehook(lambda a: result)
        return lib.autograd.grad(y.sum(), x)

    fit = lib.full((2,), 3.0, dtype=lib.float64)
    given = [
        3,
        lib.ones(3),
        lib.ones(2),
        fit,
        lib.ones(3, dtype=lib.float64),
        lib.ones(2, device="meta"),
        (fit,),
        (fit, fit),
        None,
        [fit],
    ]
    return [outcome(lambda r=r, k=k: run(r, k)) for k in ("tensor", "node", "pre") for r in given]


@case
def hooks_refused(lib: Any) -> Any:
    x, c = leaf(lib), lib.ones(2)
    return tried(
        [
            lambda: c.register_hook(lambda g: g),
            lambda: (x * 1).register_post_accumulate_grad_hook(lambda t: None),
            lambda: c.register_post_accumulate_grad_hook(lambda t: None),
            lambda: c.retain_grad(),
            lambda: x.retain_grad(),
            lambda: x.retains_grad,
            lambda: lib.autograd.Variable._execution_engine.queue_callback(lambda: None),
        ]
    )


@case
def hooks_and_wanted_inputs(lib: Any) -> Any:
    def wanted(also_x: bool, prepare: Callable[[Any], Any]) -> Any:
        x = leaf(lib)
        h = x * 2
        prepare(h)
        return lib.autograd.grad((h * h).sum(), [h, x] if also_x else [h]), x.grad

    def on_leaf() -> Any:
        x = leaf(lib)
        x.register_hook(lambda g: g * 10)
        return lib.autograd.grad((x * 2).sum(), x)

    def inputs() -> Any:
        x, y = leaf(lib), leaf(lib)
        h = x * y
        h.register_hook(lambda g: g * 10)
        (h * h).sum().backward(inputs=[x, h])
        return x.grad, y.grad, h.grad

    return (
        wanted(True, lambda h: h.register_hook(lambda g: g * 10)),
        wanted(False, lambda h: h.register_hook(lambda g: g * 10)),
        wanted(True, lambda h: h.retain_grad()),
        on_leaf(),
        inputs(),
    )


@case
def hooks_around_inplace_writes(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x * 1
    y.register_hook(lambda g: log.append(("before", g.tolist())))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: log.append(("after", g.tolist())))
    y.sum().backward()
    base = leaf(lib, 3) * 1
    view = base[:2]
    view.retain_grad()
    base.retain_grad()
    view.mul_(3)
    base.sum().backward()
    return log, y.grad, view.grad, base.grad


@case
def handles(lib: Any) -> Any:
    x = leaf(lib)
    handle = x.register_hook(lambda g: g * 10)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: g * 5):
        x.sum().backward()
    x.sum().backward()
    y = leaf(lib)
    own: list[Any] = []
    own.append(y.register_hook(lambda g: own[0].remove()))
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    y.sum().backward()
    return x.grad, y.grad


@case
def undefined_gradients_reach_hooks(lib: Any) -> Any:
    nothing = function(lib, lambda ctx, x: x * 1, lambda ctx, g: None)
    log: list[Any] = []
    x = leaf(lib)
    h = x * 2
    x.register_hook(lambda g: log.append(("x", g)))
    h.register_hook(lambda g: log.append(("h", g)))
    x.register_post_accumulate_grad_hook(lambda t: log.append(("accumulated", t.grad)))
    nothing.apply(h).sum().backward()
    return log, x.grad


@case
def callbacks(lib: Any) -> Any:
    log: list[str] = []
    engine = lib.autograd.Variable._execution_engine

    def hook(g: Any) -> None:
        engine.queue_callback(lambda: (log.append("first"), engine.queue_callback(lambda: log.append("second"))))

    y = leaf(lib) * 2
    y.register_hook(hook)
    y.register_hook(lambda g: log.append("hook"))
    y.sum().backward()
    return log


# The graph ------------------------------------------------------------------------------------------------------------


@case
def nodes_as_users_see_them(lib: Any) -> Any:
    x = leaf(lib)
    return tried(
        [
            lambda: x.grad_fn,
            lambda: repr((x * x).grad_fn),
            lambda: (x * x).grad_fn.next_functions,
            lambda: (x * x).grad_fn._saved_self is x,
            lambda: x.exp().grad_fn._saved_result,
            lambda: (x * 2).grad_fn._saved_self,
            lambda: (x * x).grad_fn._saved_other is x,
            lambda: (x * x).grad_fn._saved_nothing,
            lambda: (x**3).grad_fn._saved_exponent,
            lambda: (x * 1).grad_fn.metadata,
            lambda: (x * x).grad_fn(lib.ones(2)),
            lambda: (x + 1).grad_fn(lib.ones(2)),
            lambda: (x * x).grad_fn.next_functions[0][0].variable is x,
            lambda: (x * x).grad_fn.next_functions[0][0].name(),
            lambda: (lib.autograd.Variable(x) is x, isinstance(x, lib.autograd.Variable)),
            lambda: lib.autograd.Variable(lib.ones(1), requires_grad=True),
        ]
    )


def modified_after(lib: Any, make: Callable[[Any], Any], dtype: str = "float64") -> Any:
    x = lib.ones(2, 2, dtype=getattr(lib, dtype), requires_grad=True)
    value = make(x)
    result = value * value
    with lib.no_grad():
        value.zero_()
    result.sum().backward()


@case
def report_of_a_modified_value(lib: Any) -> Any:
    def sliced(x: Any) -> Any:
        y = x * 1
        y[0].mul_(2)
        return y

    def stale(x: Any) -> Any:
        y = x * 1
        v = y[0]
        y.mul_(2)
        return v

    def constant(dtype: str, device: str = "cpu") -> Any:
        x = lib.ones(2, requires_grad=True, device=device)
        c = lib.ones(2, dtype=getattr(lib, dtype), device=device)
        y = x * c
        c.zero_()
        y.sum().backward()

    def written(x: Any) -> Any:
        y = (x * 1).view(-1)
        y.exp_()
        with lib.no_grad():
            y.zero_()
        y.sum().backward()

    square = function(lib, lambda ctx, x: x * x)
    made: list[Callable[[Any], Any]] = [
        lambda x: x * 1,
        lambda x: x.exp(),
        sliced,
        stale,
        lambda x: (x * 1)[0],
        lambda x: x @ x,
        lambda x: x.sum(0),
        square.apply,
        lambda x: (x * 1).max(0)[0],
        lambda x: (x * 1).copy_(x),
        lambda x: (x * 1).split(1)[1],
        lambda x: x.softmax(0),
        lambda x: (x * 1).fill_(2),
    ]
    return (
        [outcome(lambda m=m: modified_after(lib, m)) for m in made]
        + [outcome(lambda d=d: constant(d)) for d in ("float32", "float64", "bfloat16", "int64", "bool", "uint8")]
        + tried([lambda: constant("float32", "meta"), lambda: written(leaf(lib))])
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)


# Without the oracle ---------------------------------------------------------------------------------------------------


def test_a_long_chain_with_branches_is_freed_without_recursion() -> None:
    x = leaf(torch, 1)
    y = x
    for i in range(20_000):
        y = y * 1.0 if i % 3 else y + y * 0.0
    total = y.sum()
    total.backward()
    assert x.grad.tolist() == [1.0]
    z = x
    for _ in range(20_000):
        z = z.view(-1)
    del z
    w = x * 1
    for _ in range(5_000):
        w.mul_(1.0)
    w.sum().backward()
    del w, y, total
    gc.collect()


def test_grad_of_a_long_chain_towards_one_input() -> None:
    x, other = leaf(torch, 1), leaf(torch, 1)
    y = x
    middle = None
    for i in range(5_000):
        y = y * 1.0 + other * 0.0
        if i == 2_500:
            middle = y
    (g,) = torch.autograd.grad(y.sum(), middle)
    assert g.tolist() == [1.0]
    assert x.grad is None and other.grad is None


def test_saved_values_are_freed_by_the_pass() -> None:
    x = leaf(torch, 1000)
    held = torch.ones(1000, dtype=torch.float64)
    alive = weakref.ref(held)
    y = (x * held).sum()
    del held
    assert alive() is not None
    y.backward()
    gc.collect()
    assert alive() is None


def test_threads_may_run_through_the_same_graph() -> None:
    x = leaf(torch, 4)
    h = (x * 2).exp()
    errors: list[BaseException] = []
    expected = torch.autograd.grad(h.sum(), x, retain_graph=True)[0].tolist()

    def work() -> None:
        try:
            for _ in range(20):
                (g,) = torch.autograd.grad((h * 1).sum(), x, retain_graph=True)
                assert g.tolist() == expected
        except BaseException as error:  # handed to the main thread
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_an_error_in_a_hook_leaves_the_modes_as_they_were() -> None:
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert torch.is_grad_enabled()
    with torch.no_grad():
        with pytest.raises(ZeroDivisionError):
            y.sum().backward() if y.sum().requires_grad else 1 / 0
        assert not torch.is_grad_enabled()
    assert (x * 1).requires_grad


def test_reentrant_passes_nest() -> None:
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.depth == 0:
                return g * 2, None
            with torch.enable_grad():
                y = leaf(torch)
                Nested.apply(y, ctx.depth - 1).sum().backward()
            return g * y.grad, None

    x = leaf(torch)
    Nested.apply(x, 20).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@mindtorch_only
def test_the_reference_count_rule_takes_fresh_gradients() -> None:
    """A gradient that nobody else holds becomes `.grad` without a copy."""
    x = leaf(torch)
    pointers: list[int] = []
    node = (x * 2).grad_fn
    node.register_hook(lambda ins, outs: pointers.append(ins[0].data_ptr()))
    torch.autograd.backward(torch.autograd.graph.GradientEdge(node, 0), torch.ones(2, dtype=torch.float64))
    assert x.grad.data_ptr() == pointers[0]


@mindtorch_only
def test_a_gradient_that_is_a_view_nobody_else_sees_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2._core_operators import HOOKS

    copied: list[Any] = []
    copy = HOOKS.grad_copy

    def counting(g: Any, leaf: Any) -> Any:
        copied.append(g)
        return copy(g, leaf)

    monkeypatch.setattr(HOOKS, "grad_copy", counting)
    x, w = torch.randn(3, 8), torch.randn(4, 8, requires_grad=True)
    (x @ w.t()).sum().backward()
    assert not copied
    assert not w.grad._is_view() and w.grad._base is None and w.grad._version == 0
    assert w.grad.stride() == (8, 1) and torch.equal(w.grad, torch.ones(4, 3) @ x)
    layer = torch.nn.Linear(8, 4)
    layer(x).sum().backward()
    assert not copied and torch.equal(layer.weight.grad, w.grad)


def test_the_base_of_a_gradient_that_somebody_holds_is_not_shared() -> None:
    x, w = torch.randn(3, 8), torch.randn(4, 8, requires_grad=True)
    held: list[Any] = []
    transposed = w.t()
    transposed.register_hook(lambda g: held.append(g))
    (x @ transposed).sum().backward()
    expected = w.grad.clone()
    if not IS_ORACLE:  # PyTorch takes it, and the hook's tensor shares its memory
        held[0].zero_()
    assert torch.equal(w.grad, expected)


@mindtorch_only
def test_handlers_are_off_while_formulas_run() -> None:
    log: list[str] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    t = torch.ones(2).as_subclass(Logged).requires_grad_()
    y = (t * t).sum()
    log.clear()
    y.backward()
    assert log == ["backward"]
    assert type(t.grad) is torch.Tensor


def test_importing_autograd_does_not_need_numpy_or_change_recursion_limits() -> None:
    assert submodule("autograd").Function is torch.autograd.Function
    assert sys.getrecursionlimit() <= 100_000


def test_a_graph_that_ends_in_grad_is_warned_of() -> None:
    x = torch.ones(2, requires_grad=True)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=r"Using backward\(\) with create_graph=True"):
            (x * x).sum().backward(create_graph=True)
        x.grad = None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.autograd.grad((x * x).sum(), x, create_graph=True)
    finally:
        torch.set_warn_always(False)
