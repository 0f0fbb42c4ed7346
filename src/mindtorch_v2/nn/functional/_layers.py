"""Linear layers, normalization, dropout, embedding.

Invariant: a function here only completes arguments; shapes, dtypes, values and derivatives come from the row it calls.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ..._dispatch import registry
from ..._tensor import Tensor

_linear = registry.get("linear").call


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return registry.get("linear.out").call((input, weight, bias, out))
    return _linear((input, weight, bias))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    return registry.get("one_hot").call((tensor, num_classes))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    # norm_type says how max_norm measures; without max_norm it has no meaning, in PyTorch neither.
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
