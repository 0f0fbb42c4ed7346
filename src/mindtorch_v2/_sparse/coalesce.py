"""Coordinates as single numbers, and COO tensors whose coordinates are sorted and distinct.

Invariant: entries of one coordinate are added in their order, as PyTorch's CPU adds them.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .parts import coo, parts


def flat_keys(indices: Any, size: Any) -> Any:
    """One number for each coordinate (a column of `indices`), in the order of the coordinates."""
    count = indices._shape[0]
    if count == 0:
        return torch.zeros(indices._shape[1], dtype=torch.int64, device=indices.device)
    keys = indices[0]
    for d in range(1, count):
        keys = keys * size[d] + indices[d]
    return keys


def unflat_keys(keys: Any, size: Any) -> Any:
    """Coordinates of numbers; the inverse of `flat_keys`."""
    found = []
    for n in reversed(size):
        found.append(keys % n if n else keys)
        keys = torch.div(keys, max(n, 1), rounding_mode="floor")
    return torch.stack(found[::-1]) if found else keys.new_zeros((0, keys.shape[0]))


def add_at(target: Any, index: Any, values: Any, alpha: Any = 1) -> Any:
    """target[index] += alpha * values along the first dimension; bool values are joined by or."""
    if target._dtype is torch.bool:
        whole = target.to(torch.uint8).index_add_(0, index, values.to(torch.uint8))
        return target.copy_(whole.ne(0))
    return target.index_add_(0, index, values, alpha=alpha)


def coalesced(t: Any) -> Any:
    """The same tensor with sorted, distinct coordinates."""
    p = parts(t)
    if p.coalesced:
        return t
    if p.nnz < 2:
        return coo(p.plain.clone(), p.values.clone(), t._shape, True)
    keys, order = flat_keys(p.plain, t._shape).sort(stable=True)
    starts = torch.cat([torch.ones(1, dtype=torch.bool, device=keys.device), keys[1:] != keys[:-1]])
    indices, values = p.plain[:, order], p.values[order]
    groups = starts.cumsum(0) - 1
    count = int(groups[-1]) + 1
    if count < p.nnz:
        indices = indices[:, starts]
        values = add_at(values.new_zeros((count, *values._shape[1:])), groups, values)
    return coo(indices.contiguous(), values, t._shape, True)
