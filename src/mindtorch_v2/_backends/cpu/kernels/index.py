"""Launches of indexing: the geometry of indexed tensors for the native module.

Invariant: index values are checked by the native kernels before they write anything.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._core_operators import CORE
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Op, Spec
from ...._dtype import bool as bool_
from ...._dtype import complex32, float8_e8m0fnu, int64
from ...._mypyc import i64
from ...._ops.rules.base import wrap_dim
from ...._ops.rules.dtype_checks import not_implemented
from ...._ops.rules.index import index_shape, masked_shape
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, make, numel
from ...common.runtime import copy_same_device, empty_contiguous
from .base import Filled, OneResult

_index_get: Final[Any] = _native.index_get
_index_put: Final[Any] = _native.index_put
_gather: Final[Any] = _native.gather
_scatter: Final[Any] = _native.scatter
_index_select: Final[Any] = _native.index_select
_index_add: Final[Any] = _native.index_add
_nonzero_count: Final[Any] = _native.nonzero_count
_nonzero: Final[Any] = _native.nonzero
_masked_select: Final[Any] = _native.masked_select

_FIRST: Final[tuple[int, ...]] = (0,)


def masked_select(t: TensorBase, mask: TensorBase) -> TensorBase:
    """The elements under a mask, one after the other."""
    shape = masked_shape(t, mask)
    data, n = _masked_select(
        t._storage, int(t._offset), expand_strides(t, shape), t._dtype.code,
        mask._storage, int(mask._offset), expand_strides(mask, shape), mask._dtype.code,
        shape, None, 0)
    return make(data, 0, (n,), (1,), t._dtype, CPU, CPU_KEY)


@final
class Geometry:
    """An indexed tensor laid out over the result's shape: index dimensions have stride 0 and are stepped by hand."""

    def __init__(self, t: TensorBase, indices: tuple[Any, ...], shape: tuple[int, ...]) -> None:
        x = indices[0]
        if len(indices) == 1 and isinstance(x, TensorBase):
            # One index tensor for the first dimension.
            self.strides: tuple[int, ...] = (0,) * len(x._shape) + t._stride[1:]
            wide_one = x._stride + (0,) * (len(shape) - len(x._shape))
            self.items: tuple[Any, ...] = ((x._storage, int(x._offset), wide_one),)
            self.dims: tuple[int, ...] = _FIRST
            self.sizes: tuple[int, ...] = t._shape[:1]
            self.steps: tuple[int, ...] = t._stride[:1]
            return
        common: i64 = 0
        first: i64 = -1
        last: i64 = -1
        count: i64 = 0
        d: i64 = 0
        for x in indices:
            if isinstance(x, TensorBase):
                if first < 0:
                    first = d
                last = d
                count += 1
                if len(x._shape) > common:
                    common = len(x._shape)
            d += 1
        at = first if last - first + 1 == count else 0
        n: i64 = len(shape)
        strides: list[int] = []
        d = 0
        done: i64 = 0
        rest: list[int] = []
        for s in t._stride:
            if d >= len(indices) or indices[d] is None:
                rest.append(s)
            d += 1
        while done < at:
            strides.append(rest[done])
            done += 1
        for _ in range(common):
            strides.append(0)
        while done < len(rest):
            strides.append(rest[done])
            done += 1
        self.strides = tuple(strides)
        items: list[Any] = []
        dims: list[int] = []
        sizes: list[int] = []
        steps: list[int] = []
        d = 0
        for x in indices:
            if isinstance(x, TensorBase):
                own = x._stride
                wide: list[int] = [0] * n
                skip = at + common - len(x._shape)
                k: i64 = 0
                while k < len(x._shape):
                    if x._shape[k] != 1:
                        wide[skip + k] = own[k]
                    k += 1
                items.append((x._storage, int(x._offset), tuple(wide)))
                # PyTorch counts index tensors in its error, not dimensions.
                dims.append(len(dims))
                sizes.append(t._shape[d])
                steps.append(t._stride[d])
            d += 1
        self.items = tuple(items)
        self.dims = tuple(dims)
        self.sizes = tuple(sizes)
        self.steps = tuple(steps)


@final
class Index(OneResult):
    """`t[indices]`."""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        g = Geometry(t, args[1], s.shape)
        return _index_get(
            t._storage, int(t._offset), g.strides, t._dtype.code,
            g.items, g.dims, g.sizes, g.steps,
            out, offset, stride, code,
            s.shape)


