"""Questions about a tensor, and changes of its geometry, as operators of `torch.ops.aten`.

Invariant: each asks or calls the tensor; none is a function or method of its own.
"""
from __future__ import annotations

from typing import Any

from .._backends.common.overlap import is_dense, repeated_dim
from .._layout import channels_last, channels_last_3d, contiguous_format
from .._strides import like_channels_last
from .._tensor_base import is_contiguous, numel
from .inplace_views import resize_, set_
from .rules.base import wrap_dim
from .table import composite


def _ask(schema: str, fn: Any, function: bool = False) -> None:
    composite(schema, fn, function=function, method=False)


def _size_at(self: Any, dim: int) -> int:
    at: int = self._shape[wrap_dim(dim, self.dim())] if self._shape else self.size(dim)
    return at


def _stride_at(self: Any, dim: int) -> int:
    at: int = self._stride[wrap_dim(dim, self.dim())] if self._shape else self.stride(dim)
    return at


_ask("dim(Tensor self) -> int", lambda self: self.dim())
for _prefix, _kind in (("", "int"), ("sym_", "SymInt")):
    _ask(f"{_prefix}size(Tensor self) -> {_kind}[]", lambda self: list(self._shape))
    _ask(f"{_prefix}size.int(Tensor self, int dim) -> {_kind}", _size_at)
    _ask(f"{_prefix}stride(Tensor self) -> {_kind}[]", lambda self: list(self._stride))
    _ask(f"{_prefix}stride.int(Tensor self, int dim) -> {_kind}", _stride_at)
    _ask(f"{_prefix}numel(Tensor self) -> {_kind}", numel)
    _ask(f"{_prefix}storage_offset(Tensor self) -> {_kind}", lambda self: self._offset)
_ask("is_same_size(Tensor self, Tensor other) -> bool", lambda self, other: self._shape == other._shape)
_ask("is_contiguous(Tensor self) -> bool", is_contiguous)
_ask("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
     lambda self, memory_format: self.is_contiguous(memory_format=memory_format))
_ask("sym_is_contiguous(Tensor self, MemoryFormat? memory_format=None) -> bool",
     lambda self, memory_format: self.is_contiguous(memory_format=memory_format or contiguous_format))
_ask("is_non_overlapping_and_dense(Tensor self) -> bool", is_dense)
_ORDERS = {channels_last: [1, 3, 2, 0], channels_last_3d: [1, 4, 3, 2, 0]}


def _strides_like(self: Any, memory_format: Any) -> bool:
    order = _ORDERS.get(memory_format)
    return order is not None and self.dim() == len(order) and like_channels_last(self._shape, self._stride, order)


_ask("is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool", _strides_like)


def _overlap(self: Any) -> int:
    """0: every element has its own place; 1: some share one; 2: neither was found out."""
    if is_dense(self):
        return 0
    return 1 if repeated_dim(self) >= 0 else 2


_ask("_debug_has_internal_overlap(Tensor self) -> int", _overlap, True)
_ask("cudnn_is_acceptable(Tensor self) -> bool", lambda self: False, True)


def _zeros_for(self: Any, other: Any, self_num_batch_dims: int) -> Any:
    """Zeros over the batch dimensions of one tensor, in the geometry of another."""
    shape = (*self._shape[:self_num_batch_dims], *other._shape)
    if not self_num_batch_dims:
        stride: tuple[int, ...] = tuple(other._stride)
    else:
        step, batch = other.untyped_storage().nbytes() // other._dtype.itemsize, []
        for n in reversed(self._shape[:self_num_batch_dims]):
            batch.append(step)
            step *= n
        stride = (*reversed(batch), *other._stride)
    return other.new_empty_strided(shape, stride).zero_()


_ask("_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor", _zeros_for)

_ask("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
     lambda self, size, memory_format: resize_(self, size, memory_format=memory_format))
_ask("set_(Tensor(a!) self) -> Tensor(a!)", set_)
_ask("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", set_)
_ask("set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] "
     "stride=[]) -> Tensor(a!)", lambda self, source, storage_offset, size, stride: set_(
         self, source, storage_offset, size, stride or None))
