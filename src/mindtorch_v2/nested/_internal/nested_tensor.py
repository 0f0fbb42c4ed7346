"""`torch.nested._internal.nested_tensor`: the class of jagged nested tensors, and ways to make one."""

from __future__ import annotations

from typing import Any

from ..._ragged.construct import (
    _rebuild_njt,
    from_jagged,
    from_padded,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
)
from ..._ragged.history import values_of, wrap
from ..._ragged.numbers import NestedIntNode, size_of
from ..._ragged.parts import Jagged
from ..._ragged.tensors import NestedTensor

__all__ = [
    "NestedIntNode",
    "NestedTensor",
    "ViewBufferFromNested",
    "ViewNestedFromBuffer",
    "_rebuild_njt",
    "buffer_from_jagged",
    "get_tensor_symint",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]


class ViewBufferFromNested:
    """The way from a nested tensor to its values, with a derivative."""

    @staticmethod
    def apply(x: Any) -> Any:
        return values_of(x)


class ViewNestedFromBuffer:
    """The way from values to a nested tensor, with a derivative."""

    @staticmethod
    def apply(values: Any, offsets: Any, metadata_cache: dict[str, Any] | None = None) -> Any:
        return wrap(values, Jagged(offsets, None, 1, metadata_cache))


def buffer_from_jagged(jagged: Any) -> Any:
    """The values of a nested tensor, with its history."""
    return values_of(jagged)


def get_tensor_symint(tensor: Any, *, coeff: int = 1) -> Any:
    """The ragged size that offsets stand for."""
    found = size_of(tensor)
    return found if coeff == 1 else found * coeff


def nested_view_from_values_offsets(
    values: Any, offsets: Any, ragged_idx: int = 1, min_seqlen: int | None = None, max_seqlen: int | None = None
) -> Any:
    """A view of values as a nested tensor."""
    return from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Any,
    offsets: Any,
    lengths: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A view of values as a nested tensor that takes a part of each row."""
    return from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def nested_from_padded(
    padded: Any,
    offsets: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
    sum_S: int | None = None,
) -> Any:
    """A nested tensor of the rows of a padded tensor that are no padding."""
    structure = Jagged(offsets, None, ragged_idx)
    total = int(offsets[-1].item()) if sum_S is None else sum_S
    return from_jagged(from_padded(padded, structure, total), offsets, None, ragged_idx, min_seqlen, max_seqlen)
