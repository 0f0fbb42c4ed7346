"""Compressed layouts: between offsets and ids of rows, and between layouts.

Invariant: a conversion keeps what is specified: zeros that were written down stay, blocks are whole.
"""

from __future__ import annotations

from math import prod
from typing import Any

import mindtorch_v2 as torch

from .._layout import layout as Layout
from .._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .coalesce import add_at, coalesced, flat_keys
from .parts import BLOCKS, COLUMNS, NAMES, ROWS, batch_dim, blocksize, compressed, coo, is_coo, layout_of, parts

_FEW = 64  # indices that are looked at one by one


def outer_ids(outer: Any, nnz: int) -> Any:
    """The row (or column) of each entry, from offsets."""
    if len(outer._shape) == 1:
        ids = torch.arange(outer._shape[0] - 1, dtype=outer.dtype, device=outer.device)
        return torch.repeat_interleave(ids, (outer[1:] - outer[:-1]).to(torch.int64), output_size=nnz)
    places = torch.arange(nnz, dtype=outer.dtype, device=outer.device).expand(*outer._shape[:-1], nnz)
    return (torch.searchsorted(outer.contiguous(), places.contiguous(), right=True) - 1).to(outer.dtype)


def offsets(ids: Any, count: int) -> Any:
    """Offsets from sorted rows: the inverse of `outer_ids`, for one batch."""
    found = torch.zeros(count + 1, dtype=torch.int64, device=ids.device)
    if ids._shape[0]:
        found[1:] = torch.bincount(ids, minlength=count).cumsum(0)
    return found


def coordinates(t: Any) -> tuple[Any, Any]:
    """(rows, columns) of a compressed tensor's entries, each of shape (*batch, entries)."""
    p = parts(t)
    ids = outer_ids(p.compressed, p.nnz)
    return (ids, p.plain) if p.layout in ROWS else (p.plain, ids)


