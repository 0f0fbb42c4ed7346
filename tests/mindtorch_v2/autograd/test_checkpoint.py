"""`torch.utils.checkpoint`, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome is the same for both, but for the advice that ends messages.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from .._subject import submodule

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(values or (1.0, 2.0), dtype=lib.float64, requires_grad=True)


def checkpoint(lib: Any) -> Any:
    return importlib.import_module(lib.__name__ + ".utils.checkpoint")


def short(results: Any) -> Any:
    """Outcomes without the advice at the end of messages."""
    if isinstance(results, str):
        return results.split("\n\nTip")[0].rstrip()
    return [short(r) for r in results] if isinstance(results, (list, tuple)) else results


class Calls:
    """A function that counts how often its parts run."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def __call__(self, x: Any, y: Any = None) -> Any:
        self.log.append("start")
        z = (x * x).exp()
        self.log.append("middle")
        z = z * (x if y is None else y)
        self.log.append("end")
        return z.sum()


@case
def gradients_are_the_same(lib: Any) -> Any:
    found = []
    for reentrant in (True, False):
        fn, x, y = Calls(), leaf(lib), leaf(lib, 3, 4)
        out = checkpoint(lib).checkpoint(fn, x, y, use_reentrant=reentrant)
        fn.log.append("backward")
        out.backward()
        found.append((fn.log, out, x.grad, y.grad))
    return found


@case
def early_stop(lib: Any) -> Any:
    ck = checkpoint(lib)
    found = []
    for block in (None, True, False):
        for given in (True, False):
            fn, x = Calls(), leaf(lib)
            with contextlib.nullcontext() if block is None else ck.set_checkpoint_early_stop(block):
                out = ck.checkpoint(fn, x, use_reentrant=False, early_stop=given)
            out.backward()
            found.append((fn.log, x.grad))
    return found


@case
def random_numbers_are_drawn_again(lib: Any) -> Any:
    ck = checkpoint(lib)

    def same(reentrant: bool, preserve: bool) -> Any:
        drawn: list[Any] = []

        def fn(x: Any) -> Any:
            mask = lib.rand(4, dtype=lib.float64)
            drawn.append(mask)
            return (x * mask).exp()

        lib.manual_seed(1)
        x = leaf(lib, 1, 2, 3, 4)
        out = ck.checkpoint(fn, x, use_reentrant=reentrant, preserve_rng_state=preserve)
        before = lib.rand(1)
        lib.manual_seed(7)
        out.sum().backward()
        after = lib.rand(1)
        lib.manual_seed(7)
        return bool((drawn[0] == drawn[1]).all()), bool(after == lib.rand(1)), len(drawn), before.shape

    return [same(reentrant, preserve) for reentrant in (True, False) for preserve in (True, False)]


@case
def results_of_any_kind(lib: Any) -> Any:
    ck = checkpoint(lib)
    found = []
    for reentrant in (True, False):
        x = leaf(lib)
        a, b, c = ck.checkpoint(lambda x, n, s: (x * n, s, x.exp()), x, 3, "text", use_reentrant=reentrant)
        (a + c).sum().backward()
        found.append((a, b, c, x.grad))
    x = leaf(lib)
    d = ck.checkpoint(lambda x, scale: {"out": x * scale}, x, scale=leaf(lib, 2, 2), use_reentrant=False)
    d["out"].sum().backward()
    return found, x.grad


@case
def without_gradients(lib: Any) -> Any:
    ck = checkpoint(lib)
    x = lib.ones(2)

    def reentrant() -> Any:
        return ck.checkpoint(lambda x: x * 2, x, use_reentrant=True).requires_grad

    def other() -> Any:
        return ck.checkpoint(lambda x: x * 2, x, use_reentrant=False).requires_grad

    def off() -> Any:
        with lib.no_grad():
            return ck.checkpoint(lambda x: x * 2, leaf(lib), use_reentrant=False).requires_grad

    def parameter_only() -> Any:
        w = leaf(lib)
        ck.checkpoint(lambda x: x * w, x, use_reentrant=False).sum().backward()
        return w.grad

    def cut() -> Any:
        ck.checkpoint(lambda x: x.detach() * 2, leaf(lib), use_reentrant=True).sum().backward()

    return tried([reentrant, other, off, parameter_only, cut])


