"""`torch.overrides`: `__torch_function__` of subclasses and tensor-like classes, and modes."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

overrides = submodule("overrides")


class Logging(torch.Tensor):  # type: ignore[misc]
    log: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


class Diagonal:
    """Like a tensor, without being one (from PyTorch's documentation)."""

    handled: dict[Any, Any] = {}

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in cls.handled or not all(issubclass(t, (torch.Tensor, Diagonal)) for t in types):
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


Diagonal.handled[torch.mean] = lambda d: d.value / d.n
Diagonal.handled[torch.add] = lambda a, b: ("added", type(a).__name__, type(b).__name__)


class Mode(overrides.TorchFunctionMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def empty_log() -> None:
    Logging.log.clear()


def logging(values: Any) -> Any:
    return torch.tensor(values).as_subclass(Logging)


# -- subclasses ---------------------------------------------------------------------------------------------------
CALLS: dict[str, tuple[Any, Any]] = {
    "torch.add": (lambda x: torch.add(x, 1), lambda: torch.add),
    "Tensor.add": (lambda x: x.add(1), lambda: torch.Tensor.add),
    "operator": (lambda x: x + 1, lambda: torch.Tensor.add),
    "torch.sum": (lambda x: torch.sum(x), lambda: torch.sum),
    "Tensor.sum": (lambda x: x.sum(), lambda: torch.Tensor.sum),
    "view": (lambda x: x.view(-1), lambda: torch.Tensor.view),
    "add_": (lambda x: x.add_(1), lambda: torch.Tensor.add_),
    "torch.cat": (lambda x: torch.cat([x, x]), lambda: torch.cat),
    "index": (lambda x: x[0], lambda: torch.Tensor.__getitem__),
    "torch.where": (lambda x: torch.where(x > 0, x, x), lambda: torch.where),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_subclass_sees_what_was_called(name: str) -> None:
    call, expected = CALLS[name]
    call(logging([1.0, 2.0]))
    assert Logging.log[-1] is expected()


def test_results_are_of_the_subclass() -> None:
    x = logging([[1.0, 2.0], [3.0, 4.0]])
    assert type(x + 1) is Logging and type(x[0]) is Logging and type(x.max(0)[1]) is Logging
    assert all(type(part) is Logging for part in x.split(1))
    x[0] = 5
    assert Logging.log[-1] is torch.Tensor.__setitem__ and x.tolist()[0] == [5.0, 5.0]


def test_handlers_see_each_call_once() -> None:
    x = logging([1.0, 2.0])
    torch.nn.functional.softmax(x, 0)
    assert len(Logging.log) == 1


def test_switched_off() -> None:
    x = logging([1.0])
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
    assert Logging.log == [] and type(x + 1) is Logging


# -- tensor-like classes --------------------------------------------------------------------------------------------
def test_tensor_like_classes() -> None:
    d = Diagonal(4, 2.0)
    assert torch.mean(d) == 0.5
    assert torch.add(d, torch.ones(2)) == ("added", "Diagonal", "Tensor")
    assert torch.add(torch.ones(2), d) == ("added", "Tensor", "Diagonal")
    assert overrides.is_tensor_like(d) and overrides.is_tensor_like(torch.ones(1)) and not overrides.is_tensor_like(3)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.sin'|no implementation found for"):
        torch.sin(d)


def test_a_function_of_ones_own() -> None:
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def combine(a: Any, b: Any = None) -> Any:
        return "plain"

    Diagonal.handled[combine] = lambda a, b=None: "handled"
    assert combine(1) == combine(torch.ones(1)) == "plain"
    assert combine(Diagonal(1, 1.0)) == combine(1, Diagonal(1, 1.0)) == "handled"


def test_has_and_handle() -> None:
    d = Diagonal(2, 1.0)
    assert overrides.has_torch_function((1, d)) and not overrides.has_torch_function((1, torch.ones(1)))
    assert overrides.has_torch_function_unary(d) and overrides.has_torch_function_variadic(1, d)
    assert overrides.handle_torch_function(torch.mean, (d,), d) == 0.5


# -- modes --------------------------------------------------------------------------------------------------------
def test_modes_see_plain_tensors_and_factories() -> None:
    x = torch.ones(2)
    with Mode() as mode:
        torch.add(x, 1)
        x.add(1)
        torch.zeros(2)
    assert mode.seen == [torch.add, torch.Tensor.add, torch.zeros]


def test_modes_nest_and_end() -> None:
    with Mode() as outer, Mode() as inner:
        torch.zeros(1)
        assert overrides._get_current_function_mode() is inner
    torch.zeros(1)
    assert outer.seen == inner.seen == [torch.zeros] and overrides._get_current_function_mode() is None


def test_a_mode_may_be_entered_twice() -> None:
    mode = Mode()
    with mode, mode:
        torch.zeros(1)
    with mode:
        torch.zeros(1)
    assert mode.seen == [torch.zeros] * 3


def test_a_mode_keeps_other_modes_as_they_are_left() -> None:
    try:
        with Mode():
            torch.set_grad_enabled(False)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_modes_switched_off() -> None:
    with Mode() as mode:
        with torch._C.DisableTorchFunction():
            torch.zeros(1)
        assert mode.seen == []
        with torch._C.DisableTorchFunctionSubclass():
            torch.zeros(1)
    assert mode.seen == [torch.zeros]


def test_the_mode_comes_before_the_subclass() -> None:
    x = logging([1.0])
    with Mode() as mode:
        y = x.sin()
    assert mode.seen[0] is torch.Tensor.sin and Logging.log[0] is torch.Tensor.sin and type(y) is Logging


def test_a_base_mode_changes_nothing() -> None:
    with overrides.BaseTorchFunctionMode():
        assert torch.ones(2).add(1).tolist() == [2.0, 2.0]


# -- names --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("get", "expected"),
    [
        (lambda: torch.add, "torch.add"),
        (lambda: torch.Tensor.add, "torch.Tensor.add"),
        (lambda: torch.Tensor.__add__, "torch.Tensor.__add__"),
        (lambda: torch.Tensor.add_, "torch.Tensor.add_"),
        (lambda: torch.zeros, "torch.zeros"),
        (lambda: torch.nn.functional.dropout, "torch.nn.functional.dropout"),
        (lambda: torch.ops.aten.add.Tensor, "aten.add.Tensor"),
        (lambda: len, None),
    ],
)
def test_names_are_resolved(get: Any, expected: str | None) -> None:
    assert overrides.resolve_name(get()) == expected


def test_what_can_be_overridden() -> None:
    found = overrides.get_overridable_functions()
    assert torch.add in found[torch] and torch.Tensor.add in found[torch.Tensor]
    assert torch.is_tensor not in found[torch] and torch.is_tensor in overrides.get_ignored_functions()
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(torch.add)
    assert overrides.get_testing_overrides()[torch.sin](torch.ones(1)) == -1
