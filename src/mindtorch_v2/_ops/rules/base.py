"""Building blocks of shape rules.

Invariant: a rule only looks at metadata; it never reads or writes memory.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._device import CPU, device
from ..._dispatch.op import Rule, Spec
from ..._dtype import dtype
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase


@final
class PyRule(Rule):
    """A rule written as a plain function of the operator's arguments."""

    def __init__(self, fn: Any) -> None:
        self.fn: Final[Any] = fn

    def infer(self, args: tuple[Any, ...]) -> Any:
        fn = self.fn
        got = fn(*args)
        if isinstance(got, Spec):
            return got
        if isinstance(got, TensorBase):
            return of_tensor(got)
        return [g if isinstance(g, Spec) else of_tensor(g) for g in got]


_MOST: Final = 512


@final
class KeptRule(Rule):
    """A rule whose answers are remembered, for layers that ask the same again and again. It reads shape, strides, dtype
    and device of its tensors and nothing else of them; its other arguments are plain numbers, texts and tuples of them,
    and do not tell 1 from 1.0 or True. What raises is asked again."""

    def __init__(self, fn: Any) -> None:
        self.rule: Final = PyRule(fn)
        self.answers: Final[dict[Any, Any]] = {}
        # The parts of the last call, which most often are the very same objects again, and its answer.
        self.last: list[Any] = []

    def infer(self, args: tuple[Any, ...]) -> Any:
        last = self.last
        if is_same(args, last):
            return last[len(last) - 1]
        parts: list[Any] = []
        for a in args:
            if isinstance(a, TensorBase):
                parts.append(a._shape)
                parts.append(a._stride)
                parts.append(a._dtype)
                parts.append(a._device)
            else:
                parts.append(a)
        key = tuple(parts)
        try:
            found = self.answers.get(key)
        except TypeError:  # a size that is a symbol has no hash
            return self.rule.infer(args)
        if found is None:
            found = self.rule.infer(args)
            if len(self.answers) >= _MOST:
                self.answers.clear()
            self.answers[key] = found
        parts.append(found)
        self.last = parts
        return found


def is_same(args: tuple[Any, ...], last: list[Any]) -> bool:
    """Whether these are the very arguments of an earlier call: `last` has its parts, and its answer behind them."""
    n: i64 = len(last)
    k: i64 = 0
    for a in args:
        if isinstance(a, TensorBase):
            if (
                k + 4 >= n
                or a._shape is not last[k]
                or a._stride is not last[k + 1]
                or a._dtype is not last[k + 2]
                or a._device is not last[k + 3]
            ):
                return False
            k += 4
        else:
            if k + 1 >= n or a is not last[k]:
                return False
            k += 1
    return k + 1 == n


def spec(shape: tuple[int, ...], dt: dtype, dev: device = CPU, stride: tuple[int, ...] | None = None) -> Spec:
    """A result; row-major unless strides are given."""
    return Spec(shape, contiguous_strides(shape) if stride is None else stride, dt, dt, dev)


def like(t: TensorBase, shape: tuple[int, ...] | None = None, dt: dtype | None = None) -> Spec:
    """A row-major result on the same device, with the same dtype and shape unless given."""
    s = t._shape if shape is None else shape
    d = t._dtype if dt is None else dt
    return Spec(s, contiguous_strides(s), d, d, t._device)


def of_tensor(t: TensorBase) -> Spec:
    return Spec(t._shape, t._stride, t._dtype, t._dtype, t._device)


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; PyTorch's error when out of range."""
    n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def size_at(t: TensorBase, dim: int) -> int:
    """The size of a dimension that the tensor may lack: PyTorch's `Tensor.size(dim)`."""
    if len(t._shape) == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return t._shape[wrap_dim(dim, len(t._shape))]


def wrap_dims(dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    out: list[int] = []
    for d in dims:
        w = wrap_dim(d, ndim)
        if w in out:
            raise RuntimeError(f"dim {w} appears multiple times in the list of dims")
        out.append(w)
    return tuple(out)