@case
def what_is_refused(lib: Any) -> Any:
    ck = checkpoint(lib)
    x = leaf(lib)

    def run(x: Any, **options: Any) -> Any:
        return ck.checkpoint(lambda x, **k: x.exp(), x, **options)

    def with_inputs() -> Any:
        run(x, use_reentrant=True).sum().backward(inputs=[x])

    return tried(
        [
            lambda: run(x),
            lambda: run(x, use_reentrant=True, scale=3),
            lambda: run(x, use_reentrant=True, context_fn=lambda: (1, 2)),
            lambda: run(x, use_reentrant=True, debug=True),
            lambda: run(x, use_reentrant=False, determinism_check="strong"),
            lambda: run(x, use_reentrant=False, debug=True, context_fn=lambda: (1, 2)),
            lambda: lib.autograd.grad(run(x, use_reentrant=True).sum(), x),
            with_inputs,
            lambda: lib.autograd.grad(run(x, use_reentrant=False).sum(), x),
            lambda: ck.detach_variable([x]),
            lambda: ck.checkpoint_sequential([lib.exp], 1, x),
            lambda: ck.checkpoint_sequential([lib.exp], 1, x, True, a=1),
        ]
    )


@case
def calls_that_differ(lib: Any) -> Any:
    ck = checkpoint(lib)

    def varying(first: Callable[[Any], Any], again: Callable[[Any], Any], **options: Any) -> Callable[[], Any]:
        def run() -> Any:
            calls: list[int] = []

            def fn(x: Any) -> Any:
                calls.append(1)
                return first(x) if len(calls) == 1 else again(x)

            x = leaf(lib)
            ck.checkpoint(fn, x, use_reentrant=False, **options).sum().backward()
            return x.grad

        return run

    def twice(x: Any) -> Any:
        return x.exp().exp()

    def once(x: Any) -> Any:
        return x.exp()

    def wide(x: Any) -> Any:
        return (x[:, None] * x).exp().sum(0)

    return short(
        tried(
            [
                varying(twice, once),
                varying(once, twice),
                varying(once, twice, early_stop=False),
                varying(once, wide),
                varying(once, lambda x: wide(x)[:1], determinism_check="none"),
                varying(lambda x: (x * 1).exp(), lambda x: (x.float() * 1).exp()),
            ]
        )
    )


@case
def inputs_that_were_written(lib: Any) -> Any:
    ck = checkpoint(lib)

    def run(reentrant: bool) -> Any:
        x = leaf(lib)
        y = x * 1
        out = ck.checkpoint(lambda y: y.exp(), y, use_reentrant=reentrant)
        y.add_(1)
        out.sum().backward()

    return tried([lambda: run(True), lambda: run(False)])


@case
def nested(lib: Any) -> Any:
    ck = checkpoint(lib)
    found = []
    for stop in (True, False):
        log: list[str] = []

        def inner(x: Any, log: list[str] = log) -> Any:
            log.append("inner")
            return x.sin().exp()

        def outer(x: Any, log: list[str] = log) -> Any:
            log.append("outer")
            return ck.checkpoint(inner, (x * x).exp(), use_reentrant=False).cos()

        with ck.set_checkpoint_early_stop(stop):
            x = leaf(lib, 0.1, 0.2)
            out = ck.checkpoint(outer, x, use_reentrant=False)
            out.sum().backward()
        found.append((log, x.grad))
    return found


@case
def passes_over_a_kept_graph(lib: Any) -> Any:
    fn, x = Calls(), leaf(lib)
    out = checkpoint(lib).checkpoint(fn, x, use_reentrant=False)
    out.backward(retain_graph=True)
    out.backward()
    return fn.log, x.grad, tried([out.backward])


@case
def second_derivatives(lib: Any) -> Any:
    x = leaf(lib)
    out = checkpoint(lib).checkpoint(lambda x: (x**3).sum(), x, use_reentrant=False)
    (g,) = lib.autograd.grad(out, x, create_graph=True)
    return g, lib.autograd.grad(g.sum(), x)


