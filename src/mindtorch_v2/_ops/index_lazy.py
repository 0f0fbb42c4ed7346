"""Indexing operators that are loaded when first used: writing by flat indices, reducing by index.

Invariant: rows without a line on a device are compositions of indexing and copies.
"""
from __future__ import annotations

from typing import Any

from .._backends.common.overlap import DISTINCT
from .._dispatch import registry
from .._dispatch.op import Spec
from .._dtype import int32, int64
from .._tensor_base import all_values, numel
from .determinism import alert
from .index import _scatter_reduce_backward
from .rules.base import like, wrap_dim
from .rules.index import index_shape
from .rules.layout import preserved_strides
from .rules.pointwise import broadcast_shapes
from .table import composite, op

_index_put = registry.get("index_put")


# -- flat places, reduction by index --------------------------------------------------------------------------------
def _put_meta(self: Any, index: Any, source: Any, accumulate: bool) -> Spec:
    if numel(index) != numel(source):
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got "
                           f"source.numel() = {numel(source)}, index.numel() = {numel(index)}")
    if index._dtype.name != "int64":
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index._dtype.scalar_name}")
    if source._dtype is not self._dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{self._dtype.scalar_name} and source.dtype = {source._dtype.scalar_name}")
    if numel(self) == 0 and numel(index):
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    if not accumulate and self._device.type != "cpu":
        alert("put_", self)
    return Spec(self._shape, preserved_strides(self), self._dtype, self._dtype, self._device)


def _put(self: Any, index: Any, source: Any, accumulate: bool) -> Any:
    # Here and not in the rule, which is asked twice for the in-place form: a warning comes once.
    if not accumulate and self._device.type == "cpu":
        alert("put_", self)
    return put_places(self, index, source, accumulate)


def put_places(self: Any, index: Any, source: Any, accumulate: bool) -> Any:
    if numel(index) == 0:
        return self.clone()
    flat, n = self.reshape((-1,)), numel(self)
    if self._device.type == "cpu":
        given = all_values(index)
        outside = given[(given < -n).logical_or(given >= n)].tolist()
        if outside:
            raise IndexError(f"out of range: tried to access index {outside[0]} on a tensor of {n} elements.")
    return _index_put.call((flat, (index.reshape((-1,)),), source.reshape((-1,)), accumulate)).reshape(self._shape)


op("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", meta=_put_meta, inplace=True,
   overlap=DISTINCT,
   kernel=_put,
   grad=dict(self=lambda g, index, source_shape, accumulate: g if accumulate else registry.get("put").call(
                 (g, index, g.new_zeros(source_shape), False)),
             source=lambda g, index, source_shape: g.take(index).reshape(source_shape)))


def _spread(index: Any, source: Any, dim: int) -> tuple[Any, Any]:
    """The index at every element of the source, for operators that take one for each."""
    d = wrap_dim(dim, source.dim())
    if not source.dim():
        return index.reshape(()), source
    shape = (1,) * d + (-1,) + (1,) * (source.dim() - 1 - d)
    return index.reshape(shape).expand(source._shape), source


_MODES = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}


def _index_reduce_meta(self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool) -> Spec:
    if reduce not in _MODES:
        raise RuntimeError("index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
                           f"{reduce}.")
    wrap_dim(dim, self.dim())
    if index._dtype.name not in ("int32", "int64"):
        raise RuntimeError("index_reduce(): Expected dtype int32/int64 for index")
    if source._dtype is not self._dtype:
        raise RuntimeError("index_reduce(): self and source expected to have the same scalar type")
    if index.dim() > 1:
        raise RuntimeError("index_reduce(): Index is supposed to be a vector")
    if source.dim() and numel(index) != source._shape[wrap_dim(dim, source.dim())]:
        raise RuntimeError(f"index_reduce_(): Number of indices ({numel(index)}) should be equal to source.size(dim): "
                           f"({source._shape[wrap_dim(dim, source.dim())]}), for dim: {dim}")
    if not source.dim() and numel(index) != 1:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return like(self)


def _index_reduce(self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool) -> Any:
    if numel(source) == 0:
        return self.clone()
    size = self._shape[wrap_dim(dim, self.dim())] if self.dim() else 1
    seen = all_values(index)
    if self._device.type == "cpu" and bool((seen < 0).logical_or(seen >= size).any()):
        raise IndexError("index out of range in self")
    at, values = _spread(index.long(), source, dim)
    return self.scatter_reduce(dim, at, values, reduce, include_self=include_self)


def _index_reduce_grad(g: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool,
                       result: Any) -> tuple[Any, Any]:
    if numel(source) == 0:
        return g, source * 0
    at, values = _spread(index.long(), source, dim)
    return _scatter_reduce_backward(g, self, dim, at, values, reduce, include_self, result)


op("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
   meta=_index_reduce_meta, inplace=True, overlap=DISTINCT, out=True, kernel=_index_reduce,
   grad={("self", "source"): _index_reduce_grad})


# -- indices that count where a mask says so --------------------------------------------------------------------------
def _plain_indices(self: Any, indices: Any) -> tuple[Any, ...]:
    if len(indices) > len(self._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(self._shape)} (got {len(indices)})")
    for i in indices:
        if i is not None and i._dtype is not int64 and i._dtype is not int32:
            raise RuntimeError(f"_unsafe_masked_index found unexpected index type {i._dtype.scalar_name}")
    return tuple(i if i is None else i.long() for i in indices)


def _masked_index(self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """self[indices] where the mask is true; elsewhere the indices may be anything."""
    indices = _plain_indices(self, indices)
    kept = tuple(i if i is None else i.clamp(min=0, max=self._shape[d] - 1) for d, i in enumerate(indices))
    if not numel(self):
        shape: tuple[int, ...] = ()
        for i in indices:
            shape = shape if i is None else broadcast_shapes(shape, tuple(i._shape))
        rest = tuple(s for d, s in enumerate(self._shape) if d >= len(indices) or indices[d] is None)
        return self.new_full(broadcast_shapes(tuple(mask._shape), (*shape, *rest)), fill)
    return registry.get("index").call((self, kept)).masked_fill(mask.logical_not(), fill)


def _masked_put(self: Any, mask: Any, indices: Any, values: Any) -> Any:
    """A copy of self with values added at the indices where the mask is true."""
    indices = _plain_indices(self, indices)
    index_shape(self, indices)
    if not numel(self):
        return self.clone()
    kept = tuple(i if i is None else i.clamp(min=-self._shape[d], max=self._shape[d] - 1)
                 for d, i in enumerate(indices))
    return _index_put.call((self, kept, values.masked_fill(mask.logical_not(), 0), True))


composite("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor", _masked_index,
          method=False)
composite("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
          _masked_put, method=False)
