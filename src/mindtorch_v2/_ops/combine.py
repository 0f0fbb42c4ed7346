"""Combinations of tensors: Kronecker and cross products, pairs, writing by flat places and reducing by index.

Invariant: rows without a line on a device are compositions of indexing, products and copies.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._sizes import dense_bytes
from .._tensor_base import numel
from .._warn import warn_once
from .index import _scatter_reduce_backward
from .rules.base import like, spec, wrap_dim
from .rules.layout import preserved_strides
from .rules.pointwise import broadcast_shapes, promoted
from .table import composite, op

_index_put = registry.get("index_put")


def _kron(self: Any, other: Any) -> Any:
    n = max(self.dim(), other.dim())
    a = (1,) * (n - self.dim()) + tuple(self._shape)
    b = (1,) * (n - other.dim()) + tuple(other._shape)
    left = self.reshape(tuple(x for s in a for x in (s, 1)))
    right = other.reshape(tuple(x for s in b for x in (1, s)))
    return registry.get("_unsafe_view").call((left * right, tuple(x * y for x, y in zip(a, b))))


composite("kron(Tensor self, Tensor other) -> Tensor", _kron, out=True)


_MOST_CHOSEN = 1 << 28


def _combinations(self: Any, r: int, with_replacement: bool) -> Any:
    if self.dim() != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(self._shape)))
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return self.new_empty((0,))
    n = numel(self)
    # More of them than can be counted, or than memory holds, are refused before the first is made.
    pool = n + r - 1 if with_replacement else n
    if r > _MOST_CHOSEN or min(r, max(pool - r, 0)) > 64 and pool > 128:
        raise RuntimeError("numel: integer multiplication overflow")
    count = math.comb(pool, r)
    dense_bytes((count, r), self._dtype.itemsize)
    self.new_empty((count, r))
    from itertools import combinations, combinations_with_replacement

    from .._dtype import int64
    from .._from_data import tensor

    chosen = (combinations_with_replacement if with_replacement else combinations)(range(n), r)
    at = tensor(list(chosen), dtype=int64, device=self._device).reshape((-1, r))
    return self.index_select(0, at.reshape((-1,))).reshape(at._shape)


composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", _combinations,
          method=False)


# -- cross products -----------------------------------------------------------------------------------------------
def _cross_meta(self: Any, other: Any, dim: int) -> Spec:
    if self.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = wrap_dim(dim, self.dim())
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if self._shape[d] != 3 or other._shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {self._shape[d]} and "
                           f"{other._shape[d]}")
    shape = broadcast_shapes(self._shape, other._shape)
    dt = promoted(self._dtype, other._dtype)
    if dt is not self._dtype or dt is not other._dtype:
        raise RuntimeError(f"linalg.cross: expected both inputs to have the same dtype, got "
                           f"{self._dtype.scalar_name} and {other._dtype.scalar_name}")
    return spec(shape, dt, self._device)


def _cross(self: Any, other: Any, dim: int) -> Any:
    d = wrap_dim(dim, self.dim())

    def part(t: Any, i: int) -> Any:
        return t.select(d, i)

    rows = [part(self, (i + 1) % 3) * part(other, (i + 2) % 3) - part(self, (i + 2) % 3) * part(other, (i + 1) % 3)
            for i in range(3)]
    return registry.get("stack").call((tuple(rows), d))


def _conj(t: Any) -> Any:
    return t.conj() if t._dtype.is_complex else t


CROSS: Op = op("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", meta=_cross_meta, out=True,
               kernel=_cross, function=False, method=False,
               grad=dict(self=lambda g, other, dim: CROSS.call((_conj(other).expand(g._shape), g, dim)),
                         other=lambda g, self, dim: CROSS.call((g, _conj(self).expand(g._shape), dim))))


def _old_cross(self: Any, other: Any, dim: int | None) -> Any:
    if dim is None:
        warn_once(
             "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly "
             "or simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of "
             "linalg.cross in a future release.")
        dim = next((i for i, n in enumerate(self._shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return CROSS.call((self, other, dim))


composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", _old_cross, out=True)


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
    return Spec(self._shape, preserved_strides(self), self._dtype, self._dtype, self._device)


def _put(self: Any, index: Any, source: Any, accumulate: bool) -> Any:
    if numel(index) == 0:
        return self.clone()
    flat, n = self.reshape((-1,)), numel(self)
    if self._device.type == "cpu":
        outside = index[(index < -n).logical_or(index >= n)].tolist()
        if outside:
            raise IndexError(f"out of range: tried to access index {outside[0]} on a tensor of {n} elements.")
    return _index_put.call((flat, (index.reshape((-1,)),), source.reshape((-1,)), accumulate)).reshape(self._shape)


op("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", meta=_put_meta, inplace=True,
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
    at, values = _spread(index.long(), source, dim)
    return self.scatter_reduce(dim, at, values, reduce, include_self=include_self)


def _index_reduce_grad(g: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool,
                       result: Any) -> tuple[Any, Any]:
    if numel(source) == 0:
        return g, source * 0
    at, values = _spread(index.long(), source, dim)
    return _scatter_reduce_backward(g, self, dim, at, values, reduce, include_self, result)


op("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
   meta=_index_reduce_meta, inplace=True, out=True, kernel=_index_reduce,
   grad={("self", "source"): _index_reduce_grad})


# -- tensors in equal parts -------------------------------------------------------------------------------------------
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Any:
    """Each tensor in `num_chunks` parts, the last ones filled with zeros; equal parts are joined."""
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if dim < 0 and any(t.dim() != tensors[0].dim() for t in tensors):
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    at = wrap_dim(dim, tensors[0].dim())
    parts = []
    for t in tensors:
        if not numel(t):
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if t._dtype is not tensors[0]._dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if at >= t.dim():
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t._shape[:at] != tensors[0]._shape[:at]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        lead, size = tuple(t._shape[:at]), t._shape[at]
        each = -(-size // num_chunks)
        if each * num_chunks != size:
            filling = t.new_zeros((*lead, each * num_chunks - size, *t._shape[at + 1:]))
            t = registry.get("cat").call(((t, filling), at))
        parts.append(t.reshape((*lead, num_chunks, numel(t) // max(math.prod(lead) * num_chunks, 1))))
    return registry.get("cat").call((tuple(parts), at + 1))


composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
          lambda tensors, dim, num_chunks: _chunk_cat(tuple(t.detach() for t in tensors), dim, num_chunks), out=True)


# -- indices that count where a mask says so --------------------------------------------------------------------------
def _masked_index(self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """self[indices] where the mask is true; elsewhere the indices may be anything."""
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
    if not numel(self):
        return self.clone()
    kept = tuple(i if i is None else i.clamp(min=-self._shape[d], max=self._shape[d] - 1)
                 for d, i in enumerate(indices))
    return _index_put.call((self, kept, values.masked_fill(mask.logical_not(), 0), True))


composite("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor", _masked_index,
          method=False)
composite("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
          _masked_put, method=False)
