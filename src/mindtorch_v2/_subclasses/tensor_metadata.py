"""What is known of a tensor beside its values, as one thing that can be compared and hashed."""

from __future__ import annotations

from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .._prims_common import suggest_memory_format


class TensorMetadata(NamedTuple):
    """Everything about a tensor but its values."""

    dtype: Any
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: Any
    layout: Any
    memory_format: Any
    storage_offset: int
    storage_bytes: int | None
    requires_grad: bool
    is_quantized: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    is_sparse: bool
    is_coalesced: bool | None
    dense_dim: int | None
    sparse_dim: int | None


def extract_tensor_metadata(t: Any) -> TensorMetadata:
    """The metadata of a tensor; a memory format only where the tensor has exactly that."""
    dense = t.layout is torch.strided
    memory_format = suggest_memory_format(t) if dense else None
    if dense and not t.is_contiguous(memory_format=memory_format):
        memory_format = None
    return TensorMetadata(
        t.dtype,
        t.shape,
        t.stride() if dense else (),
        t.device,
        t.layout,
        memory_format,
        t.storage_offset() if dense else 0,
        t.untyped_storage().nbytes() if dense else None,
        t.requires_grad,
        t.is_quantized,
        t.is_conj(),
        t.is_neg(),
        t.is_inference(),
        t.is_sparse,
        t.is_coalesced() if t.is_sparse else None,
        None if dense else t.dense_dim(),
        None if dense else t.sparse_dim(),
    )
