"""NPU lines of bags of embeddings.

Invariant: sums and means are the vendor's; maxima, whose places it keeps in one dimension, are composed.
"""
from __future__ import annotations

from typing import Any

from ...._dtype import int64
from ...._tensor_base import numel
from ..lines import accepts_dtype, call, fused, npu

_SUM, _MEAN = 0, 1


def _fits(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
          per_sample_weights: Any, include_last_offset: bool, padding_idx: int) -> bool:
    return (mode in (_SUM, _MEAN) and not sparse and accepts_dtype("aclnnEmbeddingBag", weight)
            and len(weight._shape) == 2 and len(indices._shape) == 1 and len(offsets._shape) == 1
            and indices._dtype is int64 and offsets._dtype is int64 and numel(weight) > 0 and numel(indices) > 0
            and numel(offsets) > int(include_last_offset) and padding_idx >= -1 and (per_sample_weights is None or (
                mode == _SUM and per_sample_weights._dtype is weight._dtype
                and per_sample_weights._shape == indices._shape)))


def _bag(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
         per_sample_weights: Any, include_last_offset: bool, padding_idx: int) -> Any:
    bags = numel(offsets) - int(include_last_offset)
    out = weight.new_empty((bags, weight._shape[1]))
    where, sizes, chosen = (indices.new_empty((n,)) for n in (numel(indices), bags, bags))
    # How gradients are scaled is nothing to a result without one.
    call("aclnnEmbeddingBag", "embedding_bag", weight, indices, offsets, False, mode, False, per_sample_weights,
         include_last_offset, padding_idx, out, where, sizes, chosen)
    return out, where, sizes, chosen.zero_()


npu("_embedding_bag", fused(("aclnnEmbeddingBag",), _fits, _bag))
