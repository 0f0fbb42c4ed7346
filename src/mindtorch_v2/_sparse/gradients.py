"""Sparse gradients: of rows that were looked up, and in leaves.

Invariant: a gradient that somebody else can see is never written.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._autograd.gradients import unshared
from .._dispatch.keys import NESTED
from .basic import copy
from .parts import coo, is_coo, is_sparse, parts, shallow
from .rows import make_coo


def accumulated(old: Any, grads: list[Any], recording: bool) -> Any:
    """What becomes `.grad` when grads[0] arrives and one of the two is sparse or nested."""
    if grads[0]._keys & NESTED:
        from .._ragged.history import accumulated as added

        return added(old, grads[0])
    if old is None:
        if recording or not is_sparse(grads[0]):
            return grads[0].clone()
        if not unshared(grads):
            return copy(grads[0])
        p = parts(grads[0])
        # As PyTorch: the same parts in a tensor that does not say whether it is coalesced.
        return coo(p.plain, p.values, grads[0]._shape) if is_coo(grads[0]) else shallow(grads[0])
    if recording or (is_sparse(old) and not is_sparse(grads[0])):
        # Only a dense tensor takes a sparse one.
        return grads[0] + old if is_sparse(old) else old + grads[0]
    return old.add_(grads[0])


def of_embedding(g: Any, indices: Any, weight_shape: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """One row of the gradient for each index, in their order; none for the padding index."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    width = g.shape[-1]
    # A copy: who reuses the indices does not move the gradient.
    flat = indices.reshape(-1).to(torch.int64, copy=True)
    if g.numel() == 0:
        # Rows of no elements are not told apart: PyTorch's gradient has none.
        flat = flat[:0]
    rows = g.reshape(flat.shape[0], width)
    if padding_idx != -1:
        kept = (flat != padding_idx).nonzero().flatten()
        flat, rows = flat.index_select(0, kept), rows.index_select(0, kept)
    return make_coo(flat.unsqueeze(0), rows, tuple(weight_shape), None, False)


def of_gather(g: Any, shape: Any, dim: int, index: Any) -> Any:
    """The gradient of `gather(sparse_grad=True)`: each element at the place it was taken from."""
    size = tuple(shape)
    if not size:
        return make_coo(index.new_zeros((0, g.numel())), g.reshape(-1), size, None, False)
    d = dim % len(size)
    places = []
    for i, n in enumerate(index.shape):
        line = torch.arange(n, device=index.device).view(-1, *[1] * (index.dim() - i - 1)).expand(index.shape)
        places.append((index.to(torch.int64) if i == d else line).reshape(-1))
    return make_coo(torch.stack(places), g.reshape(-1), size, None, False)
