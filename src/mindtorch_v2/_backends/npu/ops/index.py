"""NPU lines of indexing: gather, scatter and their kin.

Invariant: indices stay on the device; one that is out of range is reported by the device at the next synchronisation.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._dispatch.keys import BACKENDS, CPU, NPU
from ...._dispatch.op import Kernel
from ...._dtype import int64
from ...._ops.rules.base import wrap_dim
from ...._ops.rules.index import masked_shape
from ...._ops.rules.pointwise import broadcast_shapes
from ...._strides import may_overlap
from ...._tensor_base import TensorBase, alias, is_contiguous, make, numel
from ...common.runtime import empty
from .. import creation, launch
from ..kernels import INDICES_FROM_HOST, Missing
from ..lines import accepts_dtype, choose, helper, into, line, makes, npu, parts
from .shape import by_parts, places

_index = registry.get("index")
_index_put = registry.get("index_put")
_ne = registry.get("ne")


# -- t[...] ---------------------------------------------------------------------------------------------------------
@helper
def entries(indices: Any) -> list[Any]:
    """Index tensors by dimension; the vendor reads a vector without elements as a dimension that is left alone."""
    home = next(t._device for t in indices if t is not None)
    return [empty((0,), (1,), int64, home) if t is None else t for t in indices]


def _has_point(self: Any, indices: Any, *rest: Any) -> bool:
    return any(t is not None and len(t._shape) == 0 for t in indices)


def _raised(indices: Any) -> tuple[Any, ...]:
    """Index tensors with at least one dimension, as the vendor wants them."""
    return tuple(t.unsqueeze(0) if t is not None and len(t._shape) == 0 else t for t in indices)


def _at_points(self: Any, indices: Any) -> Any:
    got = _index.call((self, _raised(indices)))
    if any(t is not None and len(t._shape) > 0 for t in indices):
        return got
    return got.squeeze(_where_it_stands(indices))


def _put_at_points(self: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    if all(t is None or len(t._shape) == 0 for t in indices):
        rest = len(self._shape) - sum(t is not None for t in indices)
        at = _where_it_stands(indices)
        if len(values._shape) > rest - at:
            values = values.unsqueeze(len(values._shape) - (rest - at))
    return _index_put.call((self, _raised(indices), values, accumulate))


def _where_it_stands(indices: Any) -> int:
    """The dimension of the result that the indices make."""
    named = [d for d, t in enumerate(indices) if t is not None]
    return named[0] if named[-1] - named[0] + 1 == len(named) else 0


npu("index", choose(_has_point, {
    False: line("aclnnIndex(self, entries(indices), out)", cast=("self",), otherwise=by_parts("index")),
    True: parts(_at_points)}))
def _kind_of_put(self: Any, indices: Any, *rest: Any) -> str:
    if _has_point(self, indices):
        return "point"
    return "plain" if is_contiguous(self) or not may_overlap(self._shape, self._stride) else "repeated"


def _put_repeated(out: Any, self: Any, indices: Any, values: Any, accumulate: bool) -> None:
    """Into a tensor that has places twice: the vendor would write elements that stay over those that change, so the
    places in memory are computed, and nothing else is written."""
    if out is not self:
        creation.copy(out, _index_put.call((self.contiguous(), indices, values, accumulate)))
        return
    at = _index.call((places(self._shape, self._stride, int(self._offset), self), indices))
    size = int(self._storage.nbytes) // int(self._dtype.itemsize)
    # With a version of its own: the caller's is raised once, by the operator that was called.
    whole = make(self._storage, 0, (size,), (1,), self._dtype, self._device, self._keys & BACKENDS)
    registry.get("index_put_").call((whole, (at,), values.expand(at._shape), accumulate))


npu("index_put", choose(_kind_of_put, {
    "plain": line("aclnnIndexPutImpl(out, entries(indices), values, accumulate, false)", starts="self",
                otherwise=by_parts("index_put")),
    "point": parts(_put_at_points), "repeated": into(_put_repeated, aliasing=True)}))
# Not aclnnTake: it refuses places counted from the end.
npu("take", parts(lambda self, index: _index.call((self.reshape((-1,)), (index,)))))


# -- along a dimension, one index for each element ------------------------------------------------------------------
def _coordinates(dim: int, index: Any) -> tuple[Any, ...]:
    """The index of each element along every dimension: its own along `dim`, where it stands along the others."""
    from .... import arange

    d = wrap_dim(dim, len(index._shape))
    grid = []
    for i, n in enumerate(index._shape):
        shape = [1] * len(index._shape)
        shape[i] = n
        grid.append(index if i == d else arange(n, device=index._device).view(tuple(shape)))
    return tuple(grid) if grid else (index.reshape((1,)),)


def _raised_to_one(t: Any) -> Any:
    return t if t._shape else t.reshape((1,))


def _gathered(self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    if numel(index) == 0:
        # It may then have any number of dimensions.
        return self.new_empty(index._shape)
    got = _index.call((_raised_to_one(self), _coordinates(dim, index)))
    return got.reshape(index._shape)


def _scattered(accumulate: bool) -> Kernel:
    """Scattering by coordinates. The source may be larger than the index: its front is taken."""
    def kernel(self: Any, dim: int, index: Any, src: Any, *reduce: Any) -> Any:
        if isinstance(src, TensorBase):
            values: Any = _raised_to_one(src)
            for i, n in enumerate(index._shape):
                values = values.narrow(i, 0, n)
        else:
            values = self.new_full((), src)
        put = _index_put.call((_raised_to_one(self), _coordinates(dim, index), values, accumulate))
        return put.reshape(self._shape)

    return parts(kernel)


_ONLY_SCATTER = Missing("only aclnnScatter multiplies places, in the dtypes and on the chips it is documented for")


def _scatter_reduced(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    if reduce in ("amax", "amin"):
        raise NotImplementedError(f"'scatter_reduce' with {reduce!r} is not available on NPU: only aclnnScatterReduce "
                                  "compares places, from CANN 8.5 and on the chips it is documented for")
    start = self if include_self else self.scatter(dim, index, 1 if reduce == "prod" else 0)
    if reduce == "prod":
        return start.scatter(dim, index, src, reduce="multiply")
    total = start.scatter_add(dim, index, src)
    if reduce == "sum":
        return total
    count = self.new_full(self._shape, int(include_self), dtype=int64)
    count = count.scatter_add(dim, index, index.new_ones(index._shape, dtype=int64)).clamp(min=1)
    return total / count if self._dtype.is_inexact else total.floor_divide(count).to(self._dtype)


npu("gather", "aclnnGather(self, dim, index, out)", cast=("self",), absent=parts(_gathered))
npu("scatter.src", "aclnnScatter(self, dim, index, src, 0, out)", absent=_scattered(False))
npu("scatter.value", "aclnnScatterValue(self, dim, index, value, 0, out)", absent=_scattered(False))
npu("scatter.reduce", choose("reduce", {
    "add": line("aclnnScatter(self, dim, index, src, 1, out)", absent=_scattered(True)),
    "multiply": line("aclnnScatter(self, dim, index, src, 2, out)", absent=_ONLY_SCATTER)}))
npu("scatter.value_reduce", choose("reduce", {
    "add": line("aclnnScatterValue(self, dim, index, value, 1, out)", absent=_scattered(True)),
    "multiply": line("aclnnScatterValue(self, dim, index, value, 2, out)", absent=_ONLY_SCATTER)}))
npu("scatter_add", "aclnnScatterAdd(self, dim, index, src, out)",
    inplace="aclnnInplaceScatter(self, dim, index, src, 1)", absent=_scattered(True))
npu("scatter_reduce", choose("reduce", {
    how: line(f"aclnnScatterReduce(self, dim, index, src, {code}, include_self, out)", absent=parts(_scatter_reduced))
    for how, code in (("sum", 1), ("prod", 2), ("amax", 3), ("amin", 4), ("mean", 5))}))


# -- along a dimension, one index for each slice --------------------------------------------------------------------
@helper
def along(self: Any, dim: int, index: Any) -> list[Any]:
    """The entries that index one dimension; a tensor without dimensions counts as having one."""
    if not isinstance(index, TensorBase):
        # A number of the CPU may stand beside tensors of an NPU, but is no index of them.
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                           f"{self._device} and cpu! (in index_fill)")
    d = dim + max(len(self._shape), 1) if dim < 0 else dim
    flat = alias(index, (int(numel(index)),), (index._stride or (1,)), index._offset)
    return [*(empty((0,), (1,), int64, index._device) for _ in range(d)), flat]


def _put_along(self: Any, dim: int, index: Any, source: Any, accumulate: bool) -> Any:
    d = wrap_dim(dim, len(self._shape))
    at = (*(None for _ in range(d)), _raised_to_one(index))
    return _index_put.call((_raised_to_one(self), at, source, accumulate)).reshape(self._shape)


npu("index_select", "aclnnIndexSelect(self, dim, index, out)")
npu("index_add", "aclnnIndexAdd(self, dim, index, source, alpha, out)", cast=("self", "source"),
    absent=parts(lambda self, dim, index, source, alpha: _put_along(self, dim, index, source * alpha, True)))
npu("index_copy", "aclnnInplaceIndexCopy(out, dim, index, source)", starts="self",
    absent=parts(lambda self, dim, index, source: _put_along(self, dim, index, source, False)))
# Not aclnnIndexFillTensor, which wants the index on the host.
npu("index_fill.int_Scalar", "aclnnIndexPutImpl(out, along(self, dim, index), value, false, false)", starts="self",
    otherwise=by_parts("index_fill.int_Scalar"))
npu("index_fill.int_Tensor", "aclnnIndexPutImpl(out, along(self, dim, index), value, false, false)", starts="self",
    cast=("value",), otherwise=by_parts("index_fill.int_Tensor"))


# -- masks, and what is not zero ------------------------------------------------------------------------------------
def _masked_select(self: Any, mask: Any) -> Any:
    shape = masked_shape(self, mask)
    count = 1
    for n in shape:
        count *= n
    out = empty((count,), (1,), self._dtype, self._device)
    if count == 0:
        return out
    if not accepts_dtype("aclnnMaskedSelect", self):
        return _MASKED_PARTS.run(registry.get("masked_select"), (self, mask), 0)
    found = launch.launch_dynamic(launch.resolve("aclnnMaskedSelect"), [self, mask, out], "masked_select")[0]
    return out if found == out._shape else creation.compact(alias(out, found, (1,), 0))


def _nonzero(self: Any) -> Any:
    rank = len(self._shape)
    if not accepts_dtype("aclnnNonzero", self):
        self = _ne.call((self, 0))
    if rank == 0:
        n = int(_nonzero(alias(self, (1,), (1,), self._offset))._shape[0])
        return empty((n, 0), (1, 1), int64, self._device)
    count = int(numel(self))
    rows = empty((count, rank), (rank, 1), int64, self._device)
    found: tuple[int, ...] = (0, rank)
    if count > 0:
        found = launch.launch_dynamic(launch.resolve("aclnnNonzero"), [self, rows], "nonzero")[0]
    n = int(found[0])
    # PyTorch lays the result out dimension by dimension.
    out = empty((n, rank), (1, n) if n > 0 else (rank, 1), int64, self._device)
    creation.copy(out, alias(rows, (n, rank), (rank, 1), 0))
    return out


_MASKED_PARTS = by_parts("masked_select")
def _masked_scattered(self: Any, mask: Any, source: Any) -> Any:
    """The k-th true place gets the k-th element."""
    shape = broadcast_shapes(self._shape, mask._shape)
    mask = mask.expand(shape)
    nth = (mask.reshape((-1,)).cumsum(0, dtype=int64) - 1).clamp(min=0).reshape(shape)
    return source.take(nth).where(mask, self)


npu("masked_select", makes(_masked_select))
npu("nonzero", makes(_nonzero))
npu("masked_scatter", "aclnnInplaceMaskedScatter(out, mask, source)", starts="self",
    absent=parts(_masked_scattered))

# Tensors of the CPU may index those of an NPU.
for _op in (_index, _index_put, _index_put.row.inplace_op):
    _op.kernels[int(CPU | NPU)] = INDICES_FROM_HOST
    _op.forget()
