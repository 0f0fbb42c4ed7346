"""`__torch_dispatch__`: subclasses and modes that see operators below autograd."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

dispatch = submodule("utils._python_dispatch")
pytree = submodule("utils._pytree")
aten = torch.ops.aten
TorchDispatchMode = dispatch.TorchDispatchMode


class Log(TorchDispatchMode):
    """Notes the operators it sees."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name
        self.seen: list[str] = []
        self.calls: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        self.calls.append((func, types, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):
    """Wraps a tensor, and wraps every result."""

    log: list[str] = []

    @staticmethod
    def __new__(cls: Any, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner: Any) -> None:
        self.inner = inner.detach()

    def __repr__(self, **kwargs: Any) -> str:
        return f"Wrapper({self.inner})"

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Wrapper(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append(str(func))
        args, kwargs = (pytree.tree_map_only(Wrapper, lambda w: w.inner, part) for part in (args, kwargs or {}))
        out = func(*args, **kwargs)
        return pytree.tree_map_only(torch.Tensor, lambda t: t if isinstance(t, Wrapper) else Wrapper(t), out)


class Aliasing(Wrapper):
    """As PyTorch asks it of wrappers that are written to and viewed."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain, options = (pytree.tree_map_only(Aliasing, lambda w: w.inner, part) for part in (args, kwargs or {}))
        out = pytree.tree_map_only(torch.Tensor, Aliasing, func(*plain, **options))
        return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, out)


@pytest.fixture(autouse=True)
def empty_log() -> None:
    Wrapper.log.clear()


# -- modes --------------------------------------------------------------------------------------------------------
CALLS: dict[str, tuple[Any, list[str]]] = {
    "x + 1": (lambda x: x + 1, ["aten.add.Tensor"]),
    "1 - x": (lambda x: 1 - x, ["aten.rsub.Scalar"]),
    "x * x": (lambda x: x * x, ["aten.mul.Tensor"]),
    "x ** 2": (lambda x: x**2, ["aten.pow.Tensor_Scalar"]),
    "2 ** x": (lambda x: 2**x, ["aten.pow.Scalar"]),
    "x == 1": (lambda x: x == 1, ["aten.eq.Scalar"]),
    "x == x": (lambda x: x == x, ["aten.eq.Tensor"]),
    "x % 2": (lambda x: x % 2, ["aten.remainder.Scalar"]),
    "sum": (lambda x: x.sum(), ["aten.sum.default"]),
    "sum(0)": (lambda x: x.sum(0), ["aten.sum.dim_IntList"]),
    "mean(1)": (lambda x: x.mean(1), ["aten.mean.dim"]),
    "max(0)": (lambda x: x.max(0), ["aten.max.dim"]),
    "x[0]": (lambda x: x[0], ["aten.select.int"]),
    "x[:, 1:]": (lambda x: x[:, 1:], ["aten.slice.Tensor"]),
    "transpose": (lambda x: x.transpose(0, 1), ["aten.transpose.int"]),
    "view": (lambda x: x.view(-1), ["aten.view.default"]),
    "reshape": (lambda x: x.reshape(-1), ["aten.view.default"]),
    "cat": (lambda x: torch.cat([x, x]), ["aten.cat.default"]),
    "relu_": (lambda x: x.relu_(), ["aten.relu_.default"]),
    "fill_": (lambda x: x.fill_(2), ["aten.fill_.Scalar"]),
    "uniform_": (lambda x: x.uniform_(), ["aten.uniform_.default"]),
    "to": (lambda x: x.to(torch.float64), ["aten._to_copy.default"]),
    "clone": (lambda x: x.clone(), ["aten.clone.default"]),
    "detach": (lambda x: x.detach(), ["aten.detach.default"]),
    "clamp": (lambda x: x.clamp(0, 1), ["aten.clamp.default"]),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1), ["aten.gt.Scalar", "aten.masked_fill.Scalar"]),
    "zeros": (lambda x: torch.zeros(3), ["aten.zeros.default"]),
    "rand": (lambda x: torch.rand(3), ["aten.rand.default"]),
    "lerp": (lambda x: x.lerp(x, 0.5), ["aten.lerp.Scalar"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_modes_see_operators_by_pytorchs_names(name: str) -> None:
    call, expected = CALLS[name]
    x = torch.ones(2, 3)
    with Log() as log:
        call(x)
    assert log.seen == expected


def test_a_mode_gets_arguments_as_written() -> None:
    x = torch.ones(2, 3)
    with Log() as log:
        torch.add(x, x, alpha=3)
        x.expand(4, 2, 3)
        torch.add(x, 2)
    func, types, args, kwargs = log.calls[0]
    assert func is aten.add.Tensor and types == () and args[0] is x and kwargs == {"alpha": 3}
    assert log.calls[1][2][1] == [4, 2, 3] and log.calls[2][2][1] == 2


def test_a_mode_decides_what_comes_back() -> None:
    class Swap(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return (aten.mul.Tensor if func is aten.add.Tensor else func)(*args, **(kwargs or {}))

    with Swap():
        assert (torch.tensor(3.0) + torch.tensor(5.0)).item() == 15.0
    assert (torch.tensor(3.0) + torch.tensor(5.0)).item() == 8.0


def test_the_inner_mode_comes_first() -> None:
    order: list[str] = []

    class Named(Log):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(self.name)
            return super().__torch_dispatch__(func, types, args, kwargs)

    with Named("outer"), Named("inner"):
        torch.ones(2).add(1)
    assert order == ["inner", "outer"] * 2


def test_a_mode_is_off_while_its_handler_runs() -> None:
    class Twice(Log):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = super().__torch_dispatch__(func, types, args, kwargs)
            return result * 2 if func is aten.add.Tensor else result

    x = torch.ones(1)
    with Twice() as mode:
        y = x + 1
    assert y.item() == 4.0 and mode.seen == ["aten.add.Tensor"]


def test_a_mode_leaves_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), Log() as log:
        raise ZeroDivisionError
    torch.ones(2).add(1)
    assert log.seen == [] and dispatch._get_current_dispatch_mode() is None


def test_a_mode_may_be_entered_twice() -> None:
    log = Log()
    with log, log:
        torch.zeros(1)
    with log:
        torch.zeros(1)
    assert log.seen == ["aten.zeros.default"] * 3


def test_a_mode_sees_below_autograd() -> None:
    """Gradients are recorded before the mode is asked, and what it does is not recorded again."""
    x = torch.tensor([3.0], requires_grad=True)

    class Scale(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 100 if func is aten.sin.default else result

    with Scale():
        y = x.sin()
    assert type(y.grad_fn).__name__ == "SinBackward0"
    (grad,) = torch.autograd.grad(y, x)
    assert grad.item() == pytest.approx(x.detach().cos().item())


def test_a_mode_sees_the_backward_pass() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    with Log() as log:
        y.backward()
    assert "aten.mul.Tensor" in log.seen and "aten.expand.default" in log.seen
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_modes_and_no_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    with Log() as log, torch.no_grad():
        y = x * 2
    assert not y.requires_grad and log.seen == ["aten.mul.Tensor"]
    with torch.no_grad(), Log() as log:
        with torch.enable_grad():
            y = x * 2
        z = x * 2
    assert y.requires_grad and not z.requires_grad and log.seen == ["aten.mul.Tensor"] * 2


def test_modes_switched_off_for_a_while() -> None:
    x = torch.ones(2)
    with Log() as log:
        with dispatch._disable_current_modes():
            x + 1
        x * 2
        assert dispatch._get_current_dispatch_mode() is log
    assert log.seen == ["aten.mul.Tensor"]


def test_writes_under_a_mode_count_once() -> None:
    x = torch.zeros(2)
    with Log():
        x.add_(1)
    assert x._version == 1 and x.tolist() == [1.0, 1.0]


def test_views_under_a_mode_are_views() -> None:
    x = torch.zeros(2, 2)
    y = torch.zeros(2, 2, requires_grad=True) * 1
    with Log():
        x.view(-1).add_(1)
        v = y.view(-1)
    v.mul_(3)
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]] and v._base is y
    assert type(y.grad_fn).__name__ == "CopySlices"


def test_not_implemented_goes_to_the_next() -> None:
    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.sin.default'|all __torch_dispatch__ hand"):
        with Refuses():
            torch.ones(2).sin()


@mindtorch_only
def test_functionalized_writes_reach_the_mode_first() -> None:
    x = torch.zeros(2)
    with Log() as log, torch.functionalize():
        x.add_(1)
    assert x.tolist() == [1.0, 1.0] and x._version == 1 and log.seen[0] == "aten.add_.Tensor"


# -- wrapper subclasses -------------------------------------------------------------------------------------------
def test_a_wrapper_has_a_shape_and_no_memory() -> None:
    w = Wrapper(torch.ones(2, 3, dtype=torch.float64).t())
    assert w.shape == (3, 2) and w.stride() == (1, 3) and w.dtype == torch.float64 and w.device.type == "cpu"
    assert isinstance(w, torch.Tensor) and not w.requires_grad and w.numel() == 6


def test_operators_go_to_the_wrapper() -> None:
    w = Wrapper(torch.tensor([1.0, 2.0]))
    y = w * 2 + torch.ones(2)
    assert type(y) is Wrapper and y.inner.tolist() == [3.0, 5.0]
    assert Wrapper.log == ["aten.mul.Tensor", "aten.add.Tensor"]
    assert type(torch.cat([torch.ones(1), w])) is Wrapper
    first, second = w.max(0)
    assert first.inner.item() == 2.0 and second.inner.item() == 1


def test_wrappers_differentiate() -> None:
    w: Any = Wrapper(torch.tensor([1.0, 2.0], requires_grad=True))
    assert w.requires_grad and w.is_leaf
    y = (w * w).sum()
    assert type(y) is Wrapper and type(y.grad_fn).__name__ == "SumBackward0"
    y.backward()
    assert type(w.grad) is Wrapper and w.grad.inner.tolist() == [2.0, 4.0]
    (w * 3).sum().backward()
    assert w.grad.inner.tolist() == [5.0, 7.0]
    (twice,) = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)
    twice.sum().backward()
    assert w.grad.inner.tolist() == [11.0, 19.0]


def test_a_wrapper_gives_its_value() -> None:
    w = Wrapper(torch.tensor(3.0))
    assert w.item() == 3.0 and float(w) == 3.0 and bool(w > 2)
    assert "aten._local_scalar_dense.default" in Wrapper.log


def test_composites_come_apart_before_the_wrapper() -> None:
    w = Wrapper(torch.ones(2, 3))
    w.reshape(-1)
    torch.nn.functional.linear(w, torch.ones(4, 3))
    assert Wrapper.log[0] == "aten.view.default" and "aten.reshape.default" not in Wrapper.log


def test_writes_go_through_to_the_wrapped() -> None:
    w = Aliasing(torch.zeros(2, 2))
    assert w.add_(1) is w and w.inner.tolist() == [[1.0, 1.0], [1.0, 1.0]] and w._version == 1
    out = Aliasing(torch.zeros(2, 2))
    assert torch.add(w, w, out=out) is out and out.inner.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_views_of_wrappers() -> None:
    w = Aliasing(torch.zeros(2, 2))
    v = w.view(-1)
    assert type(v) is Aliasing and v._is_view() and v._base is w
    v.add_(1)
    assert w.inner.tolist() == [[1.0, 1.0], [1.0, 1.0]] and w._version == 1


def test_a_saved_wrapper_that_was_written_to() -> None:
    w: Any = Aliasing(torch.ones(2, requires_grad=True))
    w = w * 1
    y = w * w
    w.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_modes_come_before_wrappers() -> None:
    w = Wrapper(torch.ones(2))
    with Log() as log:
        w + 1
    assert log.seen[0] == "aten.add.Tensor" and log.calls[0][1] == (Wrapper,)
    assert Wrapper.log == ["aten.add.Tensor"]


def test_traceable_wrappers() -> None:
    w = Wrapper(torch.ones(2))
    assert dispatch.is_traceable_wrapper_subclass(w)
    assert not dispatch.is_traceable_wrapper_subclass(torch.ones(2))
    doubled = dispatch.transform_subclass(w, lambda name, inner: inner * 2)
    assert type(doubled) is Wrapper and doubled.inner.tolist() == [2.0, 2.0]


# -- subclasses with memory ---------------------------------------------------------------------------------------
class Counting(torch.Tensor):
    """Has memory of its own and counts what is done with it."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    seen: list[str] = []

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        with torch._C._DisableTorchDispatch():
            return func(*args, **(kwargs or {}))


def test_subclasses_with_memory() -> None:
    Counting.seen.clear()
    x = torch.Tensor._make_subclass(Counting, torch.tensor([1.0, 2.0]), True)
    y = (x * 2).sum()
    y.backward()
    assert y.item() == 6.0 and x.grad.tolist() == [2.0, 2.0]
    assert Counting.seen[0] == "aten.mul.Tensor"


# -- trees --------------------------------------------------------------------------------------------------------
TREES: list[Any] = [3, [1, 2], (1, (2, [3])), {"a": 1, "b": [2, {"c": 3}]}, [], {}, None, [None, (1,)]]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_trees_come_apart_and_together(tree: Any) -> None:
    leaves, spec = pytree.tree_flatten(tree)
    assert pytree.tree_unflatten(leaves, spec) == tree and spec.num_leaves == len(leaves)
    assert pytree.tree_leaves(tree) == leaves and pytree.tree_structure(tree) == spec


def test_maps_over_trees() -> None:
    tree = {"a": 1, "b": (2.0, ["x", 3])}
    assert pytree.tree_map_only(int, lambda i: i + 1, tree) == {"a": 2, "b": (2.0, ["x", 4])}
    assert pytree.tree_map(lambda a, b: a + b, [1, (2, 3)], [10, (20, 30)]) == [11, (22, 33)]
    assert pytree.tree_any(lambda leaf: leaf == "x", tree) and not pytree.tree_all(lambda leaf: leaf == "x", tree)
    assert pytree.tree_map(str, [(1, 2), 3], is_leaf=lambda t: isinstance(t, tuple)) == ["(1, 2)", "3"]
    with pytest.raises(ValueError, match="tree_unflatten|has length 1"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2]))
