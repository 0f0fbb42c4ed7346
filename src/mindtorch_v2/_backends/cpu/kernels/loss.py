"""Launches of losses.

Invariant: `reduction` is 0 for none, 1 for the mean, 2 for the sum, as in PyTorch's operators.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Kernel, Op, Spec
from ...._mypyc import i64
from ...._ops.rules.layout import expand_strides
from ...._ops.rules.norm import NO_PROBABILITY
from ...._ops.rules.pointwise import broadcast_shapes
from ...._ops.rules.reduce import ZEROS
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, numel
from .base import OneResult, SeveralResults, count, need_float, new_storage
from .dense import dense

_nll_loss: Final[Any] = _native.nll_loss
_nll_loss_backward: Final[Any] = _native.nll_loss_backward
_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_reduce: Final[Any] = _native.reduce
_SUB: Final = _native.SUB
_MUL: Final = _native.MUL
_SQUARE: Final = _native.SQUARE
_MEAN: Final = _native.MEAN
_SUM: Final = _native.SUM
_AMIN: Final = _native.AMIN
_AMAX: Final = _native.AMAX
_ENTROPY: Final = _native.ENTROPY
_ENTROPY_OF_LOGITS: Final = _native.ENTROPY_OF_LOGITS
_item: Final[Any] = _native.item


def row_strides(t: TensorBase) -> tuple[int, ...]:
    """(row, class) strides of a matrix, or of one row of classes."""
    return t._stride if len(t._shape) == 2 else (0, t._stride[0])


def target_strides(t: TensorBase) -> tuple[int, ...]:
    return t._stride if len(t._shape) == 1 else (0,)


def own_sum(reduction: int, matrix: bool) -> int:
    """One sample is its own sum: PyTorch reports the weight it had, even when nothing is reduced."""
    return reduction if matrix or reduction != 0 else 2


@final
class Nll(SeveralResults):
    """(self, target, weight, reduction, ignore_index) -> output, total_weight"""

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        o = specs[0]
        x = args[0]
        t = args[1]
        w = args[2]
        assert isinstance(o, Spec) and isinstance(x, TensorBase) and isinstance(t, TensorBase)
        need_float("nll_loss_out_frame", x._dtype)
        matrix = len(x._shape) == 2
        code = x._dtype.code
        wdata: Any = None
        woff = 0
        if isinstance(w, TensorBase):
            w = dense(w)
            wdata, woff = w._storage, int(w._offset)
        total = new_storage(specs[1])
        data = _nll_loss(
            x._storage, int(x._offset), row_strides(x), code,
            t._storage, int(t._offset), target_strides(t), t._dtype.code,
            wdata, woff, (), code,
            None, 0, o.stride, code,
            total, 0, (), code,
            x._shape[0] if matrix else 1, x._shape[1] if matrix else x._shape[0], own_sum(args[3], matrix), args[4])
        return [data, total]


@final
class NllBackward(OneResult):
    """(grad_output, self, target, weight, reduction, ignore_index, total_weight)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        g = args[0]
        x = args[1]
        t = args[2]
        w = args[3]
        total = args[6]
        assert isinstance(g, TensorBase) and isinstance(x, TensorBase)
        assert isinstance(t, TensorBase) and isinstance(total, TensorBase)
        need_float("nll_loss_backward_out_frame", x._dtype)
        matrix = len(x._shape) == 2
        wdata: Any = None
        woff = 0
        if isinstance(w, TensorBase):
            w = dense(w)
            wdata, woff = w._storage, int(w._offset)
        return _nll_loss_backward(
            g._storage, int(g._offset), g._stride, g._dtype.code,
            t._storage, int(t._offset), target_strides(t), t._dtype.code,
            wdata, woff, (), x._dtype.code,
            total._storage, int(total._offset), (), total._dtype.code,
            out, offset, stride if matrix else (0, 1), code,
            x._shape[0] if matrix else 1, x._shape[1] if matrix else x._shape[0], own_sum(args[4], matrix), args[5])


def difference(a: TensorBase, b: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], code: int) -> Any:
    """A new storage with a - b."""
    return _binary(
        _SUB,
        a._storage, int(a._offset), expand_strides(a, shape), a._dtype.code,
        b._storage, int(b._offset), expand_strides(b, shape), b._dtype.code,
        None, 0, stride, code,
        shape, code, 1)


