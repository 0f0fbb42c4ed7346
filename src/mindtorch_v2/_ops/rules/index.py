"""Shape rules of indexing operators.

Invariant: index values are data and are checked by the kernels, before they write; everything else is checked here.
"""
from __future__ import annotations

from typing import Any

from ..._dispatch.op import Spec
from ..._dtype import int64
from ..._sizes import strided_bytes
from ..._strides import contiguous_strides, strides_in_order
from ..._tensor_base import TensorBase, is_contiguous, numel
from .base import like, wrap_dim
from .dtype_checks import check_number
from .layout import preserved_strides
from .pointwise import broadcast_shapes


def index_shape(t: TensorBase, indices: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of `t[indices]`: the broadcast indices stand where the indexed dimensions were, in front if these are
    not next to each other."""
    if len(indices) == 1 and indices[0] is not None and len(t._shape) > 0 and t._shape[0] != 0:
        alone: tuple[int, ...] = indices[0]._shape
        return alone + t._shape[1:]
    if len(indices) == 0:
        raise IndexError("at least one index must be provided")
    if len(indices) > len(t._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(t._shape)} (got {len(indices)})")
    common: tuple[int, ...] | None = None
    first = -1
    last = -1
    count = 0
    for d, x in enumerate(indices):
        if x is None:
            continue
        if first < 0:
            first = d
        last = d
        count += 1
        common = x._shape if common is None else common if common == x._shape else join(common, x._shape, indices)
    if common is None:
        return t._shape
    rest = [n for d, n in enumerate(t._shape) if d >= len(indices) or indices[d] is None]
    at = first if last - first + 1 == count else 0
    shape = tuple(rest[:at]) + tuple(common) + tuple(rest[at:])
    for d, x in enumerate(indices):
        if x is not None and t._shape[d] == 0 and 0 not in common:
            raise IndexError("index is out of bounds for dimension with size 0")
    return shape


def join(a: tuple[int, ...], b: tuple[int, ...], indices: tuple[Any, ...]) -> tuple[int, ...]:
    try:
        return broadcast_shapes(a, b)
    except RuntimeError:
        shapes = ", ".join([str(list(x._shape)) for x in indices if x is not None])
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}") from None


def index_rule(self: TensorBase, indices: tuple[Any, ...]) -> Spec:
    shape = index_shape(self, indices)
    # Sizes of one leave strides open: their order counts then too.
    plain = is_contiguous(self) and 1 not in self._shape
    for x in indices:
        if x is not None and not is_contiguous(x):
            plain = False
    if plain or len(shape) < 2:
        return like(self, shape)
    return Spec(shape, index_strides(self, indices, shape), self._dtype, self._dtype, self._device)


def index_strides(self: TensorBase, indices: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The result keeps the order in memory of the dimensions that stay, and that of the index tensors."""
    first = -1
    last = -1
    count = 0
    common = 0
    for d, x in enumerate(indices):
        if x is not None:
            if first < 0:
                first = d
            last = d
            count += 1
            common = max(common, len(x._shape))
    at = first if last - first + 1 == count else 0
    rest = [s for d, s in enumerate(self._stride) if d >= len(indices) or indices[d] is None]
    operands: list[tuple[int, ...]] = [tuple(rest[:at]) + (0,) * common + tuple(rest[at:])]
    for x in indices:
        if x is None:
            continue
        wide = [0] * len(shape)
        skip = at + common - len(x._shape)
        for k, n in enumerate(x._shape):
            if n != 1 or shape[skip + k] == 1:
                wide[skip + k] = x._stride[k]
        operands.append(tuple(wide))
    return strides_in_order(shape, operands)


def index_put_rule(self: TensorBase, indices: tuple[Any, ...], values: TensorBase, accumulate: bool) -> Spec:
    shape = index_shape(self, indices)
    if not fits(values._shape, shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values._shape)} cannot be broadcast to indexing result "
            f"of shape "
            f"{list(shape)}")
    if self._dtype is not values._dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {self._dtype.scalar_name} for the "
            f"destination and {values._dtype.scalar_name} for the source.")
    return Spec(self._shape, preserved_strides(self), self._dtype, self._dtype, self._device)


