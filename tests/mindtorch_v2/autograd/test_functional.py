"""`torch.autograd.functional`, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def of(lib: Any, *values: float, grad: bool = False) -> Any:
    return lib.tensor(values, dtype=lib.float64, requires_grad=grad)


def vector(x: Any) -> Any:
    return x.exp() * x.sum()


def number(x: Any) -> Any:
    return (x**3).sum() * x[0]


def pair(x: Any, y: Any) -> Any:
    return x * y.sum(), (x * 2).sum()


def mixed(x: Any, y: Any) -> Any:
    return (x**2).sum() * (y**3).sum()


@case
def jacobians(lib: Any) -> Any:
    j = lib.autograd.functional.jacobian
    x, y = of(lib, 1, 2), of(lib, 3, 4, 5)
    return tried(
        [
            lambda: j(vector, x),
            lambda: j(vector, x, vectorize=True),
            lambda: j(number, x),
            lambda: j(pair, (x, y)),
            lambda: j(pair, (x, y), vectorize=True),
            lambda: j(lambda x: x[:, None] * x, x),
            lambda: j(lambda x: (x, lib.ones(2)), x),
            lambda: j(lambda x: lib.ones(2), x),
            lambda: j(lambda x: x[0] * x, of(lib, 1, 2)[:, None].expand(2, 2)),
            lambda: j(lambda x: x * 1j, lib.ones(2, dtype=lib.complex128)),
            lambda: j(vector, (x,)),
            lambda: j(lambda x: (vector(x),), x),
        ]
    )


@case
def jacobians_as_part_of_a_graph(lib: Any) -> Any:
    x = of(lib, 1, 2, grad=True)
    y = x * 2
    found = lib.autograd.functional.jacobian(vector, y, create_graph=True)
    plain = lib.autograd.functional.jacobian(vector, y)
    fast = lib.autograd.functional.jacobian(vector, y, create_graph=True, vectorize=True)
    return found, plain, fast, lib.autograd.grad(found.sum(), x, retain_graph=True), lib.autograd.grad(fast.sum(), x)


@case
def jacobians_refuse(lib: Any) -> Any:
    j = lib.autograd.functional.jacobian
    x, y = of(lib, 1, 2), of(lib, 3, 4)
    return tried(
        [
            lambda: j(vector, 3),
            lambda: j(vector, (x, 3)),
            lambda: j(lambda x: 3, x),
            lambda: j(lambda x: (x, 3), x),
            lambda: j(lambda x: lib.ones(2), x, strict=True),
            lambda: j(lambda a, b: a * 2, (x, y), strict=True),
            lambda: j(lambda x: x * 2, x, strict=True, create_graph=True),
            lambda: j(vector, x, strict=True),
            lambda: j(vector, x, strict=True, vectorize=True),
            lambda: j(vector, x, strategy="sideways"),
            lambda: j(vector, x, strategy="forward-mode", create_graph=True),
            lambda: j(vector, x, strategy="forward-mode", strict=True),
            lambda: j(vector, x, strategy="forward-mode"),
        ]
    )


@case
def hessians(lib: Any) -> Any:
    h = lib.autograd.functional.hessian
    x, y = of(lib, 1, 2), of(lib, 3, 4, 5)
    return tried(
        [
            lambda: h(number, x),
            lambda: h(number, x, vectorize=True),
            lambda: h(mixed, (x, y)),
            lambda: h(mixed, (x, y), vectorize=True),
            lambda: h(lambda x: (x * 2).sum(), x),
            lambda: h(number, (x,)),
            lambda: h(lambda x: number(x)[None], x),
            lambda: h(vector, x),
            lambda: h(lambda x: (number(x),), x),
            lambda: h(lambda x: 3, x),
            lambda: h(number, 3),
            lambda: h(lambda x: (x * 2).sum(), x, strict=True),
            lambda: h(lambda a, b: number(a), (x, y), strict=True),
            lambda: h(lambda x: (x**2).sum(), x, strict=True, create_graph=True),
            lambda: h(number, x, strict=True),
            lambda: h(number, x, outer_jacobian_strategy="up"),
            lambda: h(number, x, outer_jacobian_strategy="forward-mode"),
        ]
    )


@case
def hessians_as_part_of_a_graph(lib: Any) -> Any:
    x = of(lib, 1, 2, grad=True)
    found = lib.autograd.functional.hessian(number, x, create_graph=True)
    return found, lib.autograd.grad(found.sum(), x)


@case
def products_with_jacobians(lib: Any) -> Any:
    f = lib.autograd.functional
    x, y, v, w = of(lib, 1, 2), of(lib, 3, 4, 5), of(lib, 10, 20), of(lib, 7)[0]
    found = []
    for product in (f.vjp, f.jvp):
        for create in (False, True):
            found.append(
                tried(
                    [
                        lambda p=product, c=create: p(vector, x, v, create_graph=c),
                        lambda p=product, c=create: p(vector, x.clone().requires_grad_(), v, create_graph=c),
                        lambda p=product, c=create: p(number, x, create_graph=c),
                        lambda p=product, c=create: p(lambda x: x * x, x[:1], create_graph=c),
                        lambda p=product, c=create: p(vector, x, create_graph=c),
                    ]
                )
            )
    return found, tried(
        [
            lambda: f.vjp(pair, (x, y), (v, w)),
            lambda: f.jvp(pair, (x, y), (v, y)),
            lambda: f.vjp(vector, x, (v, v)),
            lambda: f.vjp(vector, x, y),
            lambda: f.vjp(pair, (x, y), v),
            lambda: f.vjp(pair, (x, y), (v, v)),
            lambda: f.jvp(vector, x, y),
            lambda: f.jvp(pair, (x, y), v),
            lambda: f.vjp(vector, x, 3),
            lambda: f.vjp(lambda a, b: a * 2, (x, y), v),
            lambda: f.vjp(lambda a, b: a * 2, (x, y), v, strict=True),
            lambda: f.jvp(lambda a, b: a * 2, (x, y), (v, y)),
            lambda: f.jvp(lambda a, b: a * 2, (x, y), (v, y), strict=True),
            lambda: f.jvp(lambda x: lib.ones(2), x, v),
            lambda: f.vjp(lambda x: lib.ones(2), x, v, strict=True),
            lambda: f.jvp(lambda x: lib.ones(2), x, v, strict=True),
            lambda: f.vjp(lambda x: x * 2, x, v, strict=True, create_graph=True),
            lambda: f.jvp(lambda x: x * 2, x, v, strict=True, create_graph=True),
        ]
    )


@case
def products_with_hessians(lib: Any) -> Any:
    f = lib.autograd.functional
    x, y, v = of(lib, 1, 2), of(lib, 3, 4, 5), of(lib, 10, 20)
    found = []
    for product in (f.vhp, f.hvp):
        found.append(
            tried(
                [
                    lambda p=product: p(number, x, v),
                    lambda p=product: p(number, x, v, create_graph=True),
                    lambda p=product: p(number, x.clone().requires_grad_(), v, create_graph=True),
                    lambda p=product: p(number, x, v, strict=True),
                    lambda p=product: p(number, x[:1]),
                    lambda p=product: p(number, x),
                    lambda p=product: p(mixed, (x, y), (v, y)),
                    lambda p=product: p(mixed, (x, y), v),
                    lambda p=product: p(vector, x, v),
                    lambda p=product: p(lambda x: (number(x),), x, v),
                    lambda p=product: p(lambda x: (x * 2).sum(), x, v),
                    lambda p=product: p(lambda x: (x * 2).sum(), x, v, strict=True),
                    lambda p=product: p(lambda x: (x**2).sum(), x, v, strict=True, create_graph=True),
                    lambda p=product: p(lambda a, b: number(a), (x, y), (v, y)),
                    lambda p=product: p(lambda a, b: number(a), (x, y), (v, y), strict=True),
                ]
            )
        )
    return found


@case
def no_grad_outside_is_no_matter(lib: Any) -> Any:
    f = lib.autograd.functional
    x, v = of(lib, 1, 2, grad=True), of(lib, 1, 1)
    with lib.no_grad():
        return tried(
            [
                lambda: f.jacobian(vector, x, create_graph=True),
                lambda: f.hessian(number, x),
                lambda: f.vjp(vector, x, v),
                lambda: f.jvp(vector, x, v),
                lambda: f.vhp(number, x, v),
                lambda: f.hvp(number, x, v, create_graph=True),
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


def test_hessian_is_the_jacobian_of_the_gradient() -> None:
    f = torch.autograd.functional
    x = of(torch, 1, 2, 3)

    def gradient(x: Any) -> Any:
        return torch.autograd.grad(number(x), x, create_graph=True)[0]

    assert f.hessian(number, x).tolist() == f.jacobian(gradient, x).tolist()