@case
def in_place_writes_inside(lib: Any) -> Any:
    def fn(x: Any) -> Any:
        y = x * 2
        y[0].mul_(x[1])
        y.exp_()
        return y * x

    found = []
    for reentrant in (True, False):
        x = leaf(lib)
        checkpoint(lib).checkpoint(fn, x, use_reentrant=reentrant).sum().backward()
        found.append(x.grad)
    return found


@case
def contexts(lib: Any) -> Any:
    log: list[str] = []

    @contextlib.contextmanager
    def note(name: str) -> Iterator[None]:
        log.append("enter " + name)
        try:
            yield
        finally:
            log.append("leave " + name)

    x = leaf(lib)
    out = checkpoint(lib).checkpoint(
        lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=lambda: (note("forward"), note("again"))
    )
    log.append("backward")
    out.sum().backward()

    def suppressed() -> Any:
        return checkpoint(lib).checkpoint(
            lambda x: 1 / 0,
            x,
            use_reentrant=False,
            context_fn=lambda: (contextlib.suppress(ZeroDivisionError), contextlib.nullcontext()),
        )

    return log, x.grad, tried([suppressed])


@case
def errors_in_the_call(lib: Any) -> Any:
    x = leaf(lib)
    seen = tried(
        [
            lambda: checkpoint(lib).checkpoint(lambda x: 1 / 0, x, use_reentrant=True),
            lambda: checkpoint(lib).checkpoint(lambda x: 1 / 0, x, use_reentrant=False),
        ]
    )
    (x * x).sum().backward()
    return seen, x.grad, lib.is_grad_enabled()


@case
def saved_values_that_are_looked_at(lib: Any) -> Any:
    x = leaf(lib)
    out = checkpoint(lib).checkpoint(lambda x: x.exp(), x, use_reentrant=False)
    return out.grad_fn._saved_result, out.grad_fn._saved_result


@case
def saved_tensors_of_functions(lib: Any) -> Any:
    def square(times: int) -> Any:
        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                for _ in range(times):
                    (x,) = ctx.saved_tensors
                return 2 * g * x

        return Square.apply

    def run(times: int) -> Any:
        x = leaf(lib)
        checkpoint(lib).checkpoint(lambda x: square(times)(x * 1), x, use_reentrant=False).sum().backward()
        return x.grad

    return tried([lambda: run(1), lambda: run(2)])


@case
def sequences(lib: Any) -> Any:
    ck = checkpoint(lib)
    found = []
    for reentrant in (True, False):
        for segments in (1, 2, 3, 4):
            log: list[int] = []

            def step(i: int, log: list[int] = log) -> Callable[[Any], Any]:
                def run(value: Any) -> Any:
                    log.append(i)
                    return (value * 0.5).sin()

                return run

            x = leaf(lib)
            out = ck.checkpoint_sequential([step(i) for i in range(4)], segments, x, use_reentrant=reentrant)
            log.append(-1)
            out.sum().backward()
            found.append((log, x.grad))
    return found


