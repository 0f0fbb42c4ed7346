"""Hooks of tensors, nodes and saved values, anomaly detection: told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

import gc
import importlib
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import mindtorch_only
from .._subject import subject as torch

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(values or (1.0, 2.0), dtype=lib.float64, requires_grad=True)


def times(g: Any, factor: float) -> Any:
    return None if g is None else g * factor


def logger(log: list[Any], label: str, factor: Any = None) -> Callable[..., Any]:
    """A hook that writes down what it got, and returns its gradients times `factor`."""

    def hook(*args: Any) -> Any:
        log.append((label, *args))
        if factor is None:
            return None
        return tuple(times(g, factor) for g in args[0]) if isinstance(args[0], tuple) else times(args[0], factor)

    return hook


# Order ----------------------------------------------------------------------------------------------------------------


@case
def order_at_a_leaf(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    acc.register_hook(logger(log, "post"))
    x.register_post_accumulate_grad_hook(lambda t: log.append(("accumulated", t.grad.clone())))
    acc.register_prehook(logger(log, "pre", 10))
    x.register_hook(logger(log, "first", 2))
    x.register_hook(logger(log, "second", 3))
    y.sum().backward()
    return log, x.grad


@case
def order_at_a_node(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_hook(logger(log, "post", 7))
    y.grad_fn.register_prehook(logger(log, "pre", 5))
    y.register_hook(logger(log, "tensor", 3))
    y.grad_fn.register_prehook(logger(log, "pre again"))
    y.sum().backward()
    return log, x.grad, y.grad


@case
def hooks_of_two_results(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 1, 2, 3, 4)
    a, b = x.split(2)
    b.register_hook(logger(log, "b", 2))
    a.register_hook(logger(log, "a", 3))
    b.register_hook(logger(log, "b again"))
    a.grad_fn.register_prehook(logger(log, "pre"))
    (a * b).sum().backward(retain_graph=True)
    a.sum().backward()
    return log, x.grad


@case
def retained_gradient_is_the_hooked_one(lib: Any) -> Any:
    x = leaf(lib)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward(retain_graph=True)
    (y * 3).sum().backward()
    return y.grad, x.grad, y.retains_grad, x.retains_grad


@case
def retained_gradient_follows_in_place_writes(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x * 2
    y.register_hook(logger(log, "old"))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(logger(log, "new"))
    y.sum().backward()
    return log, y.grad, x.grad


@case
def post_hooks_see_fitted_gradients(lib: Any) -> Any:
    log: list[Any] = []
    x, w = leaf(lib), lib.ones(3, 2, requires_grad=True)
    y = x * w
    y.grad_fn.register_hook(logger(log, "post"))
    y.sum().backward()
    return log, x.grad, w.grad


@case
def hooks_with_grad(lib: Any) -> Any:
    """`grad` runs a leaf's own hooks, and not those of the node that would accumulate."""
    log: list[Any] = []
    x = leaf(lib)
    y = x * 2
    z = y * 3
    acc = y.grad_fn.next_functions[0][0]
    acc.register_prehook(logger(log, "pre"))
    acc.register_hook(logger(log, "post"))
    x.register_post_accumulate_grad_hook(logger(log, "accumulated"))
    x.register_hook(logger(log, "x", 2))
    y.register_hook(logger(log, "y", 10))
    first = lib.autograd.grad(z.sum(), [x, y], retain_graph=True)
    second = lib.autograd.grad(z.sum(), [y])
    return log, first, second


@case
def hooks_of_roots_that_lead_nowhere(lib: Any) -> Any:
    """A single root's tensor hooks run whatever is asked for; those of several only if they lead to it."""
    log: list[Any] = []
    x, w = leaf(lib), leaf(lib)
    y, z = x * 2, w * 3
    y.register_hook(logger(log, "y"))
    x.register_hook(logger(log, "x"))
    y.sum().backward(inputs=[w], retain_graph=True)
    y.backward(lib.ones(2, dtype=lib.float64), inputs=[w], retain_graph=True)
    log.append("two")
    lib.autograd.backward([y, z], [lib.ones(2, dtype=lib.float64)] * 2, inputs=[w], retain_graph=True)
    log.append("leaf")
    x.backward(lib.ones(2, dtype=lib.float64), inputs=[w])
    lib.autograd.graph.register_multi_grad_hook((y, x), lambda grads: log.append([g is not None for g in grads]))
    y.backward(lib.ones(2, dtype=lib.float64), retain_graph=True)
    lib.autograd.backward([y, z], [lib.ones(2, dtype=lib.float64)] * 2)
    return log, x.grad, w.grad