def fits(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    d = len(to) - len(shape)
    if d < 0:
        return False
    for i, n in enumerate(shape):
        if n != 1 and n != to[d + i]:
            return False
    return True


def check_index_dtype(op: str, index: TensorBase) -> None:
    if index._dtype is not int64 and index._dtype.name != "int32":
        raise RuntimeError(f"{op}(): Expected dtype int32/int64 for index")


def gather_rule(self: TensorBase, dim: int, index: TensorBase, sparse_grad: bool) -> Spec:
    if 0 in index._shape:
        wrap_dim(dim, len(self._shape))
        return like(self, index._shape)
    check_index_dtype("gather", index)
    check_ranks("gather", self, dim, index)
    d = wrap_dim(dim, len(self._shape))
    for i, n in enumerate(index._shape):
        if i != d and n > self._shape[i]:
            raise RuntimeError(
                f"Size does not match at dimension {i} expected index {list(index._shape)} to be no larger than self "
                f"{list(self._shape)} apart from dimension {d}")
    return like(self, index._shape)


def check_stored(value: Any, self: TensorBase) -> None:
    """The kernel converts the number, so tensors without data take any."""
    if self._device.type != "meta":
        check_number(value, self._dtype)


def check_ranks(op: str, self: TensorBase, dim: int, index: TensorBase) -> None:
    wrap_dim(dim, len(self._shape))
    if max(len(self._shape), 1) != max(len(index._shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as "
                           + ("input" if op == "gather" else "self") + " tensor")


def fits_in(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether the sizes that both shapes have, from the front, are no larger in the first."""
    for i, n in enumerate(large):
        if small[i] > n:
            return False
    return True


def scatter_check(op: str, self: TensorBase, dim: int, index: TensorBase, src: Any) -> None:
    wrap_dim(dim, len(self._shape))
    if 0 in index._shape:
        return
    check_index_dtype(op, index)
    check_ranks(op, self, dim, index)
    d = wrap_dim(dim, len(self._shape))
    bad = False
    for i, n in enumerate(index._shape):
        if i != d and n > self._shape[i]:
            bad = True
    if isinstance(src, TensorBase):
        if not bad and 0 < len(src._shape) < len(index._shape) and fits_in(index._shape, src._shape):
            # PyTorch compares sizes before it counts dimensions.
            wrap_dim(len(src._shape), len(src._shape))
        if max(len(src._shape), 1) != max(len(index._shape), 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        if len(index._shape) == 0 and 0 in src._shape:
            bad = True
        for i, n in enumerate(index._shape):
            if n > (src._shape[i] if len(src._shape) > 0 else 1):
                bad = True
        if bad:
            raise RuntimeError(
                f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from "
                f"dimension {d} "
                f"and to be no larger size than src {list(src._shape)}")
        if src._dtype is not self._dtype:
            raise RuntimeError(f"{op}(): Expected self.dtype to be equal to src.dtype")
    else:
        if bad:
            raise RuntimeError(
                f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from "
                f"dimension {d}")
        check_stored(src, self)


def scatter_rule(self: TensorBase, dim: int, index: TensorBase, src: Any) -> Spec:
    scatter_check("scatter", self, dim, index, src)
    return like(self)


def scatter_add_rule(self: TensorBase, dim: int, index: TensorBase, src: TensorBase) -> Spec:
    scatter_check("scatter", self, dim, index, src)
    return like(self)


def scatter_mode_rule(self: TensorBase, dim: int, index: TensorBase, src: Any, reduce: str) -> Spec:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    scatter_check("scatter", self, dim, index, src)
    return like(self)


def scatter_reduce_rule(self: TensorBase, dim: int, index: TensorBase, src: TensorBase, reduce: str,
                        include_self: bool) -> Spec:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce)
    scatter_check("scatter_reduce", self, dim, index, src)
    return like(self)


def index_select_rule(self: TensorBase, dim: int, index: TensorBase) -> Spec:
    d = wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index._dtype is not int64 and index._dtype.name != "int32":
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    n = index._shape[0] if index._shape else 1
    if len(self._shape) == 0:
        if n != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {n} value(s)")
        return like(self)
    return like(self, self._shape[:d] + (n,) + self._shape[d + 1:])


def without(shape: tuple[int, ...], d: int) -> tuple[int, ...]:
    return shape[:d] + shape[d + 1:]


def index_add_rule(self: TensorBase, dim: int, index: TensorBase, source: TensorBase, alpha: Any) -> Spec:
    d = wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError(f"index_add_(): Index is supposed to be a vector, but got dim: {len(index._shape)} with type: "
                         f"{index._dtype.scalar_name} and size: {list(index._shape)}")
    if index._dtype is not int64 and index._dtype.name != "int32":
        raise RuntimeError(f"index_add_(): Expected dtype int32/int64 for index but got: {index._dtype.scalar_name}")
    if self._dtype is not source._dtype:
        raise RuntimeError(f"index_add_(): self ({self._dtype.scalar_name}) and source ({source._dtype.scalar_name}) "
                           "must have the same scalar type")
    if d != 0 and d >= len(source._shape):
        raise RuntimeError(f"index_add_(): Indexing dim {d} is out of bounds of the source tensor with dim "
                           f"{len(source._shape)}")
    n = index._shape[0] if index._shape else 1
    if len(source._shape) == 0:
        if n != 1:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    elif n != source._shape[d]:
        raise RuntimeError(f"index_add_(): Number of indices ({n}) should be equal to source.size(dim): "
                           f"({source._shape[d]}), for dim: {d}")
    if len(source._shape) != len(self._shape) or without(source._shape, d) != without(self._shape, d):
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. "
                           f"Got self.shape = {list(self._shape)} source.shape = {list(source._shape)}")
    check_stored(alpha, self)
    return like(self)


def index_copy_rule(self: TensorBase, dim: int, index: TensorBase, source: TensorBase) -> Spec:
    d = wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {len(index._shape)})")
    n = index._shape[0] if index._shape else 1
    if len(source._shape) == 0:
        if n != 1:
            raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {n})")
    elif len(self._shape) > 0 and len(source._shape) != len(self._shape):
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. "
                         f"Source dimensionality ({len(source._shape)}), destination dimensionality "
                         f"({len(self._shape)})")
    if index._dtype is not int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index._dtype.scalar_name}")
    if self._dtype is not source._dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got (self) "
                           f"{self._dtype.scalar_name} and (source) {source._dtype.scalar_name}")
    mine = without(self._shape, d)
    theirs = without(source._shape, d)
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join([str(k) for k in mine])} at dimension {d} and source slice shape: "
            f"{' '.join([str(k) for k in theirs])} at dimension 0.")
    if len(source._shape) > 0 and n != source._shape[d]:
        raise IndexError(
            f"index_copy_(): Number of indices ({n}) should be equal to source.size(dim) ({source._shape[d]})")
    return like(self)


def index_fill_rule(self: TensorBase, dim: int, index: TensorBase, value: Any) -> Spec:
    wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if index._dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if isinstance(value, TensorBase) and len(value._shape) > 0:
        raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{len(value._shape)} dimension(s).")
    is_complex = value._dtype.is_complex if isinstance(value, TensorBase) else isinstance(value, complex)
    if is_complex and not self._dtype.is_complex and self._device.type != "meta":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if not isinstance(value, TensorBase):
        check_stored(value, self)
    return Spec(self._shape, preserved_strides(self), self._dtype, self._dtype, self._device)


def take_rule(self: TensorBase, index: TensorBase) -> Spec:
    if index._dtype is not int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index._dtype.scalar_name}")
    if numel(self) == 0 and numel(index) != 0:
        raise IndexError("take(): tried to take from an empty tensor")
    return like(self, index._shape)


def masked_shape(self: TensorBase, mask: TensorBase) -> tuple[int, ...]:
    """The common shape of a tensor and a mask that picks from it."""
    if not mask._dtype.is_bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = self._shape if self._shape == mask._shape else broadcast_shapes(mask._shape, self._shape)
    # PyTorch counts with a sum for each element of the mask.
    strided_bytes(shape, contiguous_strides(shape), 0, 8)
    return shape


def masked_scatter_rule(self: TensorBase, mask: TensorBase, source: TensorBase) -> Spec:
    if self._dtype is not source._dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{self._dtype.scalar_name} and {source._dtype.scalar_name}")
    if not mask._dtype.is_bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask._dtype.scalar_name}")
    return like(self, self._shape if self._shape == mask._shape else broadcast_shapes(self._shape, mask._shape))
