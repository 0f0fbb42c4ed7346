"""Entries of one tensor at the coordinates of another: `sparse_mask` and what constructors' derivatives need.

Invariant: the result has the pattern of the mask; where the tensor has no entry it is zero.
"""

from __future__ import annotations

from math import prod
from typing import Any

import mindtorch_v2 as torch

from .coalesce import coalesced, flat_keys
from .compressed import between, coordinates
from .parts import batch_dim, blocksize, coo, is_coo, is_sparse, layout_of, parts, shallow, with_values


def at_indices(t: Any, indices: Any, sparse_dim: int) -> Any:
    """The entries of a dense or COO tensor at coordinates, one row each."""
    heads = t._shape[:sparse_dim]
    keys = flat_keys(indices, heads)
    if not is_sparse(t):
        return t.reshape(prod(heads), *t._shape[sparse_dim:])[keys]
    p = parts(coalesced(t))
    own = flat_keys(p.plain, heads)
    if p.nnz == 0:
        return p.values.new_zeros((keys._shape[0], *p.values._shape[1:]))
    at = torch.searchsorted(own, keys).clamp_(max=p.nnz - 1)
    hit = (own[at] == keys).view(-1, *[1] * (p.values.dim() - 1))
    return torch.where(hit, p.values[at], torch.zeros((), dtype=t.dtype, device=t.device))


def masked(t: Any, mask: Any) -> Any:
    """`t.sparse_mask(mask)`"""
    if not is_sparse(mask):
        raise RuntimeError("sparse_mask: mask must be sparse")
    if tuple(t._shape) != tuple(mask._shape):
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(t._shape)} but mask has size "
            f"{list(mask._shape)}"
        )
    p = parts(mask)
    if t is mask:
        return shallow(t)
    if is_coo(mask):
        return _coo_masked(t, mask)
    if is_sparse(t):
        values = _compressed_at(between(t, p.layout, blocksize(mask), "sparse_mask"), mask)
    else:
        values = _dense_at(t, mask)
    return with_values(mask, values)


def _coo_masked(t: Any, mask: Any) -> Any:
    p = parts(mask)
    if is_sparse(t):
        if not is_coo(t):
            raise RuntimeError(f"sparse_mask: self and mask must have the same layout, got {t.layout}")
        if parts(t).sparse_dim != p.sparse_dim:
            raise RuntimeError(
                "sparse_mask(): the number of sparse dimensions in `self` should match that of the `mask`. "
                f"Got `self.sparse_dim() == {parts(t).sparse_dim}` != `mask.sparse_dim() == {p.sparse_dim}`"
            )
    if p.nnz == 0:
        made = shallow(mask)
        return with_values(made, p.values.to(t.dtype))
    return coo(p.plain.clone(), at_indices(t, p.plain, p.sparse_dim), mask._shape, p.coalesced)


def _dense_at(t: Any, mask: Any) -> Any:
    """A dense tensor's elements (or blocks) where a compressed mask has entries."""
    p, batch, block = parts(mask), batch_dim(mask), blocksize(mask) or (1, 1)
    count, shape = prod(mask._shape[:batch]), mask._shape
    rows, columns = (shape[batch + d] // max(block[d], 1) for d in range(2))
    grid = t.reshape(count, rows, block[0], columns, block[1], *shape[batch + 2 :]).transpose(2, 3)
    grid = grid.reshape(count * rows * columns, *block, *shape[batch + 2 :])
    r, c = (x.to(torch.int64).reshape(count, p.nnz) for x in coordinates(mask))
    first = torch.arange(count, device=r.device).unsqueeze(1) * (rows * columns)
    return grid[(first + r * columns + c).reshape(-1)].reshape(p.values._shape)


def _compressed_at(t: Any, mask: Any) -> Any:
    """A compressed tensor's entries where another of its layout has entries."""
    p, q = parts(t), parts(mask)
    if batch_dim(t):
        raise NotImplementedError("sparse_mask: batches of compressed tensors with a compressed mask are not supported")
    width = max(int(max(t._shape[0], t._shape[1])), 1)
    own, wanted = (_keys(x, width) for x in (t, mask))
    if p.nnz == 0:
        return q.values.new_zeros(q.values._shape, dtype=t.dtype)
    at = torch.searchsorted(own, wanted).clamp_(max=p.nnz - 1)
    hit = (own[at] == wanted).view(-1, *[1] * (p.values.dim() - 1))
    return torch.where(hit, p.values[at], torch.zeros((), dtype=t.dtype, device=t.device))


def _keys(t: Any, width: int) -> Any:
    r, c = (x.to(torch.int64) for x in coordinates(t))
    return r * width + c if layout_of(t).name.endswith("r") else c * width + r