@final
class Mse(OneResult):
    """(self, target, reduction)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        need_float("mse_cpu", s.dtype)
        shape = s.shape
        if args[2] != 0:
            shape = a._shape if a._shape == b._shape else broadcast_shapes(a._shape, b._shape)
            stride = contiguous_strides(shape)
        data = difference(a, b, shape, stride, code)
        _unary(_SQUARE, data, 0, stride, code, data, 0, stride, code, shape, code)
        if args[2] == 0:
            return data
        return _reduce(
            _MEAN if args[2] == 1 else _SUM,
            data, 0, stride, code,
            None, 0, ZEROS[len(shape)], code,
            shape, code, 1)


@final
class Bent(OneResult):
    """(self, target, reduction, knee): `code` of the two, reduced."""

    def __init__(self, code: int, name: str) -> None:
        self.code: Final = code
        self.name: Final = name

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        need_float(self.name, s.dtype)
        return of_pair(self.code, a, b, s, args[2], stride, code, args[3])


def of_pair(kernel: int, a: TensorBase, b: TensorBase, s: Spec, reduction: int, stride: tuple[int, ...], code: int,
            number: Any) -> Any:
    """A new storage with `kernel` of two tensors, reduced."""
    shape = s.shape
    if reduction != 0:
        shape = a._shape if a._shape == b._shape else broadcast_shapes(a._shape, b._shape)
        stride = contiguous_strides(shape)
    data = _binary(
        kernel,
        a._storage, int(a._offset), expand_strides(a, shape), a._dtype.code,
        b._storage, int(b._offset), expand_strides(b, shape), b._dtype.code,
        None, 0, stride, code,
        shape, code, 1, number, 0, 0)
    if reduction == 0:
        return data
    return _reduce(
        _MEAN if reduction == 1 else _SUM,
        data, 0, stride, code,
        None, 0, ZEROS[len(shape)], code,
        shape, code, 1)


@final
class Entropy(OneResult):
    """(self, target, weight, reduction), or (self, target, weight, pos_weight, reduction) of logits: without weights;
    `parts` serves the rest."""

    def __init__(self, parts: Kernel, of_logits: bool) -> None:
        self.parts: Final = parts
        self.of_logits: Final = of_logits
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        plain = a._dtype is b._dtype and a._dtype.is_floating_point and a._shape == b._shape
        if not plain or args[2] is not None or (self.of_logits and args[3] is not None):
            return self.parts.run(op, args, keys)
        return super().run(op, args, keys)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if self.of_logits:
            return of_pair(_ENTROPY_OF_LOGITS, a, b, s, args[4], stride, code, 0)
        if numel(a) > 0 and not (end_of(_AMIN, a) >= 0 and end_of(_AMAX, a) <= 1):
            raise RuntimeError(NO_PROBABILITY)
        return of_pair(_ENTROPY, a, b, s, args[3], stride, code, 0)


def end_of(kernel: int, t: TensorBase) -> float:
    """The smallest or the greatest element; NaN if there is one."""
    code = t._dtype.code
    found = _reduce(
        kernel,
        t._storage, int(t._offset), t._stride, code,
        None, 0, ZEROS[len(t._shape)], code,
        t._shape, code, 1)
    value: float = _item(found, 0, code)
    return value


@final
class MseBackward(OneResult):
    """(grad_output, self, target, reduction): 2 (self - target) grad_output"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        g = args[0]
        a = args[1]
        b = args[2]
        assert isinstance(g, TensorBase) and isinstance(a, TensorBase) and isinstance(b, TensorBase)
        shape = s.shape
        data = difference(a, b, shape, stride, code)
        scale = 2.0
        if args[3] == 1:
            scale = 2.0 / max(count(shape), 1)
        if len(g._shape) == 0:
            # One factor for all: two numbers are multiplied instead of two tensors.
            one = _binary(
                _MUL,
                g._storage, int(g._offset), (), g._dtype.code,
                scale, 0, (), 0,
                None, 0, (), code,
                (), code, 1)
            _binary(_MUL, data, 0, stride, code, one, 0, ZEROS[len(shape)], code, data, 0, stride, code, shape, code, 1)
            return data
        _binary(
            _MUL,
            data, 0, stride, code,
            g._storage, int(g._offset), expand_strides(g, shape), g._dtype.code,
            data, 0, stride, code,
            shape, code, 1)
        _binary(_MUL, data, 0, stride, code, scale, 0, (), 0, data, 0, stride, code, shape, code, 1)
        return data
