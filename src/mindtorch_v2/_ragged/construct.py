"""Making nested tensors of lists, of values and offsets, of padded tensors, and the way back to a padded tensor.

Invariant: what is made of tensors with history has one.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.binding import need_tensor
from .._strides import contiguous_strides
from .history import as_view, components, values_of, wrap
from .parts import Jagged, Strided, is_nested, parts


# -- strided ------------------------------------------------------------------------------------------------------
def packed(sizes: list[tuple[int, ...]], ndim: int) -> Strided:
    """One after the other, each row-major."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += torch.Size(size).numel()
    return Strided(sizes, [contiguous_strides(s) for s in sizes], offsets, ndim)


def is_packed(structure: Strided) -> bool:
    plain = packed(structure.sizes, structure.ndim)
    return plain.offsets == structure.offsets and plain.each_stride == structure.each_stride


def strided_from_list(tensors: list[Any], dtype: Any = None, device: Any = None) -> Any:
    """A nested tensor of the strided layout, with the history of the many."""
    if not tensors:
        return wrap(torch.empty(0, dtype=dtype, device=device), packed([], 0))
    ndim = tensors[0].dim()
    for i, t in enumerate(tensors):
        if t.dim() != ndim:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{t.dim()} for Tensor at index {i} and dimension {ndim} for Tensor at index 0."
            )
    first = tensors[0]
    dtype, device = first.dtype if dtype is None else dtype, first.device if device is None else device
    buffer = torch.cat([t.to(device=device, dtype=dtype).reshape(-1) for t in tensors])
    return wrap(buffer, packed([tuple(t.shape) for t in tensors], ndim))


def strided_view(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Any:
    """A nested tensor over a buffer, by tables of sizes, strides and offsets."""
    for name, table, ndims in (("nested_size", sizes, 2), ("nested_strides", strides, 2), ("offsets", offsets, 1)):
        if table.dtype is not torch.int64 or table.dim() != ndims:
            raise RuntimeError(f"expected {name} to be a {ndims}-D int64 tensor, but got {table.dim()}-D {table.dtype}")
    if not sizes.shape == strides.shape or sizes.shape[:1] != offsets.shape:
        raise RuntimeError(
            "expected nested_size, nested_strides and offsets to speak of as many tensors, but got shapes "
            f"{list(sizes.shape)}, {list(strides.shape)} and {list(offsets.shape)}"
        )
    many = [tuple(s) for s in sizes.tolist()]
    ndim = sizes.shape[1] if sizes.dim() > 1 else 0
    total = buffer.numel()
    steps, starts = [tuple(s) for s in strides.tolist()], [int(o) for o in offsets.tolist()]
    for size, step, start in zip(many, steps, starts):
        last = start + sum([(n - 1) * k for n, k in zip(size, step)])
        if 0 not in size and not (0 <= start and last < total):
            raise RuntimeError(f"a part of a nested tensor ends at {last}, beyond its buffer of {total} elements")
    return as_view(wrap(buffer, Strided(many, steps, starts, ndim)), buffer)


# -- jagged -------------------------------------------------------------------------------------------------------
def _check_list(tensors: list[Any]) -> tuple[Any, Any]:
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if not len({t.dtype for t in tensors}) == 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dtype")
    if not len({t.device for t in tensors}) == 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must be on the same device")
    if not len({t.dim() for t in tensors}) == 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    component_dim = tensors[0].dim()
    if component_dim == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    return tensors[0].dtype, tensors[0].device


def jagged_from_list(tensors: Any, offsets: Any = None, dtype: Any = None, device: Any = None) -> tuple[Any, Any]:
    """A nested tensor of the jagged layout from tensors that differ in one dimension, and its offsets."""
    tensors = list(tensors)
    own_dtype, own_device = _check_list(tensors)
    device = own_device if device is None else torch.device(device)
    sizes = [t.shape for t in tensors]
    ndim = len(sizes[0])
    differing = [d for d in range(ndim) if len({s[d] for s in sizes}) > 1]
    if len(differing) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged "
            "layout only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged *"
            " dim."
        )
    ragged = differing[0] if differing else 0
    values = torch.cat(tensors, dim=ragged).to(device=device, dtype=own_dtype if dtype is None else dtype)
    lengths = [s[ragged] for s in sizes]
    if offsets is None:
        starts = [0]
        for n in lengths:
            starts.append(starts[-1] + n)
        offsets = torch.tensor(starts, dtype=torch.int64, device=device)
    made = Jagged(offsets, None, ragged + 1, _known(min(lengths), max(lengths)))
    return wrap(values, made), offsets


def _known(least: int | None, most: int | None) -> dict[str, Any]:
    """Extreme lengths as PyTorch keeps them: the number of rows of an empty tensor."""
    pairs = (("min_seqlen", least), ("max_seqlen", most))
    return {name: torch.zeros(n, 0) for name, n in pairs if n is not None}