def to_dense(t: Any) -> Any:
    """The dense tensor with the same elements."""
    p = parts(t)
    if p.layout is sparse_coo:
        return _coo_to_dense(t)
    batch, block = batch_dim(t), blocksize(t) or (1, 1)
    count = prod(t._shape[:batch])
    rows, columns = (int(t._shape[batch + d] // max(block[d], 1)) for d in range(2))
    dense = tuple(t._shape[batch + 2 :])
    r, c = (x.to(torch.int64).reshape(count, p.nnz) for x in coordinates(t))
    first = torch.arange(count, device=r.device).unsqueeze(1) * (rows * columns)
    keys = (first + r * columns + c).reshape(-1)
    values = p.values.reshape(count * p.nnz, *block, *dense)
    out = values.new_zeros((count * rows * columns, *block, *dense))
    out = add_at(out, keys, values).reshape(count, rows, columns, *block, *dense).transpose(2, 3)
    return out.reshape(t._shape)


def _coo_to_dense(t: Any) -> Any:
    p = parts(t)
    out = p.values.new_zeros(t._shape)
    if p.nnz == 0 or out.numel() == 0:
        return out
    heads = t._shape[: p.sparse_dim]
    _check_range(p.plain, heads)
    flat = out.view(prod(heads), *t._shape[p.sparse_dim :])
    add_at(flat, flat_keys(p.plain, heads), p.values)
    return out


def _check_range(indices: Any, heads: Any) -> None:
    """An index out of range would land in another row once coordinates are single numbers."""
    if indices.device.type == "meta" or not heads:
        return
    if indices.device.type == "cpu" and indices.numel() <= _FEW:
        # Quicker than operators.
        if all([not row or (min(row) >= 0 and max(row) < n) for row, n in zip(indices.tolist(), heads)]):
            return
        raise IndexError("index out of range in self")
    top = torch.tensor(heads, device=indices.device).unsqueeze(1)
    if not bool(((indices >= 0) & (indices < top)).all()):
        raise IndexError("index out of range in self")


# -- between layouts ----------------------------------------------------------------------------------------------
def to_coo(t: Any) -> Any:
    """A compressed tensor as COO; batches become sparse dimensions."""
    p = parts(t)
    batch, block = batch_dim(t), blocksize(t)
    r, c = coordinates(t)
    values = p.values
    lead = tuple(t._shape[:batch])
    if block is not None:
        # Each element of a block by itself, row after row within the block.
        up = torch.arange(block[0], device=r.device).view(-1, 1)
        across = torch.arange(block[1], device=r.device).view(1, -1)
        r = (r[..., None, None] * block[0] + up).expand(*r._shape, *block)
        c = (c[..., None, None] * block[1] + across).expand(*c._shape, *block)
    each = r._shape[batch:]
    ids = [
        torch.arange(n, device=r.device).view(-1, *[1] * (r.dim() - d - 1)).expand(r._shape) for d, n in enumerate(lead)
    ]
    indices = torch.stack([x.reshape(-1).to(torch.int64) for x in (*ids, r, c)])
    values = values.reshape(prod(lead) * prod(each), *t._shape[batch + 2 :])
    # In order by rows without looking: rows of elements, blocks of one row, a single block.
    ordered = p.layout is sparse_csr or (block is not None and not batch and len(p.values) <= 1)
    return coo(indices, values, t._shape, ordered or (p.layout is sparse_bsr and block is not None and block[0] == 1))


def _entries(t: Any, layout: Layout, block: tuple[int, int] | None) -> Any:
    """A two-dimensional sparse tensor's entries in another compressed layout."""
    s = coalesced(t if is_coo(t) else to_coo(t))
    p = parts(s)
    rows, columns = int(s._shape[0]), int(s._shape[1])
    r, c = p.plain[0], p.plain[1]
    values = p.values
    if block is not None:
        rows, columns = rows // block[0], columns // block[1]
        inside = (r % block[0]) * block[1] + c % block[1]
        r, c = torch.div(r, block[0], rounding_mode="floor"), torch.div(c, block[1], rounding_mode="floor")
    keys = r * columns + c if layout in ROWS else c * rows + r
    if block is not None:
        keys, at = torch.unique(keys, sorted=True, return_inverse=True)
        area = block[0] * block[1]
        packed = values.new_zeros((keys._shape[0] * area, *values._shape[1:]))
        packed[at * area + inside] = values
        values = packed.reshape(keys._shape[0], *block, *values._shape[1:])
    elif layout in COLUMNS:
        keys, order = keys.sort(stable=True)
        values = values[order]
    width = columns if layout in ROWS else rows
    count = rows if layout in ROWS else columns
    ids = torch.div(keys, max(width, 1), rounding_mode="floor")
    return compressed(layout, offsets(ids, count), keys - ids * width, values, t._shape)


def _per_batch(t: Any, layout: Layout, block: tuple[int, int] | None) -> Any:
    """Each matrix of a batch of compressed ones by itself; all have equally many entries."""
    p, batch = parts(t), batch_dim(t)
    lead = tuple(t._shape[:batch])
    count = prod(lead)
    outer, inner = p.compressed.reshape(count, -1), p.plain.reshape(count, p.nnz)
    values = p.values.reshape(count, *p.values._shape[batch:])
    made = [
        parts(_entries(compressed(p.layout, outer[i], inner[i], values[i], t._shape[batch:]), layout, block))
        for i in range(count)
    ]
    if len({m.nnz for m in made}) > 1:
        raise RuntimeError(
            f"Expect the same number of specified elements per batch, but got {[m.nnz for m in made]} in batches"
        )
    outer, inner, values = (torch.stack([getattr(m, name) for m in made]) for name in ("compressed", "plain", "values"))
    outer, inner, values = (x.reshape(*lead, *x._shape[1:]) for x in (outer, inner, values))
    return compressed(layout, outer, inner, values, t._shape)


def between(t: Any, layout: Layout, block: tuple[int, int] | None, name: str) -> Any:
    """A sparse tensor in another compressed layout."""
    here = layout_of(t)
    if here is layout and blocksize(t) == block:
        p = parts(t)
        return compressed(layout, p.compressed.clone(), p.plain.clone(), p.values.clone(), t._shape)
    if is_coo(t) and parts(t).sparse_dim != 2:
        raise RuntimeError(
            f"{name}: conversion from Sparse to {NAMES[layout]} for input tensors with sparse_dim()!=2 is not supported"
        )
    if here in BLOCKS and layout not in BLOCKS:
        raise RuntimeError(f"{name}: expected SparseCsr or SparseCsc layout but got {NAMES[here]}")
    if block is not None:
        if not is_coo(t) and batch_dim(t) and here not in BLOCKS:
            raise RuntimeError(
                f"{name}: conversion from {NAMES[here]} to {NAMES[layout]} for batched inputs is not supported"
            )
        _check_block(t, layout, block, name, batch_dim(t) if not is_coo(t) else 0)
    if is_coo(t):
        return _entries(t, layout, block)
    if here in BLOCKS and layout in BLOCKS and blocksize(t) != block:
        raise RuntimeError(
            f"to_{name.partition('_to_')[2]}: conversion from {NAMES[here]} to {NAMES[layout]} with blocksize changed "
            f"from {list(blocksize(t) or ())} to {list(block or ())} is not supported"
        )
    made = _per_batch(t, layout, block) if batch_dim(t) else _entries(t, layout, block)
    if parts(t).compressed.dtype is not torch.int64:
        p = parts(made)
        p.compressed, p.plain = (x.to(parts(t).compressed.dtype) for x in (p.compressed, p.plain))
    return made


def _check_block(t: Any, layout: Layout, block: tuple[int, int], name: str, batch: int) -> None:
    if block[0] <= 0 or block[1] <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got [{block[0]}, {block[1]}]")
    rows, columns = t._shape[batch], t._shape[batch + 1]
    if rows % block[0] or columns % block[1]:
        raise RuntimeError(
            f"{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize "
            f"({block[0]},{block[1]})"
        )


def dense_to_coo(t: Any, sparse_dim: int) -> Any:
    """Where the elements (of the trailing dimensions together) are not zero."""
    shape = tuple(t._shape)
    heads, tails = shape[:sparse_dim], shape[sparse_dim:]
    if not shape:
        count = int(bool(t != 0))
        return coo(torch.zeros((0, count), dtype=torch.int64, device=t.device), t.reshape(1)[:count], shape, True)
    found = t != 0
    if tails:
        found = found.flatten(sparse_dim).any(-1)
    indices = found.nonzero().t().contiguous()
    flat = t.reshape(prod(heads), *tails)
    return coo(indices, flat[flat_keys(indices, heads)], shape, True)


def dense_to_compressed(t: Any, layout: Layout, block: tuple[int, int] | None, dense_dim: int, name: str) -> Any:
    """Dense to CSR, CSC, BSR or BSC."""
    batch = t.dim() - dense_dim - 2
    if block is not None:
        _check_block(t, layout, block, name, batch)
    lead, tails = tuple(t._shape[:batch]), tuple(t._shape[batch + 2 :])
    high, wide = block or (1, 1)
    rows, columns = t._shape[batch] // high, t._shape[batch + 1] // wide
    count = prod(lead)
    if count == 0:
        raise RuntimeError(f"{name.removeprefix('dense_')}: Expected product of batch dimensions to be non-zero.")
    grid = t.reshape(count, rows, high, columns, wide, *tails).transpose(2, 3)
    if layout not in ROWS:
        grid = grid.transpose(1, 2)
    grid = grid.reshape(count, rows * columns, high, wide, *tails)
    found = (grid != 0).flatten(2).any(-1)
    each = found.sum(1)
    nnz = int(each[0])
    if count > 1 and not bool((each == nnz).all()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    outer_count, width = (rows, columns) if layout in ROWS else (columns, rows)
    places = found.nonzero()
    keys = places[:, 1].reshape(count, nnz)
    ids = torch.div(keys, max(width, 1), rounding_mode="floor")
    outer = torch.stack([offsets(ids[i], outer_count) for i in range(count)])
    values = grid[places[:, 0], places[:, 1]].reshape(*lead, nnz, *((high, wide) if block else ()), *tails)
    return compressed(
        layout, outer.reshape(*lead, -1), (keys - ids * width).reshape(*lead, nnz), values, tuple(t._shape)
    )


KIND = {sparse_csr: "csr", sparse_csc: "csc", sparse_bsr: "bsr", sparse_bsc: "bsc", sparse_coo: "coo", strided: ""}
