"""CPU lines of embedding.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._tensor_base import bump, own_memory
from ..kernels.embedding import Embedding, EmbeddingBackward
from ..lines import cpu, into, makes
from ..numpy_view import np_view

cpu("embedding", Embedding())
cpu("embedding_dense_backward", EmbeddingBackward())


def _embedding_renorm(out: Any, self: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    import numpy as np

    table = np_view(out)
    if out is not self:
        table[...] = np_view(self)
    rows = np.unique(np_view(indices))
    bad = rows[(rows < -len(table)) | (rows >= len(table))]
    if bad.size:
        raise IndexError(f"select(): index {bad[-1]} out of range for tensor of size {list(self._shape)} at dimension "
                         "0")
    picked = table[rows]
    wide = picked.astype(np.float32) if picked.dtype.itemsize < 4 else picked
    norms = np.linalg.norm(wide, norm_type, axis=1, keepdims=True)
    table[rows] = np.where(norms > max_norm, wide * (max_norm / (norms + 1e-7)), wide)


def _embedding_renorm_(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Without the usual check for overlaps: PyTorch writes row by row, which an expanded table survives."""
    registry.get("embedding_renorm").infer((self, indices, max_norm, norm_type))
    own_memory(self)
    _embedding_renorm(self, self, indices, max_norm, norm_type)
    bump(self)
    return self


cpu("embedding_renorm", into(_embedding_renorm))
cpu("embedding_renorm_", makes(_embedding_renorm_))
