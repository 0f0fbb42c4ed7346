"""`gradcheck` of functions that look at their arguments, and of tensors whose class computes."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

gradcheck = torch.autograd.gradcheck
Function = torch.autograd.Function


class Pair(Function):
    """Two copies; keeps what it was given, and what forward mode gave it."""

    seen: list[bool] = []
    tangents: list[bool] = []

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        if submodule("autograd.forward_ad")._current_level >= 0:
            Pair.seen += [x.requires_grad, y.requires_grad]
        return x.clone(), y.clone()

    @staticmethod
    def jvp(ctx: Any, x_t: Any, y_t: Any) -> Any:
        Pair.tangents += [x_t is not None, y_t is not None]
        return x_t, y_t


@pytest.mark.parametrize("fast", [False, True])
def test_forward_mode_alone_is_asked(fast: bool) -> None:
    Pair.seen, Pair.tangents = [], []
    x, y = (torch.rand(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(
        Pair.apply, (x, y), check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False, fast_mode=fast
    )
    assert Pair.seen and not any(Pair.seen) and all(Pair.tangents)


class Wrong(Function):
    """Both derivatives raise."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def jvp(ctx: Any, x_t: Any) -> Any:
        raise RuntimeError("forward mode")

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise RuntimeError("backward mode")


def test_backward_is_looked_at_first() -> None:
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="backward mode"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_batched_grad=False)
    with pytest.raises(RuntimeError, match="forward mode"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False)


class Strict(Function):
    """Cannot do without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 10

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if g is None:
            raise RuntimeError("x is undefined")
        return g * 10


def test_undefined_gradients_are_warned_of() -> None:
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="Backwards compatibility: New undefined gradient support"):
        with pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"):
            gradcheck(Strict.apply, (x,))


class Wrapper(torch.Tensor):
    """A tensor that another one computes for."""

    @staticmethod
    def __new__(cls: Any, elem: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, requires_grad=elem.requires_grad
        )
        made.elem = elem.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        pytree = submodule("utils._pytree")
        out = func(*pytree.tree_map(lambda t: t.elem if isinstance(t, cls) else t, tuple(args)), **(kwargs or {}))
        return pytree.tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, out)

    __torch_function__ = submodule("_C")._disabled_torch_function_impl


@pytest.mark.parametrize("fast", [False, True])
def test_tensors_whose_class_computes(fast: bool) -> None:
    x = Wrapper(torch.rand(2, 2, dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda t: t * t.exp(), (x,), fast_mode=fast)
