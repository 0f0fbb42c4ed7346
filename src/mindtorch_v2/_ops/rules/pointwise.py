"""The rule of pointwise operators: broadcast the shapes, promote the dtypes, keep the inputs' order of dimensions.

Invariant: equal to PyTorch's TensorIterator in shape, dtype and strides of a freshly made result.
"""
from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ..._device import CPU, device
from ..._dispatch.op import Rule, Spec
from ..._dtype import DEFAULTS, dtype, int64
from ..._dtype import bool as bool_
from ..._promotion import number_dtype, promote, result_type_of
from ..._tensor_base import TensorBase, alias, contiguous_strides, is_contiguous, numel

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
                    if a._dtype is b._dtype and is_contiguous(a) and is_contiguous(b) and (
                            a._shape is b._shape or a._shape == b._shape):
                        return self.same(a, a._dtype)
                    if a._dtype is b._dtype and len(a._shape) > 0 and len(b._shape) > 0 and is_contiguous(a) and (
                            is_contiguous(b)) and a._device is b._device:
                        return self.broadcast_pair(a, b)
                elif isinstance(b, float):
                    if a._dtype.category >= 2:
                        return self.beside(a, a._dtype)
                elif isinstance(b, int) and not isinstance(b, bool) and a._dtype.category >= 1:
                    return self.beside(a, a._dtype)
            elif isinstance(b, TensorBase):
                if isinstance(a, float):
                    if b._dtype.category >= 2:
                        return self.beside(b, b._dtype)
                elif isinstance(a, int) and not isinstance(a, bool) and b._dtype.category >= 1:
                    return self.beside(b, b._dtype)
        elif self.triple:
            a = args[self.positions[0]]
            if isinstance(a, TensorBase) and is_contiguous(a) and (
                    joins(args[self.positions[1]], a) and joins(args[self.positions[2]], a)):
                return self.same(a, a._dtype)
        return self.general(args)

    def broadcast_pair(self, a: TensorBase, b: TensorBase) -> Spec:
        """Two row-major tensors of one dtype: the result is row-major too, unless sizes of one leave the order open."""
        if a._shape == b._shape[len(b._shape) - len(a._shape):]:
            shape = b._shape
        elif b._shape == a._shape[len(a._shape) - len(b._shape):]:
            shape = a._shape
        else:
            shape = broadcast_shapes(a._shape, b._shape)
        for n in shape:
            if n <= 1:
                return self.finish(shape, ordered_strides(shape, [a, b]), a._dtype, a._device)
        return self.finish(shape, contiguous_strides(shape), a._dtype, a._device)

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
            if dt.category < 2:
                dt = DEFAULTS.dtype
            return Spec(shape, stride, dt, dt, dev)
        if kind == COMPLEX_TO_FLOAT:
            return Spec(shape, stride, dt.to_real() if dt.is_complex else dt, dt, dev)
        if dt is bool_:
            dt = int64
        return Spec(shape, stride, dt, dt, dev)

    def general(self, args: tuple[Any, ...]) -> Spec:
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
        dt = result_type_of(dim_dt, zero_dt, wrapped)
        shape = broadcast(tensors)
        dev = tensors[0]._device if tensors else CPU
        for t in tensors:
            # A CPU scalar beside tensors of another device does not decide where the result lives.
            if len(t._shape) > 0 or t._device is not CPU:
                dev = t._device
                break
        if wrapped is not None and self.pair and len(tensors) == 1 and 1 in shape:
            return self.finish(shape, strides_in_order(shape, [tensors[0]._stride]), dt, dev)
        return self.finish(shape, ordered_strides(shape, tensors, self.computed(dt)), dt, dev)

    def computed(self, dt: dtype) -> dtype:
        """The dtype that the operands are cast to."""
        return DEFAULTS.dtype if self.kind == INT_TO_FLOAT and dt.category < 2 else dt


def joins(x: Any, a: TensorBase) -> bool:
    """Whether an operand changes neither layout nor dtype beside the contiguous tensor `a`."""
    if isinstance(x, TensorBase):
        return x._dtype is a._dtype and is_contiguous(x) and (x._shape is a._shape or x._shape == a._shape)
    if isinstance(x, float):
        return a._dtype.category >= 2
    if isinstance(x, int):
        return not isinstance(x, bool) and a._dtype.category >= 1
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