@case
def only_wanted_gradients_are_computed(lib: Any) -> Any:
    log: list[Any] = []
    x, w = leaf(lib), leaf(lib)
    y = x * w
    y.grad_fn.register_hook(logger(log, "post"))
    s = lib.cat([x, w]) * 2
    s.grad_fn.next_functions[0][0].register_hook(logger(log, "cat"))
    first = lib.autograd.grad(y.sum(), x, retain_graph=True)
    second = lib.autograd.grad((s.sum() + y.sum()), [w], retain_graph=True)
    v = x * 1
    u = v * w
    v.add_(1)
    return log, first, second, tried([lambda: lib.autograd.grad(u.sum(), x), lambda: lib.autograd.grad(u.sum(), w)])


@case
def what_node_hooks_may_return(lib: Any) -> Any:
    def run(register: str, value: Any) -> Any:
        x = leaf(lib)
        y = x * leaf(lib)
        getattr(y.grad_fn, register)(lambda *a: value)
        y.sum().backward()
        return x.grad

    g = lib.ones(2, dtype=lib.float64)
    return tried(
        [
            lambda: run("register_hook", (g, g)),
            lambda: run("register_hook", (None, g)),
            lambda: run("register_hook", (g,)),
            lambda: run("register_hook", g),
            lambda: run("register_prehook", (g * 4,)),
            lambda: run("register_prehook", (g, g)),
            lambda: run("register_prehook", g),
        ]
    )


@case
def handles_of_node_hooks(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x * 2
    first = y.grad_fn.register_hook(logger(log, "post", 2))
    with y.grad_fn.register_prehook(logger(log, "pre", 3)):
        y.sum().backward(retain_graph=True)
    first.remove()
    first.remove()
    y.sum().backward()
    return log, x.grad


@case
def a_hook_registered_by_a_hook(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x * 2
    z = y * 3

    def hook(g: Any) -> None:
        log.append("z")
        y.register_hook(logger(log, "y"))

    z.register_hook(hook)
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    return log, x.grad


@case
def hooks_and_a_second_derivative(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib)
    y = x**3
    y.grad_fn.register_hook(lambda i, o: log.append((i[0].requires_grad, o[0].requires_grad)))
    y.register_hook(lambda g: g * 2)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return log, g, lib.autograd.grad(g.sum(), x)


@case
def hooks_as_attributes(lib: Any) -> Any:
    hooks = importlib.import_module(lib.__name__ + ".utils.hooks")
    x = leaf(lib)
    y = x * 2
    before = x._backward_hooks, x._post_accumulate_grad_hooks, y._backward_hooks

    def plain(g: Any) -> None:
        return None

    @hooks.unserializable_hook  # type: ignore[untyped-decorator]
    def marked(g: Any) -> None:
        return None

    x.register_hook(marked)
    y.register_hook(plain)
    x.register_post_accumulate_grad_hook(plain)
    after = x._backward_hooks, x._post_accumulate_grad_hooks, y._backward_hooks
    hooks.warn_if_has_hooks(x)
    return before, [list(h.values()) == [fn] for h, fn in zip(after, (marked, plain, plain))]


# Several gradients ----------------------------------------------------------------------------------------------------


@case
def multi_grad_hooks_wait_for_all(lib: Any) -> Any:
    log: list[Any] = []
    a, b, other = leaf(lib), leaf(lib), leaf(lib)
    c, d = a * b, a * b
    handle = lib.autograd.graph.register_multi_grad_hook(
        (a, b, c, d, other), lambda grads: log.append([g is not None for g in grads])
    )
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    lib.autograd.grad(c.sum(), c, retain_graph=True)
    handle.remove()
    c.sum().backward()
    return log


@case
def multi_grad_hooks_take_any(lib: Any) -> Any:
    log: list[Any] = []
    a, b = leaf(lib), leaf(lib)
    c = a * b
    plain = lib.ones(2)
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, plain), logger(log, "any"), mode="any")
    c.sum().backward(retain_graph=True)
    (a * 2).sum().backward()
    handle.remove()
    c.sum().backward()
    return log


@case
def multi_grad_hooks_refuse(lib: Any) -> Any:
    register = lib.autograd.graph.register_multi_grad_hook
    x = leaf(lib)
    y = x * 2

    def leaves_and_grad() -> Any:
        log: list[Any] = []
        handle = register((x,), log.append)
        try:
            return lib.autograd.grad(y.sum(), x)
        finally:
            handle.remove()

    return tried(
        [
            lambda: register((x,), print, mode="some"),
            leaves_and_grad,
            lambda: lib._C._current_graph_task_id(),
            lambda: lib._C._will_engine_execute_node(y.grad_fn),
        ]
    )


