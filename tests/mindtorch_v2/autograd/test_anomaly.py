"""Anomaly detection and what `.grad` looks like, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome (a value, or the type and text of an error, and the
warnings) is the same for both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ._cases import Cases
from ._hook_leaves import leaf

case = Cases()

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

    class Fails(ag.Function):
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
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