@case
def selected_operators_are_kept(lib: Any) -> Any:
    ck = checkpoint(lib)
    dispatch = importlib.import_module(lib.__name__ + ".utils._python_dispatch")
    log: list[str] = []

    class Log(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if str(func) in ("aten.mm.default", "aten.sigmoid.default", "aten.sin.default"):
                log.append(str(func))
            return func(*args, **(kwargs or {}))

    def fn(x: Any, y: Any) -> Any:
        return lib.sigmoid((x @ y).sin() @ y) * y

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        log.append(f"asked {ctx.is_recompute}") if op is lib.ops.aten.sin.default else None
        return ck.CheckpointPolicy.MUST_SAVE if op is lib.ops.aten.sin.default else ck.CheckpointPolicy.PREFER_RECOMPUTE

    found = []
    for chosen in ([lib.ops.aten.mm.default], policy, [], lambda ctx, op, *a, **k: op is lib.ops.aten.sigmoid.default):
        log.clear()
        x, y = leaf(lib)[None] * leaf(lib)[:, None], lib.ones(2, 2, dtype=lib.float64, requires_grad=True)
        x = x.detach().requires_grad_()
        out = ck.checkpoint(
            fn, x, y, use_reentrant=False, context_fn=lambda c=chosen: ck.create_selective_checkpoint_contexts(c)
        )
        with Log():
            out.sum().backward(retain_graph=True)
        found.append((list(log), x.grad, y.grad, tried([lambda o=out: o.sum().backward()]) if chosen != [] else None))
    return found


@case
def selections_that_are_refused(lib: Any) -> Any:
    ck = checkpoint(lib)

    def mutated(allow: bool) -> Any:
        def fn(x: Any) -> Any:
            y = x.sin()
            z = y * x
            y.detach().zero_()
            return z.exp()

        x = leaf(lib)
        ck.checkpoint(
            fn,
            x,
            use_reentrant=False,
            context_fn=lambda: ck.create_selective_checkpoint_contexts(
                [lib.ops.aten.sin.default], allow_cache_entry_mutation=allow
            ),
        ).sum().backward()

    def different() -> Any:
        calls: list[int] = []

        def fn(x: Any) -> Any:
            calls.append(1)
            return x.sin().exp() if len(calls) == 1 else x.cos().exp()

        x = leaf(lib)
        ck.checkpoint(
            fn,
            x,
            use_reentrant=False,
            context_fn=lambda: ck.create_selective_checkpoint_contexts([lib.ops.aten.sin.default]),
        ).sum().backward()

    def wrong(value: Any) -> str:
        try:
            ck.create_selective_checkpoint_contexts(value)
        except Exception as error:  # the type and the part of the text that names no class
            return type(error).__name__ + str(error)[:40]
        return "accepted"

    return tried([lambda: mutated(False), different]), wrong([lib.ops.aten.mm]), wrong([3]), wrong(3)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: CASES[name](torch)) == outcome(lambda: CASES[name](oracle))


# Without the oracle ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_cases_run_without_an_oracle(name: str) -> None:
    CASES[name](torch)


def test_intermediate_values_are_not_kept() -> None:
    alive: list[Any] = []

    def fn(x: Any) -> Any:
        y = x.exp()
        alive.append(weakref.ref(y))
        return y * y

    x = leaf(torch)
    out = submodule("utils.checkpoint").checkpoint(fn, x, use_reentrant=False)
    gc.collect()
    assert alive[0]() is None
    out.sum().backward()
    assert len(alive) == 2
    del out
    gc.collect()
    assert alive[1]() is None


def test_sequential_modules() -> None:
    nn = submodule("nn")
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    x = torch.ones(2, 3, requires_grad=True)
    torch.manual_seed(3)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    for reentrant in (True, False):
        model.zero_grad()
        torch.manual_seed(3)
        submodule("utils.checkpoint").checkpoint_sequential(model, 2, x, use_reentrant=reentrant).sum().backward()
        for p, g in zip(model.parameters(), expected):
            assert p.grad.tolist() == g.tolist()


def test_debug_shows_the_operators_of_both_runs() -> None:
    ck = submodule("utils.checkpoint")

    def fn(x: Any, calls: list[int]) -> Any:
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.cos()

    def run(**options: Any) -> None:
        ck.checkpoint(fn, leaf(torch), [], use_reentrant=False, **options).sum().backward()

    with pytest.raises(ck.CheckpointError) as error:
        run(debug=True)
    text = str(error.value)
    assert "sin.default(" in text and "exp.default(" in text and "cos.default(" in text
    assert text.index("sin.default") < text.index("cos.default") and "autograd/test_checkpoint.py" in text
    assert "Detected non-determinism while running activation checkpointing" in text
    with ck.set_checkpoint_debug_enabled(True), pytest.raises(ck.CheckpointError, match="dumping logs"):
        run()
    with ck.set_checkpoint_debug_enabled(False), pytest.raises(ck.CheckpointError, match="A different number"):
        run(debug=True)
    x = leaf(torch)
    ck.checkpoint(lambda x: x.exp(), x, use_reentrant=False, debug=True).sum().backward()
    assert x.grad is not None
