"""Launches of embedding.

Invariant: indices are dense; the native kernels check them before they write anything.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._tensor_base import TensorBase, numel
from .base import OneResult
from .dense import dense

_embedding: Final[Any] = _native.embedding
_embedding_backward: Final[Any] = _native.embedding_backward


@final
class Embedding(OneResult):
    """(weight, indices, padding_idx, scale_grad_by_freq, sparse)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        w = args[0]
        i = args[1]
        assert isinstance(w, TensorBase) and isinstance(i, TensorBase)
        i = dense(i)
        return _embedding(
            w._storage, int(w._offset), w._stride, w._dtype.code,
            i._storage, int(i._offset), (), i._dtype.code,
            out, offset, (), code,
            int(numel(i)), w._shape[0], w._shape[1])


@final
class EmbeddingBackward(OneResult):
    """(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        g = args[0]
        i = args[1]
        assert isinstance(g, TensorBase) and isinstance(i, TensorBase)
        g = dense(g)
        i = dense(i)
        columns = s.shape[1]
        return _embedding_backward(
            g._storage, int(g._offset), (columns, 1), g._dtype.code,
            i._storage, int(i._offset), (), i._dtype.code,
            out, offset, (), code,
            int(numel(i)), s.shape[0], columns, args[3], args[4])
