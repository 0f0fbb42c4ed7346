"""NPU lines of embedding.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._dispatch.keys import NPU
from ...._dtype import int64
from ...._tensor_base import alias
from ...common.kernels import INPLACE
from ..lines import choose, line, makes, npu, parts


def _embedding_dense_backward(grad_output: Any, indices: Any, num_weights: int, padding_idx: int,
                              scale_grad_by_freq: bool) -> Any:
    """Of dtypes that the vendor does not sum, and of an index without dimensions."""
    width = grad_output._shape[-1]
    rows, at = grad_output.reshape((-1, width)), indices.reshape((-1,))
    if padding_idx >= 0:
        rows = rows.masked_fill((at == padding_idx).unsqueeze(1), 0)
    if scale_grad_by_freq:
        uses = rows.new_zeros((num_weights,)).index_add(0, at, rows.new_ones(at._shape))
        rows = rows / uses.index_select(0, at).unsqueeze(1)
    return rows.new_zeros((num_weights, width)).index_add(0, at, rows)


npu("embedding", "aclnnEmbedding(weight, indices, out)")
npu("embedding_dense_backward", choose(lambda grad_output, indices, *rest: len(indices._shape) > 0, {
    True: line("aclnnEmbeddingDenseBackward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq, out)",
               cast=("grad_output",), empty=0, otherwise=parts(_embedding_dense_backward)),
    False: parts(_embedding_dense_backward)}))


def _renormed(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Of dtypes that the vendor does not scale; a row that is named twice gets the same values twice."""
    at = indices.reshape((-1,)).to(int64)
    rows = self.index_select(0, at)
    norms = rows.norm(norm_type, 1, True)
    return self.index_copy(0, at, (rows * (max_norm / (norms + 1e-7))).where(norms > max_norm, rows))


def _renorm_in_place(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """A table whose rows are one row in memory has that row scaled, as PyTorch does row by row."""
    target = self
    if self._shape[:1] > (1,) and self._stride[0] == 0:
        target = alias(self, (1, *self._shape[1:]), self._stride, self._offset)
        indices = indices.new_zeros(indices._shape)
    INPLACE.run(registry.get("embedding_renorm_"), (target, indices, max_norm, norm_type), int(NPU))
    return self


npu("embedding_renorm", "aclnnEmbeddingRenorm(out, indices, max_norm, norm_type)", starts="self",
    otherwise=parts(_renormed))
npu("embedding_renorm_", makes(_renorm_in_place))
