"""Writes through views and gradient modes, told apart from PyTorch's by nothing a user can see.

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
from ._engine_leaves import function, leaf

case = Cases()

# Views and in-place ---------------------------------------------------------------------------------------------------


@case
def views_that_may_not_be_written(lib: Any) -> Any:
    same = function(lib, lambda ctx, x: x)
    flat = function(lib, lambda ctx, x: x.view(-1))
    pair = function(lib, lambda ctx, x: (x.view(-1), x * 2), lambda ctx, a, b: a + b)

    def quiet(x: Any, mode: Any) -> Any:
        with mode():
            return x.view(-1)

    views: list[Callable[[Any], Any]] = [
        lambda x: x.split(1)[1],
        lambda x: x.unbind()[0],
        lambda x: x.chunk(2)[1].view(1),
        same.apply,
        flat.apply,
        lambda x: pair.apply(x)[0],
        lambda x: quiet(x, lib.no_grad),
        lambda x: quiet(x, lib.no_grad).view(2, 1),
        lambda x: quiet(x, lib.inference_mode),
        lambda x: x.view(-1).detach(),
    ]

    def directly(make: Callable[[Any], Any], base: Any) -> Any:
        return make(base).add_(lib.ones(1, dtype=lib.float64, requires_grad=True))

    def indirectly(make: Callable[[Any], Any], base: Any) -> Any:
        view = make(base)
        base.mul_(2)
        return view * 1

    return [
        outcome(lambda v=v, f=f, b=b: f(v, leaf(lib) * 1 if b else lib.ones(2, dtype=lib.float64)))
        for v in views
        for f in (directly, indirectly)
        for b in (True, False)
    ]


@case
def history_written_through_views(lib: Any) -> Any:
    """First and second derivatives of writes through views, whatever the order of reading and writing."""

    def chained(x: Any, w: Any) -> Any:
        y = x * 1
        y[0].mul_(w[0])
        y.t()[1].exp_()
        return y

    def constant_base(x: Any, w: Any) -> Any:
        y = lib.zeros(2, 2, dtype=lib.float64)
        v = y[1]
        v.copy_(x[0] * w[0])
        y.view(-1)[0:2].add_(x[1])
        return y * y

    def old_value_kept(x: Any, w: Any) -> Any:
        y = x * 1
        y.mul_(w)
        y.mul_(w * x)
        return y

    def read_between(x: Any, w: Any) -> Any:
        y = x * 1
        v = y[0]
        before = v.clone() * 3
        y.mul_(w)
        return before + v

    def complex_parts(x: Any, w: Any) -> Any:
        z = lib.view_as_complex((x * 1).contiguous())
        lib.view_as_real(z)[..., 0].mul_(w[0])
        return lib.view_as_real(z * z)

    results = []
    for program in (chained, constant_base, old_value_kept, read_between, complex_parts):
        x = lib.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=lib.float64, requires_grad=True)
        w = lib.tensor([[1.5, 2.0], [0.5, 3.0]], dtype=lib.float64, requires_grad=True)
        first = lib.autograd.grad((program(x, w) ** 2).sum(), [x, w], create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in first), [x, w])
        results.append((first, second))
    return results


# Modes ----------------------------------------------------------------------------------------------------------------


@case
def inference(lib: Any) -> Any:
    seen: list[Any] = []
    with lib.inference_mode():
        a = lib.ones(2, dtype=lib.float64)
        seen.append((a.is_inference(), lib.is_grad_enabled(), lib.is_inference_mode_enabled()))
        with lib.inference_mode(False):
            seen.append((lib.is_grad_enabled(), lib.is_inference_mode_enabled()))
        with lib.enable_grad():
            seen.append((lib.is_grad_enabled(), (leaf(lib) * 1).requires_grad))
        made = leaf(lib)
        seen.append((made.requires_grad, made.is_inference()))
    return seen, tried(
        [
            lambda: leaf(lib) * a,
            lambda: leaf(lib) + a,
            lambda: a.requires_grad_(),
            lambda: a.add_(1),
            lambda: a._version,
            lambda: a.view(-1).is_inference(),
            lambda: a.clone().is_inference(),
            lambda: setattr(a, "requires_grad", True),
            lambda: leaf(lib).mul(2).mul_(a),
            lambda: lib.ones(2, dtype=lib.float64).add_(1),
            lambda: lib.add(a, a, out=a),
        ]
    )


@case
def grad_modes(lib: Any) -> Any:
    seen: list[Any] = []
    with lib.no_grad():
        with lib.set_grad_enabled(True):
            seen.append(lib.is_grad_enabled())
        seen.append(lib.is_grad_enabled())

    @lib.set_grad_enabled(False)
    def off() -> bool:
        return bool(lib.is_grad_enabled())

    @lib.no_grad
    def bare() -> bool:
        return bool(lib.is_grad_enabled())

    @lib.inference_mode
    def bare_inference() -> bool:
        return bool(lib.is_inference_mode_enabled())

    @lib.inference_mode(False)
    def no_inference() -> bool:
        return bool(lib.is_inference_mode_enabled())

    seen += [off(), lib.is_grad_enabled(), bare(), bare_inference(), no_inference(), bare.__name__]

    @lib.no_grad()
    def generator() -> Any:
        seen.append((yield lib.is_grad_enabled()))
        try:
            yield lib.is_grad_enabled()
        except ValueError:
            yield "caught", lib.is_grad_enabled()
        return "end"

    it = generator()
    seen += [next(it), lib.is_grad_enabled(), it.send("sent"), it.throw(ValueError())]
    try:
        next(it)
    except StopIteration as stop:
        seen.append(stop.value)

    @lib.no_grad()
    class Decorated:
        def __init__(self) -> None:
            self.recording = lib.is_grad_enabled()

    seen.append(Decorated().recording)
    return seen


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