class Updated(Filled):
    """The first argument with some elements changed: a copy of it, or itself in place. A subclass writes `update`.

    source: the position of what is written; in place it may share no memory with the target. -1: `update` sees to it.
    """

    def __init__(self, source: int) -> None:
        self.source: Final = source

    def writes(self, args: tuple[Any, ...], out: TensorBase) -> bool:
        if out is not args[0]:
            return False
        src = args[self.source] if self.source >= 0 else None
        return not isinstance(src, TensorBase) or src._storage is not out._storage

    def fill(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        t = args[0]
        assert isinstance(t, TensorBase)
        if t is not out:
            copy_same_device(out, t)
        self.update(out, args)

    def update(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        raise NotImplementedError


@final
class IndexPut(Updated):
    """`t[indices] = values`, or `+=` with accumulate: (self, indices, values, accumulate)"""

    def __init__(self) -> None:
        super().__init__(-1)

    def update(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        put(out, args[1], args[2], args[3])


def put(t: TensorBase, indices: tuple[Any, ...], values: TensorBase, accumulate: bool) -> None:
    if t._dtype is float8_e8m0fnu:
        raise not_implemented("index_put", t._dtype)
    shape = index_shape(t, indices)
    g = Geometry(t, indices, shape)
    if values._storage is t._storage:
        copy = empty_contiguous(values._shape, values._dtype, CPU)
        copy_same_device(copy, values)
        values = copy
    _index_put(
        t._storage, int(t._offset), g.strides, t._dtype.code,
        g.items, g.dims, g.sizes, g.steps,
        values._storage, int(values._offset), expand_strides(values, shape), values._dtype.code,
        shape, accumulate)


def nonzero(t: TensorBase) -> TensorBase:
    if t._dtype is complex32:  # the native loop asks one number of each element
        t = CORE.to_copy.call((t, bool_, None, None, False))
    n = _nonzero_count(t._storage, int(t._offset), t._stride, t._dtype.code, t._shape)
    ndim = len(t._shape)
    # PyTorch lays the result out dimension by dimension.
    stride = (1, n) if n > 0 and ndim > 0 else (ndim if ndim > 0 else 1, 1)
    out = make(_native.Storage(n * ndim * 8), 0, (n, ndim), stride, int64, CPU, CPU_KEY)
    if n * ndim > 0:
        _nonzero(t._storage, int(t._offset), t._stride, t._dtype.code, t._shape, out._storage, 0, out._stride, 4, n)
    return out


def _up(t: TensorBase) -> tuple[int, ...]:
    """Strides of a tensor whose 0-dim form counts as one element."""
    return t._stride if len(t._shape) > 0 else (1,)


def _shape(t: TensorBase) -> tuple[int, ...]:
    return t._shape if len(t._shape) > 0 else (1,)


def gather(out: TensorBase, t: TensorBase, dim: int, index: TensorBase, sparse_grad: bool) -> None:
    if numel(index) == 0:
        return
    _gather(
        t._storage, int(t._offset), _up(t), t._dtype.code,
        index._storage, int(index._offset), _up(index), index._dtype.code,
        out._storage, int(out._offset), _up(out), out._dtype.code,
        _shape(index), _shape(t), wrap_dim(dim, len(t._shape)))


def scatter_into(out: TensorBase, dim: int, index: TensorBase, src: Any, mode: int) -> None:
    if numel(index) == 0:
        return
    d = wrap_dim(dim, len(out._shape))
    if isinstance(src, TensorBase):
        _scatter(
            out._storage, int(out._offset), _up(out), out._dtype.code,
            index._storage, int(index._offset), _up(index), index._dtype.code,
            src._storage, int(src._offset), _up(src), src._dtype.code,
            _shape(index), _shape(out), d, mode)
    else:
        _scatter(
            out._storage, int(out._offset), _up(out), out._dtype.code,
            index._storage, int(index._offset), _up(index), index._dtype.code,
            src, 0, (), 0,
            _shape(index), _shape(out), d, mode)


@final
class Scatter(Updated):
    """scatter and scatter_add: (self, dim, index, src or value[, reduce]); `mode` as in the native kernel, -1 to read
    it from the `reduce` argument."""

    def __init__(self, mode: int) -> None:
        super().__init__(3)
        self.mode: Final = mode

    def update(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        mode = self.mode
        if mode < 0:
            mode = 1 if args[4] == "add" else 2
        scatter_into(out, args[1], args[2], args[3], mode)


def _check_select(t: TensorBase, d: int, index: TensorBase) -> None:
    """Nothing is read of a tensor without elements; its indices are still checked, in words of their own."""
    size = t._shape[d]
    positions: Any = index
    for i in positions.reshape(-1).tolist():
        if size == 0:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        if not 0 <= i < size:
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={i} axis_dim={size}")


def index_select(out: TensorBase, t: TensorBase, dim: int, index: TensorBase) -> None:
    d = wrap_dim(dim, len(t._shape))
    if numel(t) == 0 and len(t._shape) > 1:
        _check_select(t, d, index)
    if numel(out) == 0:
        return
    _index_select(
        t._storage, int(t._offset), _up(t), t._dtype.code,
        _shape(t), d,
        index._storage, int(index._offset), index._stride, index._dtype.code,
        numel(index),
        out._storage, int(out._offset), _up(out), out._dtype.code)


@final
class IndexAdd(Updated):
    """(self, dim, index, source, alpha)"""

    def __init__(self) -> None:
        super().__init__(3)

    def update(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        index_add_into(out, args[1], args[2], args[3], args[4])


def index_add_into(out: TensorBase, dim: int, index: TensorBase, src: TensorBase, alpha: Any) -> None:
    if numel(index) == 0:
        return
    d = wrap_dim(dim, len(out._shape))
    _index_add(
        out._storage, int(out._offset), _up(out), out._dtype.code,
        _shape(out), d,
        index._storage, int(index._offset), index._stride, index._dtype.code,
        numel(index),
        src._storage, int(src._offset), _up(src), src._dtype.code,
        alpha)
