"""Handlers of subclasses and modes, and kernels of libraries: what they may return, and how they end.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ..autograd._cases import Cases

case = Cases()
pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators")


def dispatching(lib: Any, handler: Any) -> Any:
    """A subclass whose operators go to `handler(cls, func, types, args, kwargs)`."""
    body = {
        "__new__": staticmethod(lambda cls, data, grad=False: lib.Tensor._make_subclass(cls, data, grad)),
        "__torch_function__": lib._C._disabled_torch_function_impl,
        "__torch_dispatch__": classmethod(handler),
    }
    return type("Sub", (lib.Tensor,), body)


@case
def a_handler_that_asks_the_default_one(lib: Any) -> Any:
    seen: list[str] = []

    def handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(str(func))
        return lib.Tensor.__torch_dispatch__(func, types, args, kwargs)

    sub = dispatching(lib, handler)
    x = lib.ones(2)
    s = sub(x, True)
    (s * 2).sum().backward()
    kinds = [type(t).__name__ for t in (sub(x) + sub(x), lib.cat([sub(x), x]), sub(x).view(2, 1), sub(x)[0])]
    return kinds, seen, (s * 2).requires_grad, s.grad.tolist()


@case
def what_a_handler_may_return(lib: Any) -> Any:
    def giving(value: Any) -> Any:
        return dispatching(lib, lambda cls, func, types, args=(), kwargs=None: value)(lib.zeros(1))

    return tried(
        [
            lambda: giving("no").neg(),
            lambda: giving(3).add_(1),
            lambda: giving("no").split(1),
            lambda: giving("no").max(0),
            lambda: giving([lib.ones(1), "a"]).neg(),
            lambda: giving([lib.ones(1), "a"]).max(0),
            lambda: giving(None).neg(),
            lambda: giving(lib.ones(3)).neg(),
        ]
    )


@case
def handlers_of_modes_are_plain_methods(lib: Any) -> Any:
    def passing(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    def inside(base: Any, name: str, kind: Any) -> Any:
        with type("Mode", (base,), {name: kind(passing)})():
            return lib.ones(2) + 1

    dispatch, function = lib.utils._python_dispatch.TorchDispatchMode, lib.overrides.TorchFunctionMode
    return tried(
        [
            lambda: inside(dispatch, "__torch_dispatch__", classmethod),
            lambda: inside(dispatch, "__torch_dispatch__", lambda f: f),
            lambda: inside(function, "__torch_function__", classmethod),
            lambda: inside(function, "__torch_function__", lambda f: f),
        ]
    )


@case
def subclasses_in_indices_and_values(lib: Any) -> Any:
    seen: list[str] = []

    def handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(func.__name__)

    sub = type("Asked", (lib.Tensor,), {"__torch_function__": classmethod(handler)})
    a, t = lib.ones(3), sub([1.0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using a non-tuple sequence")
        results = [a[[t, t]], a[t], a[t, t], a[(t,)]]
        for key in ([t, t], t, (t, 1)):
            a[key] = 1
    a[0] = t
    return results, seen, a


@case
def kernels_end_with_their_library(lib: Any) -> Any:
    x = lib.tensor([1, 2])
    library = lib.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once in a process, by whichever test is first
        library.impl("aten::cumsum", lambda self, dim, **options: self.clone(), "CPU")
    changed = x.cumsum(0)
    del library
    own = lib.library.Library("handler_cases", "DEF")
    own.define("twice(Tensor x) -> Tensor")
    own.impl("twice", lambda x: x * 2, "CPU")
    twice = lib.ops.handler_cases.twice(x)
    del own
    again = lib.library.Library("handler_cases", "DEF")
    again.define("twice(Tensor x) -> Tensor")
    return changed, x.cumsum(0), twice


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
