"""Hooks around the backward of modules and hooks of all modules, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome is the same for both. Cases remove what they hang on all
modules.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(values or (1.0, 2.0), dtype=lib.float64, requires_grad=True)


def module(lib: Any, fn: Callable[..., Any]) -> Any:
    """A module whose forward is `fn`."""
    made = type("Made", (lib.nn.Module,), {"forward": lambda self, *a, **k: fn(*a, **k)})
    return made()


def logger(log: list[Any], label: str, result: Any = None) -> Callable[..., Any]:
    def hook(m: Any, *rest: Any) -> Any:
        log.append((label, *rest))
        return result(*rest) if result is not None else None

    return hook


@case
def full_hooks_see_inputs_and_outputs(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda x, y: (x * y, x + 1))
    m.register_full_backward_hook(logger(log, "hook"))
    x, y = leaf(lib), leaf(lib, 3, 4)
    a, b = m(x, y)
    (a * 2).sum().backward(retain_graph=True)
    (a + b).sum().backward()
    return log, x.grad, y.grad, type(a.grad_fn).__name__, a.grad_fn is b.grad_fn


@case
def full_hooks_replace_gradients(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda x: x * 3)
    m.register_full_backward_hook(logger(log, "hook", lambda gi, go: (gi[0] * 10,)))
    m.register_full_backward_hook(logger(log, "second"))
    m.register_full_backward_hook(logger(log, "first"), prepend=True)
    m.register_full_backward_pre_hook(logger(log, "pre", lambda go: (go[0] * 5,)))
    m.register_full_backward_pre_hook(logger(log, "pre first"), prepend=True)
    x = leaf(lib)
    m(x).sum().backward()
    return log, x.grad


@case
def values_that_are_no_tensors(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda n, x, s, y: (s, x * n, y))
    m.register_full_backward_hook(logger(log, "hook"))
    x, plain = leaf(lib), lib.ones(2)
    s, out, y = m(3, x, "text", plain)
    out.sum().backward()
    return log, x.grad, s, y.requires_grad


@case
def without_inputs_that_require_grad(lib: Any) -> Any:
    log: list[Any] = []
    w = leaf(lib)
    m = module(lib, lambda x: x * w)
    m.register_full_backward_hook(logger(log, "hook"))
    handle = m.register_full_backward_pre_hook(logger(log, "pre", lambda go: (go[0] * 2,)))
    m(lib.ones(2)).sum().backward()
    handle.remove()
    m.register_full_backward_hook(logger(log, "wrong", lambda gi, go: go))
    return tried([lambda: m(lib.ones(2)).sum().backward()]), log, w.grad


@case
def hooks_may_be_removed(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda x: x * 3)
    first = m.register_full_backward_hook(logger(log, "hook"))
    with m.register_full_backward_pre_hook(logger(log, "pre")):
        m(leaf(lib)).sum().backward()
    first.remove()
    m(leaf(lib)).sum().backward()
    return log, type(m(leaf(lib)).grad_fn).__name__


@case
def what_hooks_must_not_return(lib: Any) -> Any:
    def run(register: str, value: Any) -> Any:
        m = module(lib, lambda x, y: x * y)
        getattr(m, register)(lambda m, *g: value)
        m(leaf(lib), leaf(lib)).sum().backward()

    g = lib.ones(2, dtype=lib.float64)
    return tried(
        [
            lambda: run("register_full_backward_hook", (g,)),
            lambda: run("register_full_backward_pre_hook", (g, g)),
            lambda: run("register_full_backward_hook", (g, None)),
            lambda: run("register_full_backward_hook", (g, g)),
        ]
    )


@case
def results_that_are_no_tensors(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda x: {"out": x * 2})
    m.register_full_backward_hook(logger(log, "hook"))

    def run() -> Any:
        m(leaf(lib))["out"].sum().backward()
        return log

    def off() -> Any:
        with lib.no_grad():
            return m(leaf(lib))["out"].requires_grad

    return [r[0] for r in tried([run, off])]


@case
def in_place_writes_to_results(lib: Any) -> Any:
    m = module(lib, lambda x: x * 2)
    m.register_full_backward_hook(lambda *a: None)

    def output() -> Any:
        m(leaf(lib)).add_(1)

    def given() -> Any:
        n = module(lib, lambda x: x.add_(1))
        n.register_full_backward_hook(lambda *a: None)
        return n(leaf(lib) * 1)

    return tried([output, given])


@case
def the_older_kind(lib: Any) -> Any:
    def run(fn: Callable[..., Any], *args: Any) -> Any:
        log: list[Any] = []
        m = module(lib, fn)
        m.register_backward_hook(logger(log, "hook"))
        out = m(*args)
        while not hasattr(out, "backward"):
            out = out["out"] if isinstance(out, dict) else out[0]
        if out.requires_grad:
            out.sum().backward()
        return log

    x = leaf(lib)
    return tried(
        [
            lambda: run(lambda x: x * 2, x),
            lambda: run(lambda x: x * 2, x * 1),
            lambda: run(lambda x: (x * 2).exp(), x * 1),
            lambda: run(lambda x: {"out": x * 2}, x * 1),
            lambda: run(lambda x, n: x * n, x, 2),
            lambda: run(lambda x: (x * 2, x * 3), x * 1),
            lambda: run(lambda x: [x * 2], x * 1),
            lambda: run(lambda x: lib.ones(2), x),
        ]
    )


@case
def kinds_are_not_mixed(lib: Any) -> Any:
    m, n = module(lib, lambda x: x), module(lib, lambda x: x)
    m.register_full_backward_hook(print)
    n.register_backward_hook(print)
    return tried([lambda: m.register_backward_hook(print), lambda: n.register_full_backward_hook(print)])


@case
def forward_hooks_run_inside(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda x: x * 3)
    m.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    m.register_forward_hook(lambda m, args, out: out * 5)
    m.register_full_backward_hook(logger(log, "hook"))
    x = leaf(lib)
    m(x).sum().backward()
    return log, x.grad


@case
def nested_modules(lib: Any) -> Any:
    log: list[Any] = []
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU(), lib.nn.Linear(2, 1)).double()
    with lib.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
    for name, m in model.named_modules():
        m.register_full_backward_hook(logger(log, name))
        m.register_full_backward_pre_hook(logger(log, "pre " + name))
    x = leaf(lib)[None].detach().requires_grad_()
    model(x).sum().backward()
    return log, x.grad, [p.grad for p in model.parameters()]


@case
def second_derivatives(lib: Any) -> Any:
    log: list[Any] = []
    m = module(lib, lambda x: x**3)
    m.register_full_backward_hook(logger(log, "hook"))
    x = leaf(lib)
    (g,) = lib.autograd.grad(m(x).sum(), x, create_graph=True)
    seen = len(log)
    return g, lib.autograd.grad(g.sum(), x), seen, len(log)


@case
def copies_keep_their_hooks(lib: Any) -> Any:
    log: list[Any] = []
    m = lib.nn.ReLU()
    m.register_full_backward_hook(logger(log, "hook"))
    copy.deepcopy(m)(leaf(lib)).sum().backward()
    return log


# Hooks of all modules -------------------------------------------------------------------------------------------------


def module_file(lib: Any) -> Any:
    return importlib.import_module(lib.__name__ + ".nn.modules.module")


@contextlib.contextmanager
def shared(*handles: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for h in handles:
            h.remove()


@case
def shared_hooks(lib: Any) -> Any:
    log: list[Any] = []
    nm = module_file(lib)
    model = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh())
    model[1].register_forward_hook(logger(log, "own"))
    model[1].register_full_backward_hook(logger(log, "own backward"))
    x = leaf(lib)
    with shared(
        nm.register_module_forward_pre_hook(logger(log, "pre", lambda args: args[0] * 2)),
        nm.register_module_forward_hook(logger(log, "forward", lambda args, out: out * 3)),
        nm.register_module_full_backward_pre_hook(logger(log, "backward pre")),
        nm.register_module_full_backward_hook(logger(log, "backward")),
    ):
        model(x).sum().backward()
    log.append("removed")
    model(x).sum().backward()
    return log, x.grad


@case
def shared_hooks_that_always_run(lib: Any) -> Any:
    log: list[Any] = []
    nm = module_file(lib)

    def fail(x: Any, y: Any = 0) -> Any:
        raise ValueError("no")

    m = module(lib, fail)

    def broken(*args: Any) -> Any:
        raise KeyError("hook")

    with shared(
        nm.register_module_forward_hook(logger(log, "always"), always_call=True),
        nm.register_module_forward_hook(logger(log, "kwargs"), with_kwargs=True),
        nm.register_module_forward_hook(broken, always_call=True),
    ):
        failed = tried([lambda: m(1, y=2)])
    return log, failed


@case
def registration_hooks(lib: Any) -> Any:
    log: list[Any] = []
    nm = module_file(lib)

    def note(kind: str) -> Callable[..., Any]:
        return lambda m, name, value: log.append((kind, name, type(value).__name__))

    with shared(
        nm.register_module_buffer_registration_hook(note("buffer")),
        nm.register_module_module_registration_hook(note("module")),
        nm.register_module_parameter_registration_hook(note("parameter")),
    ):
        m = lib.nn.Module()
        m.register_buffer("b", lib.ones(1))
        m.b = lib.zeros(1)
        m.p = lib.nn.Parameter(lib.ones(1))
        m.p = None
        m.register_parameter("q", None)
        m.sub = lib.nn.ReLU()
        m.sub = None
        m.add_module("other", lib.nn.ReLU())
    with shared(nm.register_module_parameter_registration_hook(lambda m, n, v: lib.nn.Parameter(v * 2))):
        m.r = lib.nn.Parameter(lib.ones(1))
    return log, m.r


@case
def shared_hooks_by_their_private_names(lib: Any) -> Any:
    """The dictionaries can be read, and other ones put in their place, which takes the hooks away."""
    nm = module_file(lib)
    log: list[Any] = []
    layer, x = lib.nn.ReLU(), lib.ones(2)
    before = nm.register_module_forward_pre_hook(logger(log, "before"))
    after = nm.register_module_forward_hook(logger(log, "after"), with_kwargs=True)
    try:
        seen: list[Any] = [before.id in nm._global_forward_pre_hooks, after.id in nm._global_forward_hooks]
        seen += [after.id in nm._global_forward_hooks_with_kwargs, len(nm._global_forward_hooks_always_called)]
        layer(x)
        nm._global_forward_pre_hooks = OrderedDict()
        layer(x)
        nm._global_forward_hooks = OrderedDict()
        layer(x)
        nm._global_forward_hooks = OrderedDict([(after.id, logger(log, "other"))])
        layer(x)
        nm._global_forward_hooks_with_kwargs = OrderedDict()
        layer(x)
    finally:
        nm._global_forward_pre_hooks, nm._global_forward_hooks = OrderedDict(), OrderedDict()
    layer(x)
    seen += [len(nm._global_backward_hooks), len(nm._global_parameter_registration_hooks)]
    return log, seen, hasattr(nm, "_global_other")


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: CASES[name](torch)) == outcome(lambda: CASES[name](oracle))


# Without the oracle ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_cases_run_without_an_oracle(name: str) -> None:
    CASES[name](torch)
