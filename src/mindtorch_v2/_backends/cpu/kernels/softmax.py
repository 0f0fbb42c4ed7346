"""Launches of softmax, its logarithm and their derivatives.

Invariant: where there are no elements no kernel is asked for, so any dtype will do, as in PyTorch.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._dtype import dtype
from ...._tensor_base import TensorBase, numel
from .base import OneResult, need_float, new_storage, wrapped

_softmax: Final[Any] = _native.softmax
_softmax_backward: Final[Any] = _native.softmax_backward


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