@case
def edges_stand_for_tensors(lib: Any) -> Any:
    graph = lib.autograd.graph
    x = leaf(lib)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    z = (y * y).sum()
    found = lib.autograd.grad(z, edge, retain_graph=True)
    lib.autograd.backward(edge, lib.ones(2, dtype=lib.float64), retain_graph=True)
    return (
        edge.output_nr,
        edge.node is y.grad_fn,
        graph.get_gradient_edge(x).node.variable is x,
        found,
        x.grad,
        isinstance(y.grad_fn, graph.Node),
        graph.GradientEdge._fields,
        tried([lambda: graph.get_gradient_edge(lib.ones(2))]),
    )


@case
def versions_can_be_moved(lib: Any) -> Any:
    x = leaf(lib)
    y = x * 1
    z = y * y
    lib.autograd.graph.increment_version(y)
    a, b = lib.ones(2), lib.ones(2)
    lib.autograd.graph.increment_version([a, b])
    with lib.inference_mode():
        c = lib.ones(2)
    lib.autograd.graph.increment_version(c)
    return y._version, a._version, b._version, tried([lambda: z.sum().backward()])


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

    class Square(lib.autograd.Function):  # type: ignore[misc, name-defined]
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


# Anomaly detection ----------------------------------------------------------------------------------------------------


