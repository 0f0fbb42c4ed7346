"""Embedding: rows of a table by index, their gradient and norm, and one-hot rows.

Invariant: an index out of range is refused before anything is written.
"""
from __future__ import annotations

from typing import Any

from .._backends.common import overlap
from .._dispatch.keys import CPU, META
from .._dispatch.op import Op, Spec
from .._dtype import int64
from .._sizes import LONG_MAX
from .._tensor_base import all_values, numel
from .create import NEW_ZEROS
from .rules import norm as rules
from .rules.base import of_tensor
from .table import composite, op

EMBEDDING_BACKWARD: Op = op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor", meta=rules.EmbeddingBackward(), function=False, method=False,
    grad=dict(grad_output=lambda g, indices, padding_idx: _embedding_second(g, indices, padding_idx)))


def _embedding_second(g: Any, indices: Any, padding_idx: int) -> Any:
    """Rows of the padding index received nothing."""
    out = EMBEDDING.call((g, indices, padding_idx, False, False))
    if padding_idx >= 0:
        out = out.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return out


def _embedding_backward(g: Any, indices: Any, weight_shape: Any, padding_idx: int, scale_grad_by_freq: bool,
                        sparse: bool) -> Any:
    if sparse:
        from .._sparse.gradients import of_embedding

        return of_embedding(g, indices, weight_shape, padding_idx, scale_grad_by_freq)
    return EMBEDDING_BACKWARD.call((g, indices, weight_shape[0], padding_idx, scale_grad_by_freq))


EMBEDDING: Op = op(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) "
    "-> Tensor", meta=rules.Embedding(), grad=dict(weight=_embedding_backward))


def _renorm_meta(self: Any, indices: Any, max_norm: float, norm_type: float) -> Spec:
    if len(self._shape) != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {len(self._shape)}-dimensional tensor for "
                           "argument #1 'self' (while checking arguments for embedding_renorm_)")
    rules.check_indices(indices, "embedding_renorm_", 2)
    if not self._dtype.is_inexact:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {self._dtype.scalar_name} instead.")
    return of_tensor(self)


# Rows named by the indices are scaled down to the norm; PyTorch has no derivative for it.
op("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
   meta=_renorm_meta, inplace="function", overlap=overlap.APART, nondifferentiable=True, function=False,
   method=False)


def _one_hot(self: Any, num_classes: int) -> Any:
    if self._dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if numel(self) == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return self.new_zeros(self._shape + (num_classes,))
    if self._keys & META and num_classes != -1:
        return self.new_zeros(self._shape + (num_classes,))
    if self._keys == CPU and (num_classes > 0 or num_classes == -1):
        try:
            classes = num_classes if num_classes > 0 else self.max().item() + 1
            if 0 < classes <= LONG_MAX:
                made = NEW_ZEROS.call((self, self._shape + (classes,), None, None, None, False))
                return made.scatter_(-1, self.unsqueeze(-1), 1)
        except RuntimeError:
            pass  # a class is out of range: which, is said below
    if self._keys & CPU:
        # Other devices find a class out of range when they write it.
        if all_values(self).min().item() < 0:
            raise RuntimeError("Class values must be non-negative.")
        top = all_values(self).max().item()
        if num_classes != -1 and num_classes <= top:
            raise RuntimeError("Class values must be smaller than num_classes.")
    if num_classes == -1:
        num_classes = self.max().item() + 1
        if num_classes > LONG_MAX:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
    return self.new_zeros(self._shape + (num_classes,)).scatter_(-1, self.unsqueeze(-1), 1)


composite("one_hot(Tensor self, int num_classes=-1) -> Tensor", _one_hot, function=False, method=False)
