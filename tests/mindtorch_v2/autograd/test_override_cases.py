"""Subclasses and function modes, told apart from PyTorch's by nothing a user can see.

Invariant: a case is a function of the library; its outcome (a value, or the type and text of an error, and the
warnings) is the same for both.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ._cases import Cases

case = Cases()

# Overrides ------------------------------------------------------------------------------------------------------------


@case
def subclasses(lib: Any) -> Any:
    class Sub(lib.Tensor):
        pass

    class Other(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    s = lib.ones(3).as_subclass(Sub)
    x = lib.ones(3, requires_grad=True)
    view = x.as_subclass(Sub)
    (view * 2).sum().backward()
    own = lib.ones(3).as_subclass(Sub).requires_grad_()
    (own * own).sum().backward()
    made = lib.Tensor._make_subclass(Sub, lib.ones(2), True)
    p = lib.nn.Parameter(lib.ones(2))
    return (
        [
            type(t).__name__
            for t in (
                s,
                s + 1,
                1 + s,
                s.sum(),
                s[0],
                s.max(0)[0],
                s.split(1)[0],
                lib.ones(3) + s,
                s.add_(1),
                lib.stack([s, lib.ones(3)]),
                x.grad,
                own.grad,
                made,
                p * 1,
            )
        ],
        s._is_view(),
        type(view.grad_fn).__name__,
        made.requires_grad,
        made.is_leaf,
        tried([lambda: lib.add(lib.ones(1).as_subclass(Other), 1), lambda: lib.ones(1).as_subclass(int)]),
    )


@case
def handlers_see_the_call(lib: Any) -> Any:
    log: list[Any] = []

    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func.__name__, [t.__name__ for t in types], len(args), kwargs or None))
            return super().__torch_function__(func, types, args, kwargs)

    class Further(Logged):
        pass

    class Duck:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "duck", func.__name__

    t = lib.ones(3).as_subclass(Logged)
    lib.add(t, 1)
    lib.add(t, 2, alpha=3)
    lib.stack([t, t])
    t.add_(1)
    lib.add(t, lib.ones(3).as_subclass(Further))
    lib.mean(t, 0)
    table = {lib.mean: "mine"}
    found: list[Any] = []

    class Looks(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.append(table.get(func))
            return "handled"

    result = lib.mean(lib.ones(2).as_subclass(Looks))
    return log, lib.add(Duck(), 1), lib.mean(Duck()), found, result


@case
def function_modes(lib: Any) -> Any:
    log: list[Any] = []

    class Mode(lib.overrides.TorchFunctionMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.label = name

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((self.label, func.__name__))
            return func(*args, **(kwargs or {}))

    x = lib.ones(2)
    with Mode("outer"):
        lib.add(x, 1)
        with Mode("inner"):
            lib.mul(x, 2)
        with lib._C.DisableTorchFunction():
            lib.add(x, 1)
    lib.add(x, 1)
    return log


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