def from_jagged(values: Any, offsets: Any, lengths: Any, ragged: int, least: int | None, most: int | None) -> Any:
    """A view of values as a nested tensor."""
    for name, position, t in (("input", 1, values), ("offsets", 2, offsets), ("lengths", 4, lengths)):
        if t is not None or name != "lengths":
            need_tensor("_nested_view_from_jagged", name, position, t)
    if offsets.dim() != 1:
        raise RuntimeError(f"offsets of a nested tensor must have one dimension, got {offsets.dim()}")
    if is_nested(values):
        raise RuntimeError("nested_tensor_from_jagged(): values must not be a nested tensor")
    return as_view(wrap(values, Jagged(offsets, lengths, ragged, _known(least, most))), values)


def jagged_from_tensor_and_lengths(tensor: Any, starts: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Rows of a dense tensor from their own starts and with their own lengths, as a nested tensor with holes."""
    batch, longest = tensor.shape[0], tensor.shape[1]
    least, most = lengths.min().item(), lengths.max().item()
    if lengths.shape != (batch,):
        lengths = lengths.expand(batch)
    if starts.shape != (batch,):
        starts = starts.expand(batch)
    row = torch.arange(0, batch + 1, device=tensor.device, dtype=torch.int64) * longest
    ends = torch.cat([starts, (starts[-1] + lengths[-1] - longest).reshape(1)])
    offsets = row + ends
    if bool(((starts < 0) | (lengths < 0) | (starts + lengths > longest)).any()):
        raise RuntimeError("narrow(): start and length must be within the dimension")
    values = tensor.contiguous().flatten(0, 1) if tensor.dim() > 2 else tensor.contiguous().view(-1)
    own = lengths.clone() if not lengths.is_contiguous() else lengths
    structure = Jagged(offsets, own, 1, _known(int(least), int(most)))
    return as_view(wrap(values, structure), values), offsets, own


# -- padded -------------------------------------------------------------------------------------------------------
def _limited(padding: float, dtype: Any) -> Any:
    """A padding that the dtype holds: infinities become the ends of integers."""
    if dtype.is_floating_point or dtype.is_complex or padding == padding and abs(padding) != float("inf"):
        return padding
    if dtype == torch.bool:
        return padding > 0
    info = torch.iinfo(dtype)
    return info.max if padding > 0 else info.min


def padded(nested: Any, padding: float, output_size: Any = None) -> Any:
    """A dense tensor of the many, with `padding` behind each. As in PyTorch, a jagged one whose longest is not known
    yet gets room for all of its values."""
    structure = parts(nested).structure
    if not isinstance(structure, Jagged):
        return _padded_strided(nested, padding, output_size)
    if output_size is not None:
        return padded_to(nested, padding, int(output_size[structure.ragged]))
    known = "max_seqlen" in structure.cache
    return padded_to(nested, padding, None if known else parts(nested).values.shape[0])


def padded_to(nested: Any, padding: float, longest: int | None = None) -> Any:
    """A dense tensor of a jagged one, as long as said, or as the longest is."""
    structure = parts(nested).structure
    if structure.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    longest = structure.extreme("max_seqlen") if longest is None else longest
    rows = values_of(nested).transpose(structure.ragged - 1, 0)
    owner, at = structure.places()
    if longest < structure.extreme("max_seqlen"):
        kept = (at < longest).nonzero().flatten()
        rows, owner, at = rows.index_select(0, kept), owner.index_select(0, kept), at.index_select(0, kept)
    room = rows.new_full((structure.batch, longest, *rows.shape[1:]), _limited(padding, rows.dtype))
    return room.index_put((owner, at), rows[: owner.shape[0]]).transpose(1, structure.ragged)


def from_padded(dense: Any, structure: Jagged, total: int) -> Any:
    """Values of a structure, taken from a padded tensor; one row for all where it has one."""
    rows = dense.transpose(1, structure.ragged)
    owner, at = structure.places()
    found = rows[owner, at if rows.shape[1] > 1 else torch.zeros_like(at)]
    if owner.shape[0] < total:
        found = torch.cat([found, found.new_zeros((total - owner.shape[0], *found.shape[1:]))])
    return found.transpose(0, structure.ragged - 1)


def _padded_strided(nested: Any, padding: float, output_size: Any) -> Any:
    many = components(nested)
    if not many:
        return torch.empty(0, dtype=nested.dtype, device=nested.device)
    if sum([t.numel() for t in many]) == 0:
        raise RuntimeError("at least one constituent tensor should have non-zero numel")
    largest = [max([t.shape[d] for t in many]) for d in range(many[0].dim())]
    size = [len(many), *largest] if output_size is None else [int(n) for n in output_size]
    if len(size) != len(largest) + 1:
        raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
    if any(have > room for have, room in zip([len(many), *largest], size)):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
    fill = _limited(padding, nested.dtype)
    rows = [_grown(t, size[1:], fill) for t in many]
    found = torch.stack(rows)
    return found if size[0] == len(many) else _grown(found, size, fill)


def _grown(t: Any, size: list[int], fill: Any) -> Any:
    edges: list[int] = []
    for have, want in zip(reversed(t.shape), reversed(size)):
        edges += [0, want - have]
    return torch.nn.functional.pad(t, edges, value=fill) if any(edges) else t


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> Any:
    """A nested tensor that was pickled."""
    from .tensors import NestedTensor

    return NestedTensor(**constructor_kwargs)


# Where files look for it.
_rebuild_njt.__module__ = "mindtorch_v2.nested._internal.nested_tensor"
