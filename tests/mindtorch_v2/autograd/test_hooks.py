"""Hooks of tensors and nodes, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome (a value, or the type and text of an error, and the
warnings) is the same for both.
"""

from __future__ import annotations

import gc
import importlib
import threading
import weakref
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import mindtorch_only
from .._subject import subject as torch
from ._cases import Cases
from ._hook_leaves import leaf, logger

case = Cases()

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

    @hooks.unserializable_hook
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


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)


# Without the oracle ---------------------------------------------------------------------------------------------------


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


def test_a_hook_is_asked_for_when_it_runs() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    handle = y.grad_fn.register_hook(3)
    with pytest.raises(TypeError, match="not callable"):
        y.sum().backward()
    handle.remove()
