"""The rule of pointwise operators: broadcast the shapes, promote the dtypes, keep the inputs' order of dimensions.

Invariant: equal to PyTorch's TensorIterator in shape, dtype and strides of a freshly made result.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._device import CPU, device
from ..._dispatch.op import Rule, Spec
from ..._dtype import DEFAULTS, dtype, int64
from ..._dtype import bool as bool_
from ..._mypyc import i64
from ..._promotion import number_dtype, promote, result_type_of
from ..._strides import contiguous_strides, strides_in_order
from ..._tensor_base import TensorBase, is_contiguous, numel
from .layout import ordered_strides

# What happens to the promoted dtype.
DEFAULT: Final[i64] = 0
INT_TO_FLOAT: Final[i64] = 1
TO_BOOL: Final[i64] = 2
COMPLEX_TO_FLOAT: Final[i64] = 3
BOOL_TO_LONG: Final[i64] = 4


@final
class Pointwise(Rule):
    """Operands are the arguments at `positions`; `kind` says how the result's dtype follows from theirs."""

    overlap_first = True

    def __init__(self, positions: list[int], kind: i64) -> None:
        self.positions: Final = positions
        self.kind: Final = kind
        self.single: Final = len(positions) == 1
        self.pair: Final = len(positions) == 2
        self.triple: Final = len(positions) == 3

    def infer(self, args: tuple[Any, ...]) -> Any:
        if self.single:
            a = args[self.positions[0]]
            if isinstance(a, TensorBase):
                return self.same(a, a._dtype)
        elif self.pair:
            a = args[self.positions[0]]
            b = args[self.positions[1]]
            if isinstance(a, TensorBase):
                if isinstance(b, TensorBase):
                    if a._dtype is b._dtype:
                        return self.of_pair(a, b)
                elif isinstance(b, float):
                    if a._dtype.is_inexact:
                        return self.beside(a, a._dtype)
                elif isinstance(b, int) and not isinstance(b, bool) and not a._dtype.is_bool:
                    return self.beside(a, a._dtype)
            elif isinstance(b, TensorBase):
                if isinstance(a, float):
                    if b._dtype.is_inexact:
                        return self.beside(b, b._dtype)
                elif isinstance(a, int) and not isinstance(a, bool) and not b._dtype.is_bool:
                    return self.beside(b, b._dtype)
        elif self.triple:
            a = args[self.positions[0]]
            if isinstance(a, TensorBase) and is_contiguous(a) and (
                    joins(args[self.positions[1]], a) and joins(args[self.positions[2]], a)):
                return self.same(a, a._dtype)
        return self.mixed(args)

    def of_pair(self, a: TensorBase, b: TensorBase) -> Spec:
        """Two tensors of one dtype."""
        dense = is_contiguous(a) and is_contiguous(b)
        if alike(a, b):
            if dense:
                return self.same(a, a._dtype)
        elif len(a._shape) == 0 or len(b._shape) == 0:
            # The one with dimensions decides, also where it lives.
            t = b if len(a._shape) == 0 else a
            if dense and 1 not in t._shape and numel(t) > 0:
                return self.finish(t._shape, t._stride, t._dtype, t._device)
            return self.general([a, b], a._dtype, False)
        elif dense and a._device is b._device:
            return self.broadcast_pair(a, b)
        return self.general([a, b], a._dtype, False)

    def broadcast_pair(self, a: TensorBase, b: TensorBase) -> Spec:
        """Two row-major tensors of one dtype: the result is row-major too, unless sizes of one leave the order open."""
        if ends_with(b._shape, a._shape):
            shape, stride = b._shape, b._stride
        elif ends_with(a._shape, b._shape):
            shape, stride = a._shape, a._stride
        else:
            shape = broadcast_shapes(a._shape, b._shape)
            stride = contiguous_strides(shape)
        for n in shape:
            if n <= 1:
                return self.finish(shape, ordered_strides(shape, [a, b]), a._dtype, a._device)
        return self.finish(shape, stride, a._dtype, a._device)

    def same(self, a: TensorBase, dt: dtype) -> Spec:
        """One tensor decides the layout."""
        stride = a._stride
        if not is_contiguous(a):
            stride = ordered_strides(a._shape, [a], self.computed(dt))
        elif 1 in a._shape or numel(a) == 0:
            # Sizes 0 and 1 leave strides open; a new tensor gets the row-major ones.
            stride = contiguous_strides(a._shape)
        return self.finish(a._shape, stride, dt, a._device)

    def beside(self, a: TensorBase, dt: dtype) -> Spec:
        """A tensor and a number, which PyTorch takes for a tensor of another shape: only the order of the strides
        counts, also where sizes of one leave it open."""
        stride = a._stride
        if not is_contiguous(a) or 1 in a._shape:
            stride = strides_in_order(a._shape, [stride])
        elif numel(a) == 0:
            stride = contiguous_strides(a._shape)
        return self.finish(a._shape, stride, dt, a._device)

    def finish(self, shape: tuple[int, ...], stride: tuple[int, ...], dt: dtype, dev: device) -> Spec:
        kind = self.kind
        if kind == DEFAULT:
            return Spec(shape, stride, dt, dt, dev)
        if kind == TO_BOOL:
            return Spec(shape, stride, bool_, dt, dev)
        if kind == INT_TO_FLOAT:
            if not dt.is_inexact:
                dt = DEFAULTS.dtype
            return Spec(shape, stride, dt, dt, dev)
        if kind == COMPLEX_TO_FLOAT:
            return Spec(shape, stride, dt.to_real() if dt.is_complex else dt, dt, dev)
        if dt is bool_:
            dt = int64
        return Spec(shape, stride, dt, dt, dev)

    def mixed(self, args: tuple[Any, ...]) -> Spec:
        """Operands of any dtypes."""
        tensors: list[TensorBase] = []
        dim_dt: dtype | None = None
        zero_dt: dtype | None = None
        wrapped: dtype | None = None
        for i in self.positions:
            a = args[i]
            if isinstance(a, TensorBase):
                tensors.append(a)
                if len(a._shape) > 0:
                    dim_dt = a._dtype if dim_dt is None else promoted(dim_dt, a._dtype)
                else:
                    zero_dt = a._dtype if zero_dt is None else promoted(zero_dt, a._dtype)
            elif a is not None:
                d = number_dtype(a)
                wrapped = d if wrapped is None else promoted(wrapped, d)
        return self.general(tensors, result_type_of(dim_dt, zero_dt, wrapped), wrapped is not None)

    def general(self, tensors: list[TensorBase], dt: dtype, beside_number: bool) -> Spec:
        """Tensors of any layout, once cast to one dtype."""
        shape = broadcast(tensors)
        dev = tensors[0]._device if tensors else CPU
        for t in tensors:
            # A CPU scalar beside tensors of another device does not decide where the result lives.
            if len(t._shape) > 0 or t._device is not CPU:
                dev = t._device
                break
        if beside_number and self.pair and len(tensors) == 1 and 1 in shape:
            return self.finish(shape, strides_in_order(shape, [tensors[0]._stride]), dt, dev)
        return self.finish(shape, ordered_strides(shape, tensors, self.computed(dt)), dt, dev)

    def computed(self, dt: dtype) -> dtype:
        """The dtype that the operands are cast to."""
        return DEFAULTS.dtype if self.kind == INT_TO_FLOAT and not dt.is_inexact else dt