def expand_strides(t: TensorBase, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of `t` broadcast to `shape`."""
    if t._shape is shape or t._shape == shape:
        return t._stride
    n: i64 = len(shape)
    d = n - len(t._shape)
    out: list[int] = [0] * n
    i: i64 = d
    while i < n:
        size: i64 = t._shape[i - d]
        if size != 1 or shape[i] == 1:
            out[i] = t._stride[i - d]
        i += 1
    return tuple(out)


def ordered_strides(shape: tuple[int, ...], tensors: list[TensorBase], common: dtype | None = None) -> tuple[int, ...]:
    """Strides of a dense result whose dimensions are ordered as the inputs' are, once cast to the dtype `common`."""
    n: i64 = len(shape)
    if n < 2:
        return contiguous_strides(shape)
    plain = True
    for t in tensors:
        if len(t._shape) == 0:
            # Beside another shape the order of the strides counts, also where sizes of one leave it open.
            if 1 in shape:
                plain = False
        elif t._shape != shape or not is_contiguous(t):
            plain = False
    if plain:
        return contiguous_strides(shape)
    if common is not None and 1 in shape and any([is_recast(t, common) for t in tensors]):
        return ordered_strides(shape, [recast(t) if is_recast(t, common) else t for t in tensors])
    first = tensors[0]
    if n == 4 and first._shape == shape:
        # Images in channels-last order get the strides of that format, also where sizes of one leave them open.
        wanted = channels_last_strides(shape, 2)
        if all([t._shape == shape and in_order(t, wanted) for t in tensors]):
            return wanted
    if first._shape == shape and dense_layout(first):
        alike = True
        for t in tensors:
            if t._shape != shape or t._stride != first._stride:
                alike = False
        if alike:
            return first._stride
    return strides_in_order(shape, [expand_strides(t, shape) for t in tensors])


def is_recast(t: TensorBase, common: dtype) -> bool:
    """Whether PyTorch's CPU operators copy this operand first, into another layout. Only where sizes of one leave
    strides open does the copy show."""
    return t._dtype is not common and t._device.type == "cpu" and len(t._shape) > 1 and not (
        is_contiguous(t) or dense_layout(t))


def recast(t: TensorBase) -> TensorBase:
    return alias(t, t._shape, strides_in_order(t._shape, [t._stride]), 0)


def strides_in_order(shape: tuple[int, ...], expanded: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Strides of a dense result whose dimensions are ordered as in the operands' strides, the first one first."""
    n: i64 = len(shape)
    perm: list[int] = [int(n - 1 - k) for k in range(n)]
    i: i64 = 1
    while i < n:
        d1 = i
        d0 = i - 1
        while d0 >= 0:
            c = compare(perm[d0], perm[d1], expanded, shape)
            if c > 0:
                perm[d0], perm[d1] = perm[d1], perm[d0]
                d1 = d0
            elif c < 0:
                break
            d0 -= 1
        i += 1
    natural = True
    for k in range(n):
        if perm[k] != n - 1 - k:
            natural = False
    if natural:
        return contiguous_strides(shape)
    out: list[int] = [0] * n
    step: i64 = 1
    for p in perm:
        out[p] = int(step)
        size: i64 = shape[p]
        step *= size
    return tuple(out)


def channels_last_strides(shape: tuple[int, ...], dims: int) -> tuple[int, ...]:
    """Strides with the channels moving fastest, for a batch of `dims`-dimensional images."""
    if len(shape) != dims + 2:
        raise RuntimeError(
            f"required rank {dims + 2} tensor to use channels_last{'_3d' if dims == 3 else ''} format")
    out: list[int] = [0] * len(shape)
    step: i64 = 1
    order = [1, *range(dims + 1, 1, -1), 0]
    for d in order:
        out[d] = int(step)
        n: i64 = shape[d]
        step *= n if n > 1 else 1
    return tuple(out)


def in_order(t: TensorBase, wanted: tuple[int, ...]) -> bool:
    """Whether the strides are the wanted ones; sizes of one may have any."""
    i: i64 = 0
    for n in t._shape:
        if n != 1 and t._stride[i] != wanted[i]:
            return False
        i += 1
    return True


def dense_layout(t: TensorBase) -> bool:
    pairs = sorted([(t._stride[i], n) for i, n in enumerate(t._shape) if n != 1])
    expected = 1
    for s, n in pairs:
        if n == 0:
            return True
        if s != expected:
            return False
        expected *= n
    return True


def compare(d0: int, d1: int, strides: list[tuple[int, ...]], shape: tuple[int, ...]) -> i64:
    """Which of two dimensions moves faster; 0 when the inputs do not say."""
    for s in strides:
        s0: i64 = s[d0]
        s1: i64 = s[d1]
        if s0 == 0 or s1 == 0:
            continue
        if s0 < s1:
            return -1
        if s0 > s1:
            return 1
        n0: i64 = shape[d0]
        n1: i64 = shape[d1]
        if n0 > n1:
            return 1
    return 0
