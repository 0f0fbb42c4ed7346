"""From reduction rows to the native reductions, scans and sorts.

Invariant: the rule decides shapes and dtypes; here the reduced dimensions only become zeros among the result's strides.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import int64
from ...._ops.rules.reduce import Reduction, ValueIndex, dim_mask_or_all, reduced_shape, spread_strides
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, make
from .base import rule_of

_reduce: Final[Any] = _native.reduce
_cumsum: Final[Any] = _native.cumsum
_sort: Final[Any] = _native.sort
_var: Final[Any] = _native.var
_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_Storage: Final[Any] = _native.Storage
_ADD: Final = _native.ADD
_SQRT: Final = _native.SQRT
_MEAN: Final = _native.MEAN


def count(shape: tuple[int, ...]) -> int:
    n: i64 = 1
    for s in shape:
        m: i64 = s
        n *= m
    return int(n)


@final
class Reduce(Kernel):
    """One native reduction over (self, dim, keepdim, ...)."""

    def __init__(self, code: int) -> None:
        self.code: Final = code

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        rule = op.rule
        a = args[0]
        assert isinstance(rule, Reduction) and isinstance(a, TensorBase)
        shape = a._shape
        n: i64 = len(shape)
        mask = rule.mask(args, n)
        s = rule.spec(a, args, mask)
        stride = spread_strides(s.stride, mask, n, len(args) > 2 and args[2] is True)
        data = _reduce(
            self.code,
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            None,
            0,
            stride,
            s.dtype.code,
            shape,
            s.compute.code,
            count(s.shape),
        )
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        rule = rule_of(op)
        a = args[0]
        assert isinstance(a, TensorBase) and isinstance(rule, Reduction)
        keepdim = len(args) > 2 and args[2] is True
        n: i64 = len(a._shape)
        stride = spread_strides(out._stride, rule.mask(args, n), n, keepdim)
        _reduce(
            self.code,
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            out._storage,
            int(out._offset),
            stride,
            out._dtype.code,
            a._shape,
            spec.compute.code,
        )
        return True


@final
class ReduceWithIndex(Kernel):
    """max and min along one dimension: values and positions."""

    def __init__(self, values: int, indices: int) -> None:
        self.values: Final = values
        self.indices: Final = indices

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        rule = op.rule
        a = args[0]
        assert isinstance(rule, ValueIndex) and isinstance(a, TensorBase)
        n: i64 = len(a._shape)
        mask = rule.mask(a, args[1])
        shape = reduced_shape(a._shape, mask, args[2])
        dense = contiguous_strides(shape)
        stride = spread_strides(dense, mask, n, args[2])
        dt = a._dtype
        code = dt.code
        total = count(shape)
        offset = int(a._offset)
        values = _reduce(self.values, a._storage, offset, a._stride, code, None, 0, stride, code, a._shape, code, total)
        indices = _reduce(
            self.indices, a._storage, offset, a._stride, code, None, 0, stride, int64.code, a._shape, code, total
        )
        return (make(values, 0, shape, dense, dt, CPU, CPU_KEY), make(indices, 0, shape, dense, int64, CPU, CPU_KEY))


@final
class Scan(Kernel):
    """Running sums (op 0) and products (op 1)."""

    def __init__(self, kind: int) -> None:
        self.kind: Final = kind

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        assert isinstance(s, Spec)
        a = args[0]
        assert isinstance(a, TensorBase)
        data = _cumsum(
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            None,
            0,
            s.stride,
            s.dtype.code,
            a._shape,
            wrapped(args[1], a),
            s.compute.code,
            self.kind,
        )
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        a = args[0]
        assert isinstance(a, TensorBase)
        if out._dtype is not spec.dtype:
            return False
        _cumsum(
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            out._storage,
            int(out._offset),
            out._stride,
            out._dtype.code,
            a._shape,
            wrapped(args[1], a),
            spec.compute.code,
            self.kind,
        )
        return True


def wrapped(dim: Any, a: TensorBase) -> int:
    d: i64 = dim
    if d < 0:
        d += len(a._shape) if len(a._shape) > 0 else 1
    return int(d)


@final
class Sort(Kernel):
    """(self, dim, descending) -> values, indices"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        specs = rule_of(op).infer(args)
        v = specs[0]
        w = specs[1]
        assert isinstance(v, Spec) and isinstance(w, Spec)
        a = args[0]
        assert isinstance(a, TensorBase)
        values, indices = _sort(
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            None,
            0,
            v.stride,
            v.dtype.code,
            None,
            0,
            w.stride,
            w.dtype.code,
            a._shape,
            wrapped(args[1], a),
            args[2],
        )
        return (
            make(values, 0, v.shape, v.stride, v.dtype, CPU, CPU_KEY),
            make(indices, 0, w.shape, w.stride, w.dtype, CPU, CPU_KEY),
        )


@final
class Moments(Kernel):
    """(self, dim, correction, keepdim): variance or standard deviation, and the mean when `both`."""

    def __init__(self, root: bool, both: bool) -> None:
        self.root: Final = root
        self.both: Final = both

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        got = rule_of(op).infer(args)
        first = got[0] if self.both else got
        assert isinstance(first, Spec)
        a = args[0]
        assert isinstance(a, TensorBase)
        if a._dtype.is_complex:
            return self.of_complex(a, args, first)
        n: i64 = len(a._shape)
        mask = dim_mask_or_all(args[1], n)
        stride = spread_strides(first.stride, mask, n, args[3])
        correction = 1 if args[2] is None else args[2]
        code = a._dtype.code
        total = count(first.shape)
        out = _Storage(total * a._dtype.itemsize)
        mean = _Storage(total * a._dtype.itemsize) if self.both else None
        _var(
            a._storage,
            int(a._offset),
            a._stride,
            code,
            out,
            0,
            stride,
            code,
            mean,
            0,
            stride,
            code,
            a._shape,
            correction,
            self.root,
        )
        result = make(out, 0, first.shape, first.stride, first.dtype, CPU, CPU_KEY)
        if not self.both:
            return result
        return result, make(mean, 0, first.shape, first.stride, a._dtype, CPU, CPU_KEY)

    def of_complex(self, a: TensorBase, args: tuple[Any, ...], first: Spec) -> Any:
        """The variance of a complex tensor is the sum of its parts' variances."""
        n: i64 = len(a._shape)
        mask = dim_mask_or_all(args[1], n)
        stride = spread_strides(first.stride, mask, n, args[3])
        correction = 1 if args[2] is None else args[2]
        code = first.dtype.code
        total = count(first.shape)
        double = tuple([2 * s for s in a._stride])
        parts: list[Any] = []
        for part in range(2):
            out = _Storage(total * first.dtype.itemsize)
            _var(
                a._storage,
                int(2 * a._offset) + part,
                double,
                code,
                out,
                0,
                stride,
                code,
                None,
                0,
                (),
                0,
                a._shape,
                correction,
                False,
            )
            parts.append(out)
        dense = (1,)
        out = _binary(
            _ADD, parts[0], 0, dense, code, parts[1], 0, dense, code, parts[0], 0, dense, code, (total,), code, 1
        )
        if self.root:
            _unary(_SQRT, out, 0, dense, code, out, 0, dense, code, (total,), code)
        result = make(out, 0, first.shape, first.stride, first.dtype, CPU, CPU_KEY)
        if not self.both:
            return result
        mean = _reduce(
            _MEAN,
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            None,
            0,
            stride,
            a._dtype.code,
            a._shape,
            a._dtype.code,
            total,
        )
        return result, make(mean, 0, first.shape, first.stride, a._dtype, CPU, CPU_KEY)
