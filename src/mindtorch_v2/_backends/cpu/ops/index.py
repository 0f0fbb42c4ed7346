"""CPU lines of indexing operators."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dtype import complex32, int32, uint8
from ...._ops.rules.base import wrap_dim
from ...._ops.rules.dtype_checks import EXPONENTS, FLOAT8, not_implemented
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, numel
from ...common.runtime import copy_same_device
from ..kernels.dense import dense
from ..kernels.index import (
    Index,
    IndexAdd,
    IndexPut,
    Scatter,
    gather,
    index_select,
    masked_select,
    nonzero,
    scatter_into,
)
from ..lines import cpu, into, makes
from ..numpy_view import np_view

cpu("index", Index())
cpu("index_put", IndexPut())
cpu("nonzero", makes(nonzero))
cpu("masked_select", makes(masked_select))
cpu("gather", into(gather))
cpu("scatter.src", Scatter(0))
cpu("scatter.value", Scatter(0))
cpu("scatter.reduce", Scatter(-1))
cpu("scatter.value_reduce", Scatter(-1))
cpu("scatter_add", Scatter(1))
cpu("index_select", into(index_select))
cpu("index_add", IndexAdd())


def _scatter_reduce(out: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> None:
    """Start from self, or from the neutral element where an index points and self is left out."""
    copy_same_device(out, self)
    mode = {"sum": 1, "mean": 1, "prod": 2, "amax": 3, "amin": 4}[reduce]
    if not include_self:
        dt = self._dtype
        lowest, highest = (-float("inf"), float("inf")) if dt.is_inexact else _limits(dt)
        neutral: Any = {"sum": 0, "mean": 0, "prod": 1, "amax": lowest, "amin": highest}[reduce]
        scatter_into(out, dim, index, neutral, 0)
    scatter_into(out, dim, index, src, mode)
    if reduce == "mean":
        ones = self.new_ones(self.shape) if include_self else self.new_zeros(self.shape)
        scatter_into(ones, dim, index, self.new_ones(src.shape), 1)
        a, n = np_view(out), np_view(ones)
        n[n == 0] = 1
        if not self._dtype.is_inexact:
            a[...] = a // n
        else:
            a[...] = a / n


def _limits(dt: Any) -> tuple[Any, Any]:
    if dt.is_bool:
        return False, True
    import numpy

    info = numpy.iinfo(dt.np)
    return int(info.min), int(info.max)


cpu("scatter_reduce", into(_scatter_reduce, calls_ops=True))


def _rows(t: TensorBase, dim: int) -> Any:
    """A view with the indexed dimension in front."""
    import numpy

    array = np_view(t)
    return numpy.moveaxis(array.reshape(1) if array.ndim == 0 else array, dim if array.ndim else 0, 0)


def _checked(index: Any, size: int, text: str, least: int | None = None) -> Any:
    """Indices, which may count from the end unless `least` is 0; nothing may be written if one is out of range.

    A copy: NumPy reads an index again after it was checked, and another thread may write to it in between.
    """
    at = np_view(index).flatten()
    wrong = (at < (-size if least is None else least)) | (at >= size)
    if wrong.any():
        raise IndexError(text.format(size=size, value=int(at[wrong][0])))
    return at


def _bits(t: Any) -> Any:
    """Half complex numbers, which NumPy does not have, as integers of the same size: enough to move them."""
    return t.view(int32)


def _check_dtype(t: Any, kernel: str) -> None:
    if (FLOAT8 | EXPONENTS) >> t._dtype.code & 1:
        raise not_implemented(kernel, t._dtype)


def _is_plain(value: Any, dt: Any) -> bool:
    """A number that every conversion makes the same element of."""
    if type(value) is float:
        return bool(dt.is_floating_point)
    return type(value) is int and 0 <= value < 128 and bool(dt.is_floating_point or dt.is_integer)


def _write_places(out: TensorBase, dim: int, index: TensorBase, value: Any) -> bool:
    """Write a number, or the elements of a tensor, to places along a dimension; False, with nothing written, if one of
    them counts from the end or is out of range."""
    steps: tuple[int, ...] = ()
    data, offset, code = value, 0, 0
    if isinstance(value, TensorBase):
        data, offset, steps, code = value._storage, int(value._offset), value._stride or (1,), value._dtype.code
    shape = out._shape or (1,)
    d = wrap_dim(dim, len(out._shape))
    count = numel(index)
    step = index._stride[0] if index._shape else 1
    try:
        _native.scatter(
            out._storage, int(out._offset), out._stride or (1,), out._dtype.code,
            index._storage, int(index._offset), (0,) * d + (step,) + (0,) * (len(shape) - d - 1), index._dtype.code,
            data, offset, steps, code,
            shape[:d] + (count,) + shape[d + 1:], shape, d, 0)
    except (IndexError, RuntimeError):
        return False
    return True


def _index_fill(out: Any, self: Any, dim: int, index: Any, value: Any) -> None:
    _check_dtype(self, "index_fill_cpu")
    if _is_plain(value, out._dtype) and index._storage is not out._storage and numel(index) > 0 and numel(out) > 0:
        if out is not self:
            copy_same_device(out, self)
        if _write_places(out, dim, index, value):
            return
    size = self._shape[dim] if self._shape else 1
    d = wrap_dim(dim, len(self._shape))
    at = _checked(index, size, f"index {{value}} is out of bounds for dimension {d} with size {{size}}")
    if out._dtype is complex32:
        value = value if isinstance(value, TensorBase) else out.new_full((), value)
        out, self, value = _bits(out), _bits(self), _bits(value)
    if out is not self:
        copy_same_device(out, self)
    if isinstance(value, TensorBase):
        _rows(out, dim)[at] = np_view(value).copy()  # it may be one of the elements
    elif out._dtype is uint8 and isinstance(value, int):
        _rows(out, dim)[at] = value & 255
    else:
        _rows(out, dim)[at] = value


def _index_copy(out: Any, self: Any, dim: int, index: Any, source: Any) -> None:
    _check_dtype(self, "index_copy_cpu")
    if out._storage is source._storage or out._storage is index._storage:
        source, index = source.clone(), index.clone()
    if numel(source) > 0 and len(source._shape) == len(self._shape) and out._dtype is not complex32:
        if out is not self:
            copy_same_device(out, self)
        if _write_places(out, dim, index, source):
            return
    size = self._shape[dim] if self._shape else 1
    d = wrap_dim(dim, len(self._shape))
    text = f"index_copy_(): index {{value}} is out of bounds for dimension {d} with size {{size}}"
    at = _checked(index, size, text, 0)
    if out._dtype is complex32:
        out, self, source = _bits(out), _bits(self), _bits(source)
    if out._storage is not self._storage:
        copy_same_device(out, self)
    rows = _rows(out, dim)
    rows[at] = _rows(source, dim).reshape((len(at),) + rows.shape[1:])


def _masked_scatter(out: Any, self: Any, mask: Any, source: Any) -> None:
    copy_same_device(out, self)
    values = dense(source)
    _native.masked_scatter(
        out._storage, int(out._offset), out._stride, out._dtype.code,
        mask._storage, int(mask._offset), expand_strides(mask, out._shape), mask._dtype.code,
        values._storage, int(values._offset), values._stride, values._dtype.code,
        numel(values), out._shape)


def _take(out: Any, self: Any, index: Any) -> None:
    n = numel(self)
    x = dense(self)
    try:
        _native.index_get(
            x._storage, int(x._offset), (0,) * len(index._shape), x._dtype.code,
            ((index._storage, int(index._offset), index._stride),), (0,), (n,), (1,),
            out._storage, int(out._offset), out._stride, out._dtype.code, index._shape)
        return
    except (IndexError, NotImplementedError):
        pass  # it is refused below, in words of its own
    at = _checked(index, n, "out of range: tried to access index {value} on a tensor of {size} elements.")
    flat = np_view(dense(self)).reshape(-1)
    np_view(out).reshape(-1)[:] = flat[at]


cpu("index_fill.int_Scalar", into(_index_fill, aliasing=True))
cpu("index_fill.int_Tensor", into(_index_fill, aliasing=True))
cpu("masked_scatter", into(_masked_scatter))
cpu("index_copy", into(_index_copy, aliasing=True))
cpu("take", into(_take))
