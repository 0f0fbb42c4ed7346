"""Launches of softmax, its logarithm and their derivatives, and of logsumexp.

Invariant: where there are no elements no kernel is asked for, so any dtype will do, as in PyTorch.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import dtype
from ...._mypyc import i64
from ...._tensor_base import TensorBase, numel
from .base import OneResult, need_float, new_storage, wrapped

_softmax: Final[Any] = _native.softmax
_softmax_backward: Final[Any] = _native.softmax_backward
_logsumexp: Final[Any] = _native.logsumexp


@final
class Softmax(OneResult):
    """(self, dim, half_to_float)"""

    def __init__(self, log: bool) -> None:
        self.log: Final = log

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return out._dtype is spec.dtype

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        if numel(a) == 0:
            return new_storage(s) if out is None else out
        self.check(s.dtype, args[1], len(a._shape))
        return _softmax(
            self.log,
            a._storage, int(a._offset), a._stride, code,
            out, offset, stride, code,
            a._shape, wrapped(args[1], len(a._shape)))

    def check(self, dt: dtype, dim: int, ndim: int) -> None:
        """PyTorch names another kernel when the dimension is the last one."""
        if not dt.is_inexact:
            last = "lastdim_" if dim == -1 or dim + 1 >= ndim else ""
            need_float(f"{'log_' if self.log else ''}softmax_{last}kernel_impl", dt)


@final
class LogSumExp(OneResult):
    """(self, dim, keepdim): floats along one dimension; `parts` serves the rest."""

    def __init__(self, parts: Kernel) -> None:
        self.parts: Final = parts
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        dims: tuple[int, ...] = args[1]
        # A number has one dimension to sum over, and none.
        if len(dims) != 1 or len(t._shape) == 0 or not t._dtype.is_floating_point or numel(t) == 0:
            return self.parts.run(op, args, keys)
        return super().run(op, args, keys)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        dims: tuple[int, ...] = args[1]
        dim = wrapped(dims[0], len(t._shape))
        steps = stride
        if args[2]:
            kept = list(stride)
            del kept[dim]
            steps = tuple(kept)
        return _logsumexp(
            t._storage, int(t._offset), t._stride, t._dtype.code,
            out, offset, steps, code,
            t._shape, dim)


@final
class SoftmaxBackward(OneResult):
    """(grad_output, output, dim, input_dtype)"""

    def __init__(self, log: bool) -> None:
        self.log: Final = log

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        g = args[0]
        y = args[1]
        assert isinstance(g, TensorBase) and isinstance(y, TensorBase)
        need_float("softmax_backward", s.dtype)
        return _softmax_backward(
            self.log,
            g._storage, int(g._offset), g._stride, g._dtype.code,
            y._storage, int(y._offset), y._stride, code,
            out, offset, stride, code,
            y._shape, wrapped(args[2], len(y._shape)))
