"""`torch.overrides`: `__torch_function__` of subclasses and tensor-like classes, and modes."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

COMPILED = not IS_ORACLE and not str(submodule("_device").__file__).endswith(".py")

overrides = submodule("overrides")


class Logging(torch.Tensor):
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


class Mode(overrides.TorchFunctionMode):
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


# -- objects that are no tensors ----------------------------------------------------------------------------------
class Foreign:
    """Answers every call with what it was told of it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, [t.__name__ for t in types], len(args)


OTHER = ["Foreign"]
BOTH = ["Tensor", "Foreign"]
# The reflected operators that PyTorch has written in C answer with the name of what they call.
OPERATORS: dict[str, tuple[str, list[str]]] = {
    "add": ("add", OTHER),
    "radd": ("add", OTHER),
    "sub": ("sub", OTHER),
    "rsub": ("__rsub__", BOTH),
    "mul": ("mul", OTHER),
    "rmul": ("mul", OTHER),
    "truediv": ("div", OTHER),
    "div": ("div", OTHER),
    "floordiv": ("__floordiv__", BOTH),
    "rfloordiv": ("__rfloordiv__", BOTH),
    "mod": ("remainder", OTHER),
    "rmod": ("__rmod__", BOTH),
    "pow": ("pow", BOTH),
    "rpow": ("__rpow__", BOTH),
    "matmul": ("matmul", OTHER),
    "rmatmul": ("__rmatmul__", BOTH),
    "and": ("__and__", OTHER),
    "rand": ("bitwise_and", OTHER),
    "or": ("__or__", OTHER),
    "ror": ("bitwise_or", OTHER),
    "xor": ("__xor__", OTHER),
    "rxor": ("bitwise_xor", OTHER),
    "lshift": ("__lshift__", OTHER),
    "rshift": ("__rshift__", OTHER),
    "rlshift": ("__rlshift__", BOTH),
    "rrshift": ("__rrshift__", BOTH),
    "eq": ("eq", OTHER),
    "ne": ("ne", OTHER),
    "lt": ("lt", OTHER),
    "le": ("le", OTHER),
    "gt": ("gt", OTHER),
    "ge": ("ge", OTHER),
    "iadd": ("add_", OTHER),
    "isub": ("sub_", OTHER),
    "imul": ("mul_", OTHER),
    "itruediv": ("div_", OTHER),
    "idiv": ("div_", OTHER),
    "ifloordiv": ("floor_divide_", OTHER),
    "imod": ("remainder_", OTHER),
    "ipow": ("pow_", BOTH),
    "iand": ("__iand__", OTHER),
    "ior": ("__ior__", OTHER),
    "ixor": ("__ixor__", OTHER),
    "ilshift": ("__ilshift__", OTHER),
    "irshift": ("__irshift__", OTHER),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_ask_their_other_operand(name: str) -> None:
    called, types = OPERATORS[name]
    assert getattr(torch.ones(2), f"__{name}__")(Foreign()) == (called, types, 2)


@pytest.mark.parametrize("name", [*OPERATORS, "rdiv", "rtruediv"])
def test_operators_do_not_know_other_types(name: str) -> None:
    t = torch.ones(2, dtype=torch.int64)
    for other in (object(), "a", None, [1, 2]):
        try:
            assert getattr(t, f"__{name}__")(other) is NotImplemented
        except TypeError:
            # A slot of a compiled class, called by name, asks the other operand itself, and refuses when that does.
            assert COMPILED


def test_reflected_operators_of_others_come_after() -> None:
    class Reflected:
        def __radd__(self, other: Any) -> str:
            return "radd"

        def __rmatmul__(self, other: Any) -> str:
            return "rmatmul"

    assert torch.ones(2) + Reflected() == "radd" and torch.ones(2) @ Reflected() == "rmatmul"
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for @: 'object' and 'Tensor'"):
        object() @ torch.ones(2)


T = torch.ones(3)
F = Foreign()


@pytest.mark.parametrize(
    "call, name, types",
    [
        (lambda: torch.add(F, T), "add", OTHER),
        (lambda: torch.add(T, F, out=F), "add", OTHER),
        (lambda: torch.add(T, 1, out=F), "add", OTHER),
        (lambda: torch.cat([T, F]), "cat", OTHER),
        (lambda: torch.stack((F,)), "stack", OTHER),
        (lambda: torch.hstack([T, F]), "hstack", OTHER),
        (lambda: T[F], "__getitem__", OTHER),
        (lambda: T[0, F], "__getitem__", OTHER),
        (lambda: T[[F]], "__getitem__", OTHER),
        (lambda: T.expand(F), "expand", OTHER),
        (lambda: T.view(F), "view", OTHER),
        (lambda: T.to(F), "to", OTHER),
        (lambda: T.type_as(F), "type_as", OTHER),
        (lambda: torch.where(F, T, T), "where", OTHER),
        (lambda: torch.max(F), "max", OTHER),
        (lambda: torch.linalg.norm(F), "linalg_norm", OTHER),
        (lambda: torch.linalg.multi_dot([T, F]), "linalg_multi_dot", OTHER),
        (lambda: torch._foreach_add([T, F], 1), "_foreach_add", OTHER),
        (lambda: torch.numel(F), "numel", OTHER),
        (lambda: torch.broadcast_tensors(T, F), "broadcast_tensors", BOTH),
        (lambda: torch.atleast_1d(T, F), "atleast_1d", BOTH),
        (lambda: torch.block_diag(T, F), "block_diag", BOTH),
        (lambda: torch.einsum("i,i", T, F), "einsum", BOTH),
        (lambda: torch.autograd.grad(F, T), "grad", ["Foreign", "Tensor"]),
        (lambda: torch.autograd.grad([T.sum()], [F]), "grad", BOTH),
        (lambda: torch.autograd.backward(F), "backward", OTHER),
        (lambda: torch.autograd.backward([F]), "backward", OTHER),
        (lambda: torch.autograd.backward(T.sum(), inputs=[F]), "backward", BOTH),
    ],
)
def test_calls_ask_what_is_no_tensor(call: Any, name: str, types: list[str]) -> None:
    assert call()[:2] == (name, types)


def test_assignments_ask_key_and_value() -> None:
    before = T.tolist()
    T[F] = 1
    T[0] = F
    T[F, 0] = 1
    assert T.tolist() == before


def test_a_handlers_own_error_is_its_answer() -> None:
    class Refusing:
        asked = 0

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.asked += 1
            raise TypeError("mine")

    for call in (lambda: torch.add(T, Refusing()), lambda: torch.cat([T, Refusing()]), lambda: T[Refusing()]):
        Refusing.asked = 0
        with pytest.raises(TypeError, match="mine"):
            call()
        assert Refusing.asked == 1


def test_nobody_is_asked_while_overrides_are_off() -> None:
    with torch._C.DisableTorchFunctionSubclass():
        for call in (lambda: T + F, lambda: torch.cat([T, F]), lambda: T[F]):
            with pytest.raises((TypeError, IndexError)):
                call()


def test_a_tensor_is_indexed_with_one_of_a_subclass() -> None:
    key = logging([0, 1])
    Logging.log.clear()
    assert type(torch.ones(3)[key]) is Logging and Logging.log == [torch.Tensor.__getitem__]
    assert type(torch.ones(3, 3)[0, key]) is Logging


def test_a_mode_sees_indexing_as_a_whole() -> None:
    t = torch.ones(3)
    with Mode() as mode:
        t[0]
        t[1] = 2.0
    assert mode.seen == [torch.Tensor.__getitem__, torch.Tensor.__setitem__]


class Written:
    """Like a tensor; keeps how it was called."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, [a for a in args if not isinstance(a, Written)], kwargs or {}


WRITTEN: list[tuple[str, list[Any]]] = [
    ("torch.sum(x, -1)", [-1]),
    ("torch.sum(x, (-1, 0))", [(-1, 0)]),
    ("torch.mean(x, 1, True)", [1, True]),
    ("torch.flip(x, [0])", [[0]]),
    ("torch.permute(x, [1, 0])", [[1, 0]]),
    ("torch.linalg.solve(x, x)", []),
    ("torch.linalg.cholesky(x)", []),
    ("torch.linalg.norm(x, 2, 0)", [2, 0]),
    ("torch.fft.fft(x, 4)", [4]),
]


@pytest.mark.parametrize(("line", "given"), WRITTEN)
def test_a_handler_gets_the_public_function_and_what_was_written(line: str, given: list[Any]) -> None:
    func, args, kwargs = eval(line, {"torch": torch, "x": Written()})
    assert func == eval(line.partition("(")[0], {"torch": torch})
    assert args == given and not kwargs


METHODS: list[tuple[str, list[Any]]] = [
    ("x.sum(-1)", [-1]),
    ("x.view(3, 2)", [3, 2]),
    ("x.view([3, 2])", [[3, 2]]),
    ("x.permute(1, 0)", [1, 0]),
    ("x.flip(0)", [0]),
    ("x.expand(2, 3)", [2, 3]),
    ("x.reshape((6,))", [(6,)]),
]


@pytest.mark.parametrize(("line", "given"), METHODS)
def test_a_subclass_gets_what_was_written(line: str, given: list[Any]) -> None:
    class Keeping(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return list(args[1:])

    assert eval(line, {"x": torch.ones(2, 3).as_subclass(Keeping)}) == given


# -- functions that are written in Python -------------------------------------------------------------------------
class Told:
    """No tensor, but it has a handler."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func


NNF = torch.nn.functional


@pytest.mark.parametrize(
    "call",
    [
        lambda: (NNF.relu(Told()), NNF.relu),
        lambda: (NNF.relu(input=Told()), NNF.relu),
        lambda: (NNF.linear(torch.ones(2), Told()), NNF.linear),
        lambda: (NNF.layer_norm(torch.ones(2), [2], bias=Told()), NNF.layer_norm),
        lambda: (NNF.pad(torch.ones(2), (1, Told())), NNF.pad),
        lambda: (torch.meshgrid(torch.ones(2), Told()), torch.meshgrid),
        lambda: (torch.broadcast_tensors(torch.ones(2), Told()), torch.broadcast_tensors),
    ],
)
def test_handlers_are_asked_wherever_they_stand(call: Any) -> None:
    found, expected = call()
    assert found is expected


def test_a_public_function_is_a_function_to_those_who_look_at_it() -> None:
    import copy
    import inspect
    import pickle
    import weakref

    class Layer:
        act = NNF.relu

    assert list(inspect.signature(NNF.relu).parameters) == ["input", "inplace"]
    assert NNF.relu.__name__ == "relu" and NNF.relu.__module__.endswith("nn.functional")
    assert pickle.loads(pickle.dumps(NNF.relu)) is NNF.relu and copy.deepcopy(NNF.relu) is NNF.relu
    assert "def relu(" in inspect.getsource(NNF.relu) and weakref.ref(NNF.relu)() is NNF.relu
    with pytest.raises((TypeError, AttributeError)):
        Layer().act()  # bound, as functions are: there is no tensor among its arguments


def test_operators_called_by_their_schema_are_shown_themselves() -> None:
    x = torch.ones(2).as_subclass(Logging)
    aten = torch.ops.aten
    calls = [
        (aten.sin.default, (x,), {}),
        (aten.sin, (x,), {}),
        (aten.sin.out, (torch.ones(2),), {"out": x}),
        (aten.cat, ([x, x],), {}),
        (aten.sum.dim_IntList, (), {"self": x, "dim": [0]}),
    ]
    for function, args, kwargs in calls:
        Logging.log.clear()
        result = function(*args, **kwargs)
        assert isinstance(result, Logging)
        assert len(Logging.log) == 1 and Logging.log[0] is function


def test_modes_are_shown_operators_called_by_their_schema() -> None:
    seen: list[Any] = []

    class Seeing(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seeing():
        torch.ops.aten.zeros.default([2])
        torch.ops.aten.zeros([2])
    assert seen == [torch.ops.aten.zeros.default, torch.ops.aten.zeros]