def alike(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors have one shape. They share the tuple from then on: whoever asks next sees it at once."""
    if a._shape is b._shape:
        return True
    if a._shape != b._shape:
        return False
    b._shape = a._shape
    return True


def ends_with(longer: tuple[int, ...], shorter: tuple[int, ...]) -> bool:
    """Whether a shape is the other one with dimensions in front."""
    d: i64 = len(longer) - len(shorter)
    if d < 0:
        return False
    i: i64 = d
    for n in shorter:
        if longer[i] != n:
            return False
        i += 1
    return True


def joins(x: Any, a: TensorBase) -> bool:
    """Whether an operand changes neither layout nor dtype beside the contiguous tensor `a`."""
    if isinstance(x, TensorBase):
        return x._dtype is a._dtype and is_contiguous(x) and alike(a, x)
    if isinstance(x, float):
        return a._dtype.is_inexact
    if isinstance(x, int):
        return not isinstance(x, bool) and not a._dtype.is_bool
    return x is None


def promoted(a: dtype, b: dtype) -> dtype:
    return a if a is b else promote(a, b)


def broadcast(tensors: list[TensorBase]) -> tuple[int, ...]:
    """The common shape; PyTorch's error names the first two sizes that do not fit."""
    if not tensors:
        return ()
    shape = tensors[0]._shape
    for t in tensors:
        if t._shape != shape:
            shape = broadcast_shapes(shape, t._shape)
    return shape


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    na: i64 = len(a)
    nb: i64 = len(b)
    n = na if na > nb else nb
    out: list[int] = [0] * n
    i: i64 = n - 1
    while i >= 0:
        ia = i - (n - na)
        ib = i - (n - nb)
        x: i64 = a[ia] if ia >= 0 else 1
        y: i64 = b[ib] if ib >= 0 else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}")
        out[i] = y if x == 1 else x
        i -= 1
    return tuple(out)





