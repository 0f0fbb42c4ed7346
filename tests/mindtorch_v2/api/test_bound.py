"""Calls that the native module binds, and the functions in Python behind them: both must do the same."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

if IS_ORACLE:
    pytest.skip("PyTorch binds calls otherwise", allow_module_level=True)

NATIVE: Any = submodule("_native")


def is_bound(fn: Any) -> bool:
    return isinstance(fn, (NATIVE.Function, NATIVE.Method))


A = torch.arange(6.0).reshape(2, 3)
B = torch.ones(2, 3)
# One call each for the kinds of arguments, by position, by name, one by one, left out.
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (torch.add, (A, B), {}),
    (torch.add, (A, 2), {"alpha": 3}),
    (torch.add, (), {"input": A, "other": 2.5}),
    (torch.Tensor.add, (A, B), {"alpha": 2}),
    (torch.sum, (A,), {}),
    (torch.sum, (A, 1), {}),
    (torch.sum, (A, [0, 1], True), {"dtype": torch.float64}),
    (torch.Tensor.sum, (A,), {"axis": 0}),
    (torch.Tensor.max, (A, 1), {}),
    (torch.Tensor.max, (A,), {}),
    (torch.max, (A, B), {}),
    (torch.Tensor.view, (A, 3, 2), {}),
    (torch.Tensor.view, (A, (3, -1)), {}),
    (torch.Tensor.view, (A, torch.int32), {}),
    (torch.Tensor.permute, (A, 1, 0), {}),
    (torch.pow, (A, 2), {}),
    (torch.pow, (2.0, A), {}),
    (torch.clamp, (A,), {"min": 1}),
    (torch.cat, ([A, B],), {}),
    (torch.cat, ((A, B), 1), {}),
    (torch.where, (A > 1, A, 0.0), {}),
    (torch.roll, (A, 1, 0), {}),
    (torch.std, (A,), {"dim": 1, "correction": 0}),
    (torch.quantile, (A, 0.5), {"interpolation": "lower"}),
    (torch.add, (A, True), {}),
    (torch.sum, (A, torch.tensor(1)), {}),
    (torch.add, (A, 2**40), {}),
    (torch.zeros, (2, 3), {}),
    (torch.zeros, ((2, 3),), {"dtype": torch.int64, "device": "cpu"}),
    (torch.zeros, (), {"size": [2], "requires_grad": True}),
    (torch.zeros, (), {"size": (2, 3), "layout": torch.strided, "pin_memory": False}),
    (torch.ones, ([],), {}),
    (torch.zeros, (2,), {"out": torch.ones(3)}),
    (torch.full, ([2], 3), {}),
    (torch.full, ((2,), True), {"device": torch.device("cpu")}),
    (torch.ones_like, (A,), {"dtype": torch.int32}),
    (torch.zeros_like, (), {"input": A, "memory_format": torch.preserve_format}),
    (torch.full_like, (A, 2.5), {}),
    (torch.arange, (5,), {}),
    (torch.arange, (1, 5), {}),
    (torch.arange, (1, 2, 0.25), {"dtype": torch.float64}),
    (torch.arange, (), {"end": 3}),
    (torch.arange, (), {"start": 1, "end": 3}),
    (torch.arange, (4,), {"out": torch.empty(4, dtype=torch.int64)}),
    (torch.eye, (3,), {}),
    (torch.eye, (2, 3), {"dtype": torch.bool}),
    (torch.linspace, (0, 1, 5), {}),
    (torch.linspace, (torch.tensor(0.0), 1, 5), {}),
    (torch.logspace, (0, 1, 3), {"base": 2}),
    (torch.scalar_tensor, (3,), {}),
    (torch.tril_indices, (3, 3), {}),
    (torch.triu_indices, (3, 3, 1), {}),
]
DRAWN: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (torch.rand, (2, 3), {}),
    (torch.rand, ((2, 3),), {"dtype": torch.float64}),
    (torch.randn, (2,), {"generator": torch.Generator().manual_seed(1), "requires_grad": True}),
    (torch.rand_like, (A,), {}),
    (torch.randn_like, (A,), {"dtype": torch.float64, "device": "cpu"}),
    (torch.randint, (10, (2, 3)), {}),
    (torch.randint, (5, 10, (2, 3)), {"dtype": torch.int32}),
    (torch.randint, (), {"low": 5, "high": 10, "size": [2]}),
    (torch.randint_like, (A, 10), {}),
    (torch.randint_like, (A, 5, 10), {}),
    (torch.randperm, (5,), {}),
]
WRONG: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (torch.add, (A,), {}),
    (torch.add, (A, "b"), {}),
    (torch.add, (A, B), {"beta": 1}),
    (torch.add, (A, B), {"other": B}),
    (torch.Tensor.add, (A, B, B, B), {}),
    (torch.sum, (A, 1.5), {}),
    (torch.sum, (A, 7), {}),
    (torch.max, (A, 1.5), {}),
    (torch.cat, ([A, 1],), {}),
    (torch.Tensor.view, (A, 4, 2), {}),
    (torch.Tensor.view, (A, "x"), {}),
    (torch.Tensor.transpose, (A, 0), {}),
    (torch.add, (A, B), {"out": 3}),
    (torch.zeros, (), {}),
    (torch.zeros, (-1,), {}),
    (torch.zeros, (2, "x"), {}),
    (torch.zeros, (2,), {"colour": 1}),
    (torch.arange, (), {}),
    (torch.arange, (0, 5, 0), {}),
    (torch.full, ((2,),), {}),
    (torch.randint, (0, (2,)), {}),
    (torch.eye, (-1,), {}),
]


def outcome(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        result = fn(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return type(result), [(t.dtype, t.shape, t.tolist()) for t in (result if isinstance(result, tuple) else (result,))]


def name(call: Any) -> str:
    return f"{call[0].__name__}-{len(call[1])}-{'-'.join(call[2])}"


@pytest.mark.parametrize("call", CALLS, ids=name)
def test_both_ways_give_the_same(call: Any) -> None:
    fn, args, kwargs = call
    assert is_bound(fn)
    got = outcome(fn, args, kwargs)
    assert got == outcome(fn.written, args, kwargs)
    assert isinstance(got[1], list)


@pytest.mark.parametrize("call", DRAWN, ids=name)
def test_both_ways_draw_the_same(call: Any) -> None:
    fn, args, kwargs = call
    assert is_bound(fn)
    drawn = []
    for way in (fn, fn.written):
        torch.manual_seed(0)
        if "generator" in kwargs:
            kwargs["generator"].manual_seed(1)
        drawn.append(outcome(way, args, kwargs))
    assert drawn[0] == drawn[1] and isinstance(drawn[0][1], list)


@pytest.mark.parametrize("call", WRONG, ids=name)
def test_both_ways_refuse(call: Any) -> None:
    """The words are of the call as it was made, which only the native function knows (bad_calls/test_misfits.py)."""
    fn, args, kwargs = call
    got = outcome(fn, args, kwargs)
    assert got[0] is outcome(fn.written, args, kwargs)[0]
    assert issubclass(got[0], Exception)


def test_out() -> None:
    out = torch.empty(2, 3)
    assert torch.add(A, B, out=out) is out
    assert out.tolist() == (A + B).tolist()
    assert torch.add(A, B, out=None).tolist() == out.tolist()


def test_a_mode_sees_what_was_called() -> None:
    seen: list[Any] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func, len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.add(A, B, alpha=2)
        A.permute(1, 0)
    assert seen == [(torch.add, 2, ["alpha"]), (torch.Tensor.permute, 3, [])]


def test_a_subclass_sees_what_was_called() -> None:
    seen: list[Any] = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    assert type(torch.add(A.as_subclass(Sub), 1)) is Sub
    assert torch.add in seen


def test_factories_ask_for_the_default_device() -> None:
    with torch.device("meta"):
        assert torch.full((2,), 1.0).device.type == "meta"
        for fn, args in ((torch.zeros, (2,)), (torch.arange, (2,)), (torch.arange, (1, 2)), (torch.randn, (2,))):
            assert fn(*args).device.type == "meta"
        assert torch.zeros_like(A).device.type == torch.rand_like(A).device.type == "cpu"
        assert torch.full((2,), 1.0, device=None).device.type == "meta"
        assert torch.full((2,), 1.0, device=torch.device("cpu")).device.type == "cpu"
    assert torch.full((2,), 1.0, requires_grad=True).requires_grad


def test_sparse_layouts_are_none_of_the_usual_calls() -> None:
    assert torch.zeros(2, 2, layout=torch.sparse_coo).layout is torch.sparse_coo
    assert torch.zeros_like(A, layout=torch.sparse_coo).layout is torch.sparse_coo


def test_operators_over_lists_give_the_list_back() -> None:
    given = [A.clone(), B.clone()]
    assert torch._foreach_add_(given, 1) is given and is_bound(torch._foreach_add_)
    assert torch._foreach_mul_(given, [B, B]) is given
    assert torch._foreach_mul_(given, [2.0, 3]) is given
    assert torch._foreach_zero_(tuple(given)) == tuple(given)
    assert isinstance(torch._foreach_add(given, given, alpha=2), tuple)


def test_functions_are_objects_like_others() -> None:
    assert pickle.loads(pickle.dumps(torch.add)) is torch.add
    assert copy.deepcopy(torch.add) is torch.add
    add: Any = torch.add
    assert add.__name__ == "add"
    assert weakref.ref(add)() is add
    assert A.add.__self__ is A and A.add.__func__ is torch.Tensor.add

    class Holder:
        add = torch.add

    assert Holder().add(A, B).tolist() == (A + B).tolist()  # as PyTorch's, it is no method of other classes


def test_something_else_may_run_instead() -> None:
    try:
        torch.add.instead = lambda *args, **kwargs: (args, kwargs)
        assert torch.add(1, b=2) == ((1,), {"b": 2})
    finally:
        torch.add.instead = None
    assert torch.add(A, 1).tolist() == (A + 1).tolist()


def test_forms_are_checked() -> None:
    slot = ("x", 0, False, False, False, False, False, False, None, None)
    op = torch.add.__overloads__.ops[0]
    for forms in (
        (1,),
        ((op, op.call, (slot,) * 25, -1, -1, 0, False),),
        ((op, op.call, (slot,), 1, -1, 0, False),),
        ((op, op.call, (("x", 99, *slot[2:]),), -1, -1, 0, False),),
    ):
        with pytest.raises((TypeError, ValueError)):
            NATIVE.Function(forms, lambda: None)


def test_an_own_function_is_freed() -> None:
    made = NATIVE.Function((), lambda: len)
    assert made([1, 2]) == 2
    made.itself = made
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_threads() -> None:
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(300):
            if torch.add(A, B, alpha=2)[1, 2].item() != 7.0 or tuple(A.view(3, 2).shape) != (3, 2):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
