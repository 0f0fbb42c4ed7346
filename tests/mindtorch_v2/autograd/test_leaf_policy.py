"""`Tensor.grad_dtype` and `enforce_grad_layout_policy`: what leaves ask of gradients, as in PyTorch."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from .. import _oracle
from .._outcome import tried
from .._subject import subject


def doubled(t: Any, d: Any, how: str = "plain") -> Any:
    """A leaf that wants gradients of dtype `d`, after two passes."""

    class Wide(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return t.ones(2, dtype=t.float64)

    x = t.ones(2, requires_grad=True)
    if how == "late":
        y = (x * 2).sum()
    x.grad_dtype = d
    if how == "late":
        y.backward()
    elif how == "function":
        Wide.apply(x).backward()
        Wide.apply(x).backward()
    else:
        (x * 2).sum().backward()
        (x * 3).sum().backward()
    return [x.grad, x.grad_dtype]


def put(x: Any, name: str, value: Any) -> Any:
    setattr(x, name, value)
    return [x.grad_dtype, x.grad]


def cases(t: Any) -> list[Any]:
    leaf = t.ones(2, requires_grad=True)
    graded = t.ones(2, requires_grad=True)
    (graded * 2).sum().backward()
    free = t.ones(2, requires_grad=True)
    free.grad_dtype = None
    plain = t.ones(2)
    outer = t.ones(2, requires_grad=True)
    outer.grad_dtype = t.float64
    return [
        *(
            lambda d=d, how=how: doubled(t, d, how)
            for d in (None, t.float16, t.float32, t.float64)
            for how in ("plain", "late", "function")
        ),
        lambda: put(leaf, "grad_dtype", 3),
        lambda: put(graded, "grad_dtype", t.float64),
        lambda: put(free, "grad", t.ones(2, dtype=t.float64)),
        lambda: put(graded, "grad", t.ones(2, dtype=t.float16)),
        lambda: put(plain, "grad_dtype", t.float16),
        lambda: (leaf * 2).grad_dtype,
        lambda: t.autograd.grad((outer * 2).sum(), outer),
        lambda: [outer.detach().grad_dtype, t.ones(2, dtype=t.int32).grad_dtype],
    ]


@pytest.mark.oracle
def test_grad_dtype_is_pytorchs() -> None:
    mine, theirs = tried(cases(subject)), tried(cases(_oracle.load()))
    assert [o for o, _ in mine] == [o for o, _ in theirs]


def test_a_copy_forgets() -> None:
    x = subject.ones(2, requires_grad=True)
    x.grad_dtype = subject.float64
    assert x.clone().detach().grad_dtype == subject.float32
    del x
    gc.collect()
    assert all(subject.ones(2).grad_dtype == subject.float32 for _ in range(50))


def test_layout_policy() -> None:
    p = subject.empty(2, 3, 4).permute(2, 0, 1).requires_grad_()

    class RowMajor(subject.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return subject.ones(4, 2, 3)

    def strides(enforced: bool) -> Any:
        p.grad = None
        with subject.autograd.enforce_grad_layout_policy(enforced):
            RowMajor.apply(p).backward()
        return p.grad.stride()

    assert strides(True) == p.stride() == (1, 12, 4)
    assert strides(False) == (6, 3, 1)
    assert strides(True) == (1, 12, 4)

    @subject.autograd.enforce_grad_layout_policy(False)
    def inside() -> Any:
        p.grad = None
        RowMajor.apply(p).backward()
        return p.grad.stride()

    assert inside() == (6, 3, 1) and strides(True) == (1, 12, 4)
