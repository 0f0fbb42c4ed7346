"""`torch._nested_*`: the parts of nested tensors by PyTorch's private names.

Invariant: what is a view in PyTorch shares memory here; `_copy` forms do not.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .construct import from_jagged, from_padded, packed, padded, strided_from_list, strided_view
from .history import components, values_of, wrap
from .parts import Jagged, structure_of


def _jagged(t: Any, name: str) -> Jagged:
    structure = structure_of(t)
    if not isinstance(structure, Jagged):
        raise NotImplementedError(f"{name}: no kernel for nested tensors of layout torch.strided")
    return structure


def _nested_get_values(self: Any) -> Any:
    found = values_of(self)
    return found if found.requires_grad else found.detach()


def _nested_get_values_copy(self: Any) -> Any:
    return values_of(self).clone()


def _nested_get_offsets(self: Any) -> Any:
    return _jagged(self, "_nested_get_offsets").offsets


def _nested_get_lengths(self: Any) -> Any:
    return _jagged(self, "_nested_get_lengths").lengths


def _nested_get_ragged_idx(self: Any) -> int:
    return _jagged(self, "_nested_get_ragged_idx").ragged


def _nested_get_min_seqlen(self: Any) -> Any:
    return _jagged(self, "_nested_get_min_seqlen").cache.get("min_seqlen")


def _nested_get_max_seqlen(self: Any) -> Any:
    return _jagged(self, "_nested_get_max_seqlen").cache.get("max_seqlen")


def _nested_get_jagged_dummy(any: Any) -> Any:
    """A jagged nested tensor of one empty row: an argument that only says which layout is meant."""
    return from_jagged(torch.zeros(3, 3), torch.zeros(2, dtype=torch.int64), None, 1, None, None)


def _rows(t: Any) -> int | None:
    return None if t is None else int(t.shape[0])


def _nested_view_from_jagged(
    self: Any,
    offsets: Any,
    dummy: Any,
    lengths: Any = None,
    ragged_idx: int = 1,
    min_seqlen: Any = None,
    max_seqlen: Any = None,
) -> Any:
    return from_jagged(self, offsets, lengths, ragged_idx, _rows(min_seqlen), _rows(max_seqlen))


def _nested_view_from_jagged_copy(
    self: Any,
    offsets: Any,
    dummy: Any,
    lengths: Any = None,
    ragged_idx: int = 1,
    min_seqlen: Any = None,
    max_seqlen: Any = None,
) -> Any:
    return _nested_view_from_jagged(self.clone(), offsets, dummy, lengths, ragged_idx, min_seqlen, max_seqlen)


def _nested_from_padded_tensor(
    padded: Any,
    offsets: Any,
    dummy: Any,
    ragged_idx: int = 1,
    min_seqlen: Any = None,
    max_seqlen: Any = None,
    sum_S: int | None = None,
) -> Any:
    structure = Jagged(offsets, None, ragged_idx)
    total = int(offsets[-1].item()) if sum_S is None else sum_S
    values = from_padded(padded, structure, total)
    return from_jagged(values, offsets, None, ragged_idx, _rows(min_seqlen), _rows(max_seqlen))


def _nested_tensor_from_tensor_list(
    list: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Any:
    found = strided_from_list([*list], dtype, device)
    return found.pin_memory() if pin_memory else found


def _nested_compute_contiguous_strides_offsets(nested_size: Any) -> Any:
    sizes = [tuple(s) for s in nested_size.tolist()]
    structure = packed(sizes, nested_size.shape[1])
    strides = torch.tensor(structure.each_stride, dtype=torch.int64).reshape(nested_size.shape)
    return strides, torch.tensor(structure.offsets, dtype=torch.int64)


def _nested_view_from_buffer(self: Any, nested_size: Any, nested_strides: Any, offsets: Any) -> Any:
    return strided_view(self, nested_size, nested_strides, offsets)


def _nested_view_from_buffer_copy(self: Any, nested_size: Any, nested_strides: Any, offsets: Any) -> Any:
    return strided_view(self.clone(), nested_size, nested_strides, offsets)


def _nested_tensor_from_mask_left_aligned(t: Any, mask: Any) -> bool:
    """Whether each row of the mask is True up to somewhere, and False from there on."""
    lengths = mask.sum(1, keepdim=True)
    return bool((mask == (torch.arange(mask.shape[1], device=mask.device) < lengths)).all())


def _nested_tensor_from_mask(t: Any, mask: Any, mask_check: bool = True) -> Any:
    """A strided nested tensor of the rows of a padded tensor where the mask is True."""
    if mask.dtype != torch.bool:
        raise RuntimeError("Expected mask to be of ScalarType Bool, but got " + str(mask.dtype) + " instead.")
    if mask.dim() != 2:
        raise RuntimeError(f"Padding mask should be 2D, got {mask.dim()}D")
    if t.dim() != 3:
        raise RuntimeError(f"Input should be a 3D tensor, N * L * D, got {t.dim()}D")
    if mask.shape != t.shape[:2]:
        raise RuntimeError("Padding mask size should match Input size")
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    lengths = mask.sum(1).tolist()
    return strided_from_list([row[:n] for row, n in zip(t.unbind(0), lengths)])


def _nested_from_padded(padded: Any, cpu_nested_shape_example: Any, fuse_transform_0213: bool = False) -> Any:
    """A strided nested tensor of the parts of a padded tensor that have the given sizes."""
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    many = []
    for row, size in zip(padded.unbind(0), cpu_nested_shape_example.tolist()):
        for d, n in enumerate(size):
            row = row.narrow(d, 0, n)
        many.append(row)
    return strided_from_list(many)


def _nested_from_padded_and_nested_example(padded: Any, nt_example: Any) -> Any:
    return _nested_from_padded(padded, nt_example._nested_tensor_size())


def _jagged_to_padded_dense_forward(values: Any, offsets: Any, max_lengths: Any, padding_value: float = 0.0) -> Any:
    """A padded tensor of the rows between offsets."""
    nested = wrap(values, Jagged(offsets[0]))
    return padded(nested, padding_value, (len(offsets[0]) - 1, max_lengths[0]))


def _padded_dense_to_jagged_forward(dense: Any, offsets: Any, total_L: int | None = None) -> Any:
    """The rows of a padded tensor that are no padding, one after the other."""
    total = int(offsets[0][-1].item()) if total_L is None else total_L
    return from_padded(dense, Jagged(offsets[0]), total)


def _nested_tensor_softmax_with_shape(self: Any, query: Any) -> Any:
    """Softmax of a padded tensor of scores over as much of each row as the query has."""
    sizes = [t.shape[0] for t in components(query)]
    rows = [
        torch.nn.functional.pad(row[..., :n].softmax(-1), (0, row.shape[-1] - n))
        for row, n in zip(self.unbind(0), sizes)
    ]
    return torch.stack(rows)
