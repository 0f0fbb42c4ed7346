"""Jagged layout: operators that show the same values with other dimensions, take parts, or join.

Invariant: results share the values wherever the operator of the values gives a view.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import Op
from .._ops.rules.base import wrap_dim
from .construct import from_padded, padded_to
from .history import components, values_of, wrap
from .jagged import inner
from .parts import Jagged, is_nested, parts, structure_of
from .table import JAGGED, first_nested, serves


def packed_only(self: Any, name: str) -> None:
    """Operators that PyTorch has for tensors without holes, whose ragged dimension is the second."""
    structure = structure_of(self)
    if structure.lengths is not None or structure.ragged != 1:
        raise ValueError(f"NestedTensor {name}: expected self to be a contiguous jagged layout NestedTensor")


@serves(JAGGED, "unbind")
def _unbind(op: Op, self: Any, dim: int) -> Any:
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(components(self))


@serves(JAGGED, "alias", "view_as_real", "view_as_complex")
def _same(op: Op, self: Any) -> Any:
    return wrap(op.call((values_of(self),)), structure_of(self))


@serves(JAGGED, "transpose")
def _transpose(op: Op, self: Any, dim0: int, dim1: int) -> Any:
    a, b = wrap_dim(dim0, self.dim()), wrap_dim(dim1, self.dim())
    structure = structure_of(self)
    if structure.ragged not in (a, b):
        dims = inner(self, a, "transpose"), inner(self, b, "transpose")
        return wrap(op.call((values_of(self), *dims)), structure)
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    found = op.call((values_of(self), a - 1, b - 1))
    return wrap(found, structure.at(b if a == structure.ragged else a))


@serves(JAGGED, "permute")
def _permute(op: Op, self: Any, dims: Any) -> Any:
    structure, ndim = structure_of(self), self.dim()
    if ndim != len(dims):
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({ndim}) does not match the length of the desired "
            f"ordering of dimensions ({len(dims)})."
        )
    order = [wrap_dim(d, ndim) for d in dims]
    if len(set(order)) != ndim:
        raise ValueError("permute(): duplicate dims are not allowed.")
    if structure.lengths is not None:
        raise ValueError("permute(): not supported on jagged layout nested tensor with holes")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    found = op.call((values_of(self), tuple([d - 1 for d in order[1:]])))
    return wrap(found, structure.at(order.index(structure.ragged)))


@serves(JAGGED, "unsqueeze")
def _unsqueeze(op: Op, self: Any, dim: int) -> Any:
    structure = structure_of(self)
    d = inner(self, dim, "unsqueeze", ragged=True, extra=1)
    return wrap(op.call((values_of(self), d)), structure.at(structure.ragged + (d <= structure.ragged - 1)))


@serves(JAGGED, "squeeze.dim")
def _squeeze(op: Op, self: Any, dim: int) -> Any:
    packed_only(self, "squeeze_dim(self: jt, dim: any)")
    return wrap(op.call((values_of(self), inner(self, dim, "squeeze"))), structure_of(self))


@serves(JAGGED, "split", "split_with_sizes", "narrow", "slice")
def _parts_along(op: Op, self: Any, *rest: Any) -> Any:
    """Parts along a dimension that all have alike."""
    packed_only(self, f"{op.title()}(self: jt, ...)")
    place = op.schema.index("dim") - 1
    d = inner(self, rest[place], op.title())
    found = op.call((values_of(self), *[d if i == place else a for i, a in enumerate(rest)]))
    many = isinstance(found, (tuple, list))
    return tuple([wrap(v, structure_of(self)) for v in found]) if many else wrap(found, structure_of(self))


@serves(JAGGED, "narrow.Tensor")
def _narrow(op: Op, self: Any, dim: int, start: Any, length: int) -> Any:
    return self.narrow(dim, int(start.item()), length)


@serves(JAGGED, "tensor_split.sections", "tensor_split.indices")
def _tensor_split(op: Op, self: Any, how: Any, dim: int) -> Any:
    packed_only(self, "tensor_split(self: jt, ...)")
    pieces = op.call((values_of(self), how, inner(self, dim, "tensor_split")))
    return tuple([wrap(v, structure_of(self)) for v in pieces])


@serves(JAGGED, "unsafe_chunk")
def _unsafe_chunk(op: Op, self: Any, chunks: int, dim: int) -> Any:
    raise RuntimeError(
        "NestedTensor does not support directly calling torch.ops.aten.size; please use `nested_tensor.size()` instead."
    )


@serves(JAGGED, "chunk")
def _chunk(op: Op, self: Any, chunks: int, dim: int) -> Any:
    packed_only(self, "chunk_default(self: jt, chunks: any, dim: any?)")
    structure, values = structure_of(self), values_of(self)
    d = inner(self, dim, "chunk", batch=True)
    if wrap_dim(dim, self.dim()) != 0:
        return tuple([wrap(v, structure) for v in op.call((values, chunks, d))])
    groups = structure.each_length().chunk(chunks)
    taken = values.split_with_sizes([int(g.sum().item()) for g in groups])
    offsets = [torch.nn.functional.pad(g.cumsum(0), (1, 0)) for g in groups]
    return tuple([wrap(v, Jagged(o, None, structure.ragged)) for v, o in zip(taken, offsets)])


@serves(JAGGED, "select")
def _select(op: Op, self: Any, dim: int, index: int) -> Any:
    structure = structure_of(self)
    d = inner(self, dim, "select", batch=True)
    if wrap_dim(dim, self.dim()) == 0:
        if not -structure.batch <= index < structure.batch:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {list(self._shape)} at dimension 0"
            )
        return components(self)[index]
    if structure.lengths is not None:
        raise ValueError("select(): not yet supported on dim != 0 for non-contiguous nested tensor with holes")
    return wrap(op.call((values_of(self), d, index)), structure.at(structure.ragged - (d < structure.ragged - 1)))


def _fits(structure: Jagged, shape: tuple[int, ...], size: Any) -> bool:
    """Whether a size has the dimensions up to the ragged one as they are."""
    end = structure.ragged + 1
    return len(size) >= end and all(n in (have, -1) for have, n in zip(shape[:end], size[:end]))


@serves(JAGGED, "view", "_unsafe_view", "reshape")
def _view(op: Op, self: Any, size: Any) -> Any:
    structure = structure_of(self)
    if structure.ragged != 1 and tuple(self._shape) != tuple(size):
        if op.name == "reshape":
            return _view(op, self.contiguous(), size)
        raise RuntimeError(
            "view(): does not support ragged_idx != 1 except when inp._size == size. "
            f"inp._size is ({tuple(self._shape)}) and size is ({list(size)})."
        )
    if len(size) < 3 or not _fits(structure, self._shape, size):
        raise RuntimeError(f"view(): cannot view shape {tuple(self._shape)} as {list(size)}")
    values = values_of(self)
    rest = [n for d, n in enumerate(size) if d != 0]
    rest[structure.ragged - 1] = values.shape[structure.ragged - 1]
    return wrap(op.call((values, tuple(rest))), structure)


@serves(JAGGED, "expand")
def _expand(op: Op, self: Any, size: Any, implicit: bool) -> Any:
    structure = structure_of(self)
    if not _fits(structure, self._shape, size) or len(size) != self.dim():
        raise RuntimeError(f"expand(): cannot expand shape {tuple(self._shape)} -> {list(size)}")
    rest = [-1 if d == structure.ragged else size[d] for d in range(1, self.dim())]
    return wrap(op.call((values_of(self), tuple(rest), False)), structure)


@serves(JAGGED, "expand_as")
def _expand_as(op: Op, self: Any, other: Any) -> Any:
    if is_nested(self):
        return self.expand(other._shape)
    return wrap(self.expand(parts(other).values.shape), structure_of(other))


@serves(JAGGED, "broadcast_to")
def _broadcast_to(op: Op, self: Any, size: Any) -> Any:
    if len(size) > self.dim():
        raise ValueError(
            "broadcast_to(): broadcasting to a higher-dim shape is currently not supported for nested tensors with "
            "the jagged layout"
        )
    return self.expand((*[1] * (self.dim() - len(size)), *size))


@serves(JAGGED, "flatten")
def _flatten(op: Op, self: Any, start_dim: int, end_dim: int) -> Any:
    first, last = wrap_dim(start_dim, self.dim()), wrap_dim(end_dim, self.dim())
    if first == last:
        return self
    inner(self, first, "flatten")
    inner(self, last, "flatten")
    structure = structure_of(self)
    if first < structure.ragged < last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    found = op.call((values_of(self), first - 1, last - 1))
    return wrap(found, structure.at(structure.ragged - (last - first if last < structure.ragged else 0)))


@serves(JAGGED, "unflatten")
def _unflatten(op: Op, self: Any, dim: int, sizes: Any) -> Any:
    structure = structure_of(self)
    if wrap_dim(dim, self.dim()) == 0:
        raise RuntimeError(f"view(): cannot view shape {tuple(self._shape)} as {[*sizes, *self._shape[1:]]}")
    if structure.ragged != 1:
        raise RuntimeError(
            f"view(): does not support ragged_idx != 1 except when inp._size == size. inp._size is "
            f"({tuple(self._shape)}) and size is ({sizes})."
        )
    d = inner(self, dim, "unflatten")
    moved = len(sizes) - 1 if d < structure.ragged - 1 else 0
    return wrap(op.call((values_of(self), d, sizes)), structure.at(structure.ragged + moved))


# -- joining ------------------------------------------------------------------------------------------------------
def _raggedly_alike(t: Any, first: Any, by_value: bool) -> bool:
    """Whether the parts of two nested tensors have the same lengths: by the size that stands for them, or by value."""
    mine, own = structure_of(t), structure_of(first)
    if t._shape[mine.ragged] == first._shape[own.ragged]:
        return True
    if not by_value or mine.ragged != own.ragged or t._shape[0] != first._shape[0]:
        return False
    at = own.ragged - 1
    return [c.shape[at] for c in t.unbind()] == [c.shape[at] for c in first.unbind()]


@serves(JAGGED, "cat", "stack")
def _join(op: Op, tensors: Any, dim: int) -> Any:
    first, name = first_nested((tensors,)), op.title()
    structure = structure_of(first)
    if name == "stack" and not all(is_nested(t) for t in tensors):
        raise RuntimeError("stack(): expected all tensors to be nested or all to be dense")
    many = [t if is_nested(t) else t.expand_as(first) for t in tensors]
    if not all(_raggedly_alike(t, first, name == "cat") for t in many):
        raise RuntimeError(f"{name}(): expected all nested tensors to have matching ragged shapes outside of the "
                           "concatenated dim" if name == "cat" else
                           "stack(): expected all nested tensors to have matching nested ints outside of the "
                           "concatenated dim")  # fmt: skip
    d = inner(first, dim, name, extra=1 if name == "stack" else 0, ragged=name == "stack")
    moved = 1 if name == "stack" and d < structure.ragged - 1 else 0
    if name == "stack" and d == structure.ragged - 1:
        raise RuntimeError("stack(): not supported for NestedTensor on ragged dim")
    return wrap(op.call((tuple([values_of(t) for t in many]), d)), structure.at(structure.ragged + moved))


# -- writing at indices -------------------------------------------------------------------------------------------
@serves(JAGGED, "index_put")
def _index_put(op: Op, self: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    structure = structure_of(self)
    if len(indices) > self.dim():
        raise AssertionError(f"Too many indices: got {len(indices)} but tensor has {self.dim()} dimensions")
    if len(indices) <= structure.ragged:
        if not self.is_contiguous():
            raise RuntimeError(
                "index_put(): If ragged dimension is not part of indices, this only works on contiguous NJTs"
            )
        dense = op.call((padded_to(self, 0.0), indices, values, accumulate))
        return wrap(from_padded(dense, structure, parts(self).values.shape[structure.ragged - 1]), structure)
    at = indices[structure.ragged]
    if bool((at >= structure.each_length().index_select(0, indices[0].flatten()).view(at.shape)).any()):
        raise RuntimeError("Some indices in the ragged dimension are out of bounds!")
    rows = structure.offsets.index_select(0, indices[0].flatten()).view(indices[0].shape) + at
    inside = [*indices[1 : structure.ragged], rows, *indices[structure.ragged + 1 :]]
    return wrap(op.call((values_of(self), inside, values, accumulate)), structure)