def shown(fn: Callable[[], Any]) -> Any:
    """The error and the warnings of `fn`; of tracebacks only the lines of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = fn()
        except Exception as error:  # every error is part of the outcome
            result = f"{type(error).__name__}: {error}"
    texts = []
    for w in caught:
        text = str(w.message).split(" (Triggered internally")[0]
        texts.append(
            [
                line.strip()
                for line in text.split("\n")
                if line.strip()
                and "File" not in line
                and "run_backward(" not in line
                and "grad_one(" not in line
                and "apply(*args" not in line
                and "run_function(" not in line
                and "^^" not in line
            ]
        )
    return result, texts


@case
def anomalies_are_reported(lib: Any) -> Any:
    ag = lib.autograd

    class Fails(ag.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("it failed")

    def with_nan() -> Any:
        with ag.detect_anomaly():
            x = lib.zeros(2, requires_grad=True)
            y = (x * 0) / x
            y.sum().backward()

    def unchecked() -> Any:
        with ag.detect_anomaly(check_nan=False):
            x = lib.zeros(2, requires_grad=True)
            y = (x * 0) / x
            y.sum().backward()
            return lib.isnan(x.grad)

    def failing() -> Any:
        with ag.detect_anomaly():
            x = leaf(lib)
            y = Fails.apply(x)
            y.sum().backward()

    def modified() -> Any:
        with ag.detect_anomaly():
            x = leaf(lib)
            y = (x * 1).exp()
            y.mul_(2)
            y.sum().backward()

    def second() -> Any:
        with ag.detect_anomaly():
            x = leaf(lib)
            y = (x * 2).sqrt()
            (g,) = ag.grad(y.sum(), x, create_graph=True)
            g.register_hook(lambda g: 1 / 0)
            (g * g).sum().backward()

    def at_a_leaf() -> Any:
        with ag.detect_anomaly():
            x = leaf(lib)
            x.register_hook(lambda g: 1 / 0)
            y = x * 2
            y.sum().backward()

    def too_late() -> Any:
        x = leaf(lib)
        y = Fails.apply(x)
        with ag.detect_anomaly():
            y.sum().backward()

    def through_a_view() -> Any:
        with ag.detect_anomaly():
            x = lib.zeros(2, requires_grad=True)
            y = lib.zeros(2) * x
            y[0].div_(x[1])
            y.sum().backward()

    return [shown(fn) for fn in (with_nan, unchecked, failing, modified, second, at_a_leaf, too_late, through_a_view)]


@case
def anomaly_switches(lib: Any) -> Any:
    log: list[Any] = []

    def note() -> None:
        log.append((lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()))

    note()
    with lib.autograd.set_detect_anomaly(True, check_nan=False):
        note()
        with lib.autograd.set_detect_anomaly(False):
            note()
        note()
    note()
    lib.autograd.set_detect_anomaly(True)
    note()
    lib.set_anomaly_enabled(False)
    note()
    return log


@case
def metadata_of_nodes(lib: Any) -> Any:
    x = leaf(lib)
    y = x * 2
    y.grad_fn.metadata["mine"] = 1
    with lib.autograd.set_detect_anomaly(True):
        z = x * 2
    return y.grad_fn.metadata, "z = x * 2" in z.grad_fn.metadata["traceback_"][-1], sorted(z.grad_fn.metadata)


# What `.grad` looks like ----------------------------------------------------------------------------------------------


@case
def layout_of_grad(lib: Any) -> Any:
    makers = [
        lambda: lib.ones(2, 3).t(),
        lambda: lib.ones(4, 6)[::2, ::3],
        lambda: lib.ones(1, 3).expand(2, 3),
        lambda: lib.ones(()).expand(2, 3),
        lambda: lib.ones(2, 1, 3).transpose(0, 1),
        lambda: lib.ones(4, 3)[1:3],
        lambda: lib.ones(2, 3, 4, 5).permute(0, 3, 1, 2),
        lambda: lib.ones(()),
        lambda: lib.ones(0, 3),
    ]
    uses: list[Callable[[Any], Any]] = [
        lambda x: x * 2,
        lambda x: x.sum(),
        lambda x: x.clone(),
        lambda x: x.expand((2, *x.shape)),
        lambda x: x * lib.ones((2, *x.shape)),
    ]
    found = []
    for make in makers:
        for use in uses:
            for create in (False, True):
                x = make().requires_grad_()
                y = use(x)
                y.backward(lib.ones(tuple(y.shape)), create_graph=create)
                first = x.grad
                strides = [first.stride()]
                use(x).backward(lib.ones(tuple(y.shape)), create_graph=create)
                strides.append(x.grad.stride())
                found.append((strides, x.grad is first, x.grad.requires_grad, x.grad))
    return found


@case
def who_owns_grad(lib: Any) -> Any:
    g = lib.ones(2)
    found = []
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    x.backward(g)
    found.append(x.grad.data_ptr() == g.data_ptr())
    x.grad = None
    (x + y).backward(g)
    found.append(x.grad.data_ptr() == y.grad.data_ptr())
    kept: list[Any] = []
    x.grad = None
    x.register_hook(kept.append)
    (x * 2).backward(g)
    found.append(x.grad.data_ptr() == kept[0].data_ptr())
    (x * 2).backward(g, create_graph=True)
    found.append((x.grad.grad_fn, x.grad.requires_grad))
    z = lib.ones(2, requires_grad=True)
    (z * z).backward(lib.ones(2, requires_grad=True), create_graph=True)
    found.append((z.grad.grad_fn.name(), z.grad.requires_grad))
    return found


@case
def batched_gradients(lib: Any) -> Any:
    ag = lib.autograd
    x, w = leaf(lib, 1, 2, 3), leaf(lib)
    eye = lib.eye(3, dtype=lib.float64)

    def second() -> Any:
        (g,) = ag.grad(x**3, x, eye, is_grads_batched=True, create_graph=True)
        return ag.grad(g.sum(), x)

    return tried(
        [
            lambda: ag.grad(x * x, x, eye, is_grads_batched=True),
            lambda: ag.grad(x * x, [x, w], eye, is_grads_batched=True, allow_unused=True),
            lambda: ag.grad(x * x, [x, w], eye, is_grads_batched=True),
            lambda: ag.grad([x * x, w * w], [x, w], [eye, lib.ones(3, 2)], is_grads_batched=True),
            lambda: ag.grad([x * x, w * w], [x, w], [eye, lib.ones(4, 2)], is_grads_batched=True),
            lambda: ag.grad([x * x, w * w], [x, w], [eye, None], is_grads_batched=True),
            lambda: ag.grad((x * x).sum(), x, is_grads_batched=True),
            second,
        ]
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: CASES[name](torch)) == outcome(lambda: CASES[name](oracle))


# Without the oracle ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_cases_run_without_an_oracle(name: str) -> None:
    CASES[name](torch)


def test_saved_hooks_belong_to_their_thread() -> None:
    log: list[str] = []
    x = leaf(torch)

    def work() -> None:
        (x * x).sum().backward()

    def pack(t: Any) -> Any:
        log.append("packed")
        return t.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert log == []


@mindtorch_only
def test_hooks_that_refer_to_their_tensor_are_collected() -> None:
    def hooked() -> Any:
        y = leaf(torch) * 2
        y.grad_fn.register_hook(lambda i, o: y)
        y.register_hook(lambda g: None if y is None else g)
        return weakref.ref(y)

    alive = hooked()
    gc.collect()
    assert alive() is None


@mindtorch_only
def test_packed_values_that_refer_to_their_result_are_collected() -> None:
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * 1).exp()
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


def test_a_failing_hook_leaves_no_mode_behind() -> None:
    x = leaf(torch)

    def fail(t: Any) -> Any:
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"), torch.autograd.graph.saved_tensors_hooks(fail, fail):
        x * x
    assert torch.is_grad_enabled()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


@mindtorch_only
def test_views_of_a_users_gradient_are_not_taken() -> None:
    """PyTorch makes `.grad` of a view of the gradient it was given, and then adds into the user's tensor."""
    x, g = torch.ones(2, requires_grad=True), torch.ones(2)
    for _ in range(3):
        x.view(2).backward(g)
    assert g.tolist() == [1.0, 1.0] and x.grad.tolist() == [3.0, 3.0]
