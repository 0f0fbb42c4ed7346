"""NPU lines of copies of views."""
from __future__ import annotations

import math
from typing import Any

from ...._tensor_base import numel
from ..lines import accepts_dtype, call, fused, npu


def _chunks_fit(tensors: Any, dim: int, num_chunks: int) -> bool:
    if not tensors or num_chunks < 1 or not accepts_dtype("aclnnChunkCat", tensors[0]):
        return False
    n = len(tensors[0]._shape)
    if not -n <= dim < n:
        return False
    at = dim % n
    return all(t._dtype is tensors[0]._dtype and t._device == tensors[0]._device and numel(t) > 0
               and at < len(t._shape) <= 8 and t._shape[:at] == tensors[0]._shape[:at] for t in tensors)


def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Any:
    first = tensors[0]
    at = dim % len(first._shape)
    width = sum(-(-t._shape[at] // num_chunks) * math.prod(t._shape[at + 1:]) for t in tensors)
    out = first.new_empty((*first._shape[:at], num_chunks, width))
    call("aclnnChunkCat", "_chunk_cat", list(tensors), at, num_chunks, out)
    return out


npu("_chunk_cat", fused(("aclnnChunkCat",), _chunks_fit, _chunk_cat))
