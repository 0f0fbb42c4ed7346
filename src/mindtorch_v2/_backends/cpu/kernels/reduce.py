"""Launches of reductions and scans.

Invariant: the rule decides shapes and dtypes; here the reduced dimensions only become zeros among the result's strides.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import bool as bool_
from ...._dtype import int64
from ...._mypyc import i64
from ...._ops.rules.reduce import Reduction, dim_mask, dim_mask_or_all, spread_strides
from ...._tensor_base import TensorBase, alias, make
from .base import OneResult, SeveralResults, count, new_storage, wrapped
from .dense import dense_as

_reduce: Final[Any] = _native.reduce
_cumsum: Final[Any] = _native.cumsum
_var: Final[Any] = _native.var
_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_ADD: Final = _native.ADD
_SQRT: Final = _native.SQRT
_MEAN: Final = _native.MEAN
_SUM: Final = _native.SUM
_AMIN: Final = _native.AMIN
_AMAX: Final = _native.AMAX
_gather: Final[Any] = _native.gather
_MANY: Final = 4096  # elements from which on a second look at them costs more than picking values


# How many dimensions a set of them, which is a number, holds.
MOST_MASKED: Final = 64


def without_ones(a: TensorBase) -> TensorBase:
    """The same elements in the same order, without the dimensions that nothing moves along."""
    shape: list[int] = []
    stride: list[int] = []
    for n, step in zip(a._shape, a._stride):
        if n != 1:
            shape.append(n)
            stride.append(step)
    return alias(a, tuple(shape), tuple(stride), a._offset)


@final
class Reduce(OneResult):
    """One native reduction over (self, dim, keepdim, ...)."""

    def __init__(self, code: int) -> None:
        self.code: Final = code

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        # As for every kernel, but the dimensions are read once, for the rule and for the launch.
        rule = op.rule
        a = args[0]
        assert isinstance(rule, Reduction) and isinstance(a, TensorBase)
        if len(a._shape) > MOST_MASKED and self.of_all(args):
            a = without_ones(a)
        mask = rule.mask(args, len(a._shape))
        s = rule.spec(a, args, mask)
        data = self.reduce(a, args, mask, s, None, 0, s.stride, s.dtype.code)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def of_all(self, args: tuple[Any, ...]) -> bool:
        """Whether everything is reduced to one number; `any` and `all` refuse many dimensions in any case."""
        if self.code == _native.ANY or self.code == _native.ALL:
            return False
        return len(args) == 1 or ((args[1] is None or args[1] == ()) and (len(args) == 2 or not args[2]))

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        rule = op.rule
        a = args[0]
        assert isinstance(rule, Reduction) and isinstance(a, TensorBase)
        return self.reduce(a, args, rule.mask(args, len(a._shape)), s, out, offset, stride, code)

    def reduce(self, a: TensorBase, args: tuple[Any, ...], mask: i64, s: Spec, out: Any, offset: int,
               stride: tuple[int, ...], code: int) -> Any:
        return _reduce(
            self.code,
            a._storage, int(a._offset), a._stride, a._dtype.code,
            out, offset, spread_strides(stride, mask, len(a._shape), len(args) > 2 and args[2] is True), code,
            a._shape, s.compute.code, count(s.shape))


@final
class BothEnds(SeveralResults):
    """aminmax: (self, dim, keepdim) -> min, max; `parts` serves tensors of very many dimensions."""

    def __init__(self, parts: Kernel) -> None:
        self.parts: Final = parts
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        return self.parts.run(op, args, keys) if len(a._shape) > MOST_MASKED else super().run(op, args, keys)

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        a = args[0]
        s = specs[0]
        assert isinstance(a, TensorBase) and isinstance(s, Spec)
        n = len(a._shape)
        code = a._dtype.code
        stride = spread_strides(s.stride, dim_mask_or_all(args[1], n), n, args[2] is True)
        found: list[Any] = []
        for kernel in (_AMIN, _AMAX):
            found.append(_reduce(
                kernel,
                a._storage, int(a._offset), a._stride, code,
                None, 0, stride, code,
                a._shape, code, count(s.shape)))
        return found


@final
class CountNonzero(OneResult):
    """(self, dim): booleans, which are summed."""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        n = len(a._shape)
        seen = a if a._dtype is bool_ else dense_as(a, bool_)
        return _reduce(
            _SUM,
            seen._storage, int(seen._offset), seen._stride, bool_.code,
            out, offset, spread_strides(stride, dim_mask_or_all(args[1], n), n, False), code,
            a._shape, code, count(s.shape))


@final
class Trace(OneResult):
    """(self)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        return _reduce(
            _SUM,
            a._storage, int(a._offset), (a._stride[0] + a._stride[1],), a._dtype.code,
            out, offset, (0,), code,
            (min(a._shape[0], a._shape[1]),), code, 1)


