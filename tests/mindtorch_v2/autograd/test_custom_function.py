"""Custom functions, and what follows them through the graph.

Invariant: everything here also holds for PyTorch (run with MINDTORCH_TEST_SUBJECT=torch), and needs no oracle.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

autograd: Any = submodule("autograd")


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


class Square(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 2 * x


class Scale(autograd.Function):
    """forward without ctx, with setup_context; a non-tensor argument."""

    @staticmethod
    def forward(x: Any, factor: float) -> Any:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.factor = inputs
        assert isinstance(output, torch.Tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.factor, None


class Pair(autograd.Function):
    seen: list[Any] = []

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.needs = ctx.needs_input_grad
        return x + y, x * 1

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        Pair.seen.append((ctx.needs, None if second is None else second.tolist()))
        return first + (0 if second is None else second), first


class PairOfNone(Pair):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return Pair.forward(ctx, x, y)


class AddInPlace(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 7


class Sorted(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        index = x.detach().argmax()
        ctx.mark_non_differentiable(index)
        return x * 2, index

    @staticmethod
    def backward(ctx: Any, gradient: Any, unused: Any) -> Any:
        return gradient * 2


class Once(autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Any) -> Any:
        assert not torch.is_grad_enabled()
        return gradient * 2 * ctx.saved_tensors[0]


def test_function_forward_and_backward() -> None:
    a = leaf(1, 2, 3)
    y = Square.apply(a)
    assert y.tolist() == [1, 4, 9]
    assert type(y.grad_fn).__name__ == "SquareBackward"
    y.sum().backward()
    assert a.grad.tolist() == [2, 4, 6]


def test_function_is_twice_differentiable_when_its_backward_is() -> None:
    a = leaf(3)
    (g,) = autograd.grad(Square.apply(a), a, create_graph=True)
    (gg,) = autograd.grad(g, a)
    assert gg.tolist() == [2]


def test_function_setup_context() -> None:
    a = leaf(1, 2)
    Scale.apply(a, 5.0).sum().backward()
    assert a.grad.tolist() == [5, 5]


def test_function_needs_input_grad_and_materialized_grads() -> None:
    Pair.seen.clear()
    a, b = leaf(1, 2), torch.ones(2, dtype=torch.float64)
    first, _ = Pair.apply(a, b)
    first.sum().backward()
    first, _ = PairOfNone.apply(a, b)
    first.sum().backward()
    assert Pair.seen == [((True, False), [0, 0]), ((True, False), None)]


def test_function_mark_dirty() -> None:
    a = leaf(1, 2)
    hidden = a * 1
    result = AddInPlace.apply(hidden)
    assert result is hidden
    # One for add_, one for mark_dirty.
    assert hidden._version == 2
    assert type(hidden.grad_fn).__name__ == "AddInPlaceBackward"
    hidden.sum().backward()
    assert a.grad.tolist() == [7, 7]


def test_function_mark_dirty_of_a_leaf_raises() -> None:
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation."
    ):
        AddInPlace.apply(leaf(1))


def test_function_mark_non_differentiable() -> None:
    a = leaf(1, 3, 2)
    value, index = Sorted.apply(a)
    assert value.requires_grad and not index.requires_grad
    assert index.item() == 1
    value.sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_function_once_differentiable() -> None:
    a = leaf(3)
    (g,) = autograd.grad(Once.apply(a).sum(), a, create_graph=True)
    assert g.tolist() == [6]
    with pytest.raises(RuntimeError):
        autograd.grad(g.sum(), a)


def test_function_without_grad_records_nothing() -> None:
    assert Square.apply(torch.ones(2)).grad_fn is None
    with torch.no_grad():
        assert Square.apply(leaf(1)).grad_fn is None


def test_function_forward_runs_without_recording() -> None:
    modes: list[bool] = []

    class Look(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            modes.append(torch.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            modes.append(torch.is_grad_enabled())
            return gradient

    Look.apply(leaf(1)).sum().backward()
    (g,) = autograd.grad(Look.apply(a := leaf(1)).sum(), a, create_graph=True)
    assert modes == [False, False, False, True]


def test_function_saved_tensors_are_checked_and_freed() -> None:
    a = leaf(1, 2)
    hidden = a * 1
    y = Square.apply(hidden)
    hidden.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = Square.apply(a)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_function_returning_its_input_unchanged() -> None:
    class Identity(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 3

    a = leaf(1)
    y = Identity.apply(a)
    assert y is not a
    y.sum().backward()
    assert a.grad.tolist() == [3]


def test_function_view_of_input_written_in_place() -> None:
    class View(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.view(1, 1)

    a = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    y = View.apply(a * 1)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        y.add_(1)


def test_error_in_backward_reaches_the_caller_unchanged() -> None:
    class Fails(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(leaf(1)).sum().backward()
    a = leaf(1)
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2]


# gradcheck ------------------------------------------------------------------------------------------------------------


def test_gradcheck_accepts_right_and_refuses_wrong_derivatives() -> None:
    a = leaf(0.5, 1.5)
    assert autograd.gradcheck(lambda x: x.sin() * x, (a,))
    assert autograd.gradcheck(Square.apply, (a,))
    assert autograd.gradgradcheck(Square.apply, (a,))

    class Wrong(Square):
        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 3 * ctx.saved_tensors[0]

    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        autograd.gradcheck(Wrong.apply, (a,))
    assert autograd.gradcheck(Wrong.apply, (a,), raise_exception=False) is False


# threads and size -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_fast_gradcheck(dtype: str) -> None:
    x = torch.tensor([0.5, 1.0, 2.0], dtype=getattr(torch, dtype), requires_grad=True)
    w = torch.tensor([[1.0, 2.0, 3.0]], dtype=getattr(torch, dtype), requires_grad=True)
    for fn in (
        lambda x, w: (x * w).sin(),
        lambda x, w: (x.exp(), w.sum(), x.detach()),
        lambda x, w: x.view(3) * 2,
        lambda x, w: x.real * 1,
    ):
        assert autograd.gradcheck(fn, (x, w), fast_mode=True)
        assert autograd.gradgradcheck(fn, (x, w), fast_mode=True)


def test_fast_gradcheck_finds_wrong_derivatives() -> None:
    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0") as error:
        autograd.gradcheck(Wrong.apply, (x,), fast_mode=True)
    for text in ("computed \nin fast mode", "Numerical:\n", "Analytical:\n", "The max per-element difference"):
        assert text in str(error.value)
    assert not autograd.gradcheck(Wrong.apply, (x,), fast_mode=True, raise_exception=False)
    assert x.tolist() == [1, 2]


def test_backward_inside_backward() -> None:
    class Inner(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            with torch.enable_grad():
                b = torch.ones(1, dtype=torch.float64, requires_grad=True)
                (b * b).sum().backward()
            return gradient * b.grad

    a = leaf(1)
    Inner.apply(a).sum().backward()
    assert a.grad.tolist() == [2]


def test_concurrent_backward_on_separate_graphs() -> None:
    results: dict[int, list[float]] = {}
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            a = leaf(float(number))
            for _ in range(20):
                a.grad = None
                y = a
                for _ in range(20):
                    y = y * 1.5
                y.sum().backward()
            results[number] = a.grad.tolist()
        except BaseException as error:  # handed to the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert results == {number: [pytest.approx(1.5**20)] for number in range(4)}


def test_concurrent_backward_into_one_leaf() -> None:
    a = leaf(1)
    hidden = a * 1

    def work() -> None:
        for _ in range(50):
            (hidden + 1).sum().backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert a.grad.tolist() == [200]


def test_chain_of_100_000_operators() -> None:
    a = leaf(1)

    def run(length: int) -> float:
        start = time.perf_counter()
        y = a
        for _ in range(length):
            y = y * 1.0
        y.sum().backward()
        del y
        return time.perf_counter() - start

    run(100)
    short, long = run(10_000), run(100_000)
    assert a.grad.item() == 3
    # Linear would be 10. A busy machine and the cost of freeing need some room; a square law does not fit in it.
    assert long < 40 * short + 1.0


def test_a_wide_graph() -> None:
    a = leaf(1)
    total = sum((a * float(i) for i in range(2000)), torch.zeros(1, dtype=torch.float64))
    total.backward()
    assert a.grad.item() == sum(range(2000))


def test_the_graph_is_freed_with_its_last_tensor() -> None:
    a = leaf(1, 2)

    class Token:
        pass

    token = Token()
    alive = weakref.ref(token)
    hidden = a * 2
    hidden.token = token
    y = (hidden * hidden).sum()
    del hidden, token
    y.backward()
    del y
    gc.collect()
    assert alive() is None


def test_a_leaf_and_its_accumulator_are_freed() -> None:
    a = leaf(1)
    alive = weakref.ref(a)
    y = (a * 2).sum()
    y.backward()
    del a, y
    gc.collect()
    assert alive() is None