@final
class ReduceWithIndex(SeveralResults):
    """max and min along one dimension: (self, dim, keepdim) -> values, indices"""

    def __init__(self, values: int, indices: int) -> None:
        self.values: Final = values
        self.indices: Final = indices

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        s = specs[0]
        a = args[0]
        assert isinstance(s, Spec) and isinstance(a, TensorBase)
        n: i64 = len(a._shape)
        stride = spread_strides(s.stride, dim_mask(args[1], n), n, args[2])
        code = a._dtype.code
        total = count(s.shape)
        offset = int(a._offset)
        if n == 0 or total == 0 or count(a._shape) < _MANY:
            return [
                _reduce(self.values, a._storage, offset, a._stride, code, None, 0, stride, code, a._shape, code, total),
                _reduce(self.indices, a._storage, offset, a._stride, code, None, 0, stride, int64.code, a._shape, code,
                        total)]
        # The elements are looked at once, and the values picked.
        indices = _reduce(self.indices, a._storage, offset, a._stride, code, None, 0, stride, int64.code, a._shape,
                          code, total)
        dim = wrapped(args[1], n)
        kept = list(a._shape)
        kept[dim] = 1
        values = _gather(a._storage, offset, a._stride, code, indices, 0, stride, int64.code, None, 0, stride, code,
                         tuple(kept), a._shape, dim)
        return [values, indices]


@final
class Scan(OneResult):
    """Running sums (kind 0) and products (kind 1): (self, dim[, dtype])"""

    def __init__(self, kind: int) -> None:
        self.kind: Final = kind

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return out._dtype is spec.dtype

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        return _cumsum(
            a._storage, int(a._offset), a._stride, a._dtype.code,
            out, offset, stride, code,
            a._shape, wrapped(args[1], len(a._shape)), s.compute.code, self.kind)


@final
class Moments(OneResult):
    """(self, dim, correction, keepdim): the variance, or its root."""

    def __init__(self, root: bool) -> None:
        self.root: Final = root

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        return moments(args, s, None, self.root)[0]


@final
class MomentsAndMean(SeveralResults):
    """The same, and the mean as a second result."""

    def __init__(self, root: bool) -> None:
        self.root: Final = root

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        s = specs[0]
        assert isinstance(s, Spec)
        return moments(args, s, specs[1], self.root)


def moments(args: tuple[Any, ...], s: Spec, mean: Any, root: bool) -> list[Any]:
    """Storages with the variance or its root, and with the mean, whose spec is None where it is not wanted."""
    a = args[0]
    assert isinstance(a, TensorBase)
    n: i64 = len(a._shape)
    stride = spread_strides(s.stride, dim_mask_or_all(args[1], n), n, args[3])
    correction = 1 if args[2] is None else args[2]
    if a._dtype.is_complex:
        return complex_moments(a, s, stride, correction, mean is not None, root)
    code = a._dtype.code
    out = new_storage(s)
    means: Any = None
    if isinstance(mean, Spec):
        means = new_storage(mean)
    _var(
        a._storage, int(a._offset), a._stride, code,
        out, 0, stride, code,
        means, 0, stride, code,
        a._shape, correction, root)
    return [out, means]


def complex_moments(a: TensorBase, s: Spec, stride: tuple[int, ...], correction: Any, mean: bool,
                    root: bool) -> list[Any]:
    """The variance of a complex tensor is the sum of its parts' variances."""
    code = s.dtype.code
    total = count(s.shape)
    double = tuple([2 * step for step in a._stride])
    parts: list[Any] = []
    for part in range(2):
        out = new_storage(s)
        _var(
            a._storage, int(2 * a._offset) + part, double, code,
            out, 0, stride, code,
            None, 0, (), 0,
            a._shape, correction, False)
        parts.append(out)
    one = (1,)
    out = _binary(_ADD, parts[0], 0, one, code, parts[1], 0, one, code, parts[0], 0, one, code, (total,), code, 1)
    if root:
        _unary(_SQRT, out, 0, one, code, out, 0, one, code, (total,), code)
    if not mean:
        return [out, None]
    code = a._dtype.code
    return [out, _reduce(
        _MEAN,
        a._storage, int(a._offset), a._stride, code,
        None, 0, stride, code,
        a._shape, code, total)]
