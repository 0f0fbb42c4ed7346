"""Parts of sparse tensors, other orders of dimensions, and joining.

Invariant: results are tensors of their own; only where no index changes do they share memory, as PyTorch's do.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .._ops.rules.base import wrap_dim
from .coalesce import add_at
from .compressed import coordinates, to_coo
from .parts import NAMES, batch_dim, compressed, coo, is_coo, is_sparse, layout_of, parts, shallow, with_values
from .refusals import refused
from .table import serves

_TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


def _swapped(values: Any, i: int, j: int) -> list[Any]:
    out = list(values)
    out[i], out[j] = out[j], out[i]
    return out


@serves("transpose")
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    i, j = (wrap_dim(d, self.dim()) for d in (dim0, dim1))
    p = parts(self)
    size = _swapped(self._shape, i, j) if self._shape else ()
    if i == j:
        return shallow(self)
    if not is_coo(self):
        return _turn(self, i, j, size)
    n = p.sparse_dim
    if i < n and j < n:
        order = _swapped(range(n), i, j)
        return coo(p.plain[torch.tensor(order, device=p.plain.device)], p.values.clone(), size, False)
    if i >= n and j >= n:
        made = coo(p.plain.clone(), p.values.transpose(i - n + 1, j - n + 1), size, p.coalesced)
        return made
    raise RuntimeError(f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {n}, d0: {i}, d1: {j}")


def _turn(t: Any, i: int, j: int, size: Any) -> Any:
    p, batch = parts(t), batch_dim(t)
    if p.dense_dim:
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    here = layout_of(t)
    if {i, j} == {batch, batch + 1}:
        values = p.values.transpose(batch + 1, batch + 2) if here in (sparse_bsr, sparse_bsc) else p.values
        return compressed(_TURNED[here], p.compressed, p.plain, values, size)
    if i < batch and j < batch:
        outer, inner, values = (x.transpose(i, j) for x in (p.compressed, p.plain, p.values))
        return compressed(here, outer, inner, values, size)
    kinds = ["Batch" if d < batch else "Sparse" if d < batch + 2 else "Dense" for d in (i, j)]
    raise RuntimeError(
        "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
        f"{i}({kinds[0]}) and {j}({kinds[1]})"
    )


@serves("t")
def t_(self: Any) -> Any:
    p = parts(self)
    if self.dim() > 2 and not is_coo(self):
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    if is_coo(self) and (p.sparse_dim > 2 or p.dense_dim):
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {p.sparse_dim} sparse and "
            f"{p.dense_dim} dense dimensions"
        )
    return shallow(self) if self.dim() < 2 else transpose(self, 0, 1)


@serves("permute")
def permute(self: Any, dims: Any) -> Any:
    if len(dims) != self.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.dim()} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(d, self.dim()) for d in dims]
    if len(set(order)) < len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if not is_coo(self):
        raise refused("permute", [self])
    p = parts(self)
    if order == sorted(order):
        return shallow(self)
    n = p.sparse_dim
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only "
            "transpositions within sparse and dense dimensions are supported."
        )
    size = [self._shape[d] for d in order]
    same = order[:n] == list(range(n))
    indices = p.plain if same else p.plain[torch.tensor(order[:n], device=p.plain.device)]
    values = p.values.permute(0, *(d - n + 1 for d in order[n:])) if p.dense_dim else p.values
    return coo(indices, values, size, p.coalesced and same)


@serves("unsqueeze")
def unsqueeze(self: Any, dim: int) -> Any:
    d = wrap_dim(dim, self.dim() + 1)
    if not is_coo(self):
        raise refused("unsqueeze", [self])
    p = parts(self)
    size = [*self._shape[:d], 1, *self._shape[d:]]
    if d <= p.sparse_dim:
        zeros = p.plain.new_zeros((1, p.nnz))
        return coo(torch.cat([p.plain[:d], zeros, p.plain[d:]]), p.values, size)
    return coo(p.plain, p.values.unsqueeze(d - p.sparse_dim + 1), size)


def _at(size: Any, dim: int, index: int, name: str = "select") -> int:
    n = size[dim]
    if not -n <= index < n:
        raise IndexError(
            f"{name}(): index {index} out of range for tensor of size [{', '.join(map(str, size))}] at dimension {dim}"
        )
    return index + n if index < 0 else index


def _select_grad(g: Any, self: Any, dim: int, index: int) -> Any:
    d = wrap_dim(dim, self.dim())
    at = _at(self._shape, d, index)
    if not is_sparse(g):
        return torch.zeros(self._shape, dtype=g.dtype, device=g.device).select_scatter(g, d, at)
    p = parts(g)
    line = p.plain.new_full((1, p.nnz), at)
    return coo(torch.cat([p.plain[:d], line, p.plain[d:]]), p.values, self._shape)


@serves("select", grad={"self": _select_grad})
def select(self: Any, dim: int, index: int) -> Any:
    if self.dim() == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, self.dim())
    at = _at(self._shape, d, index)
    if not is_coo(self):
        return _select_compressed(self, d, at)
    p = parts(self)
    size = [n for e, n in enumerate(self._shape) if e != d]
    if d >= p.sparse_dim:
        return coo(p.plain, p.values.select(d - p.sparse_dim + 1, at), size)
    hit = (p.plain[d] == at).nonzero().flatten()
    values = p.values[hit]
    if p.sparse_dim == 1:
        total = values.new_zeros((1, *values._shape[1:]))
        return add_at(total, torch.zeros_like(hit), values)[0]
    rest = [e for e in range(p.sparse_dim) if e != d]
    indices = p.plain[torch.tensor(rest, device=p.plain.device)][:, hit]
    return coo(indices, values, size)


@serves("select_copy", grad={"self": _select_grad})
def select_copy(self: Any, dim: int, index: int) -> Any:
    if is_coo(self):
        raise refused("select_copy.int", [self])
    d = wrap_dim(dim, self.dim())
    made = _select_compressed(self, d, _at(self._shape, d, index, "select_copy"), "select_copy")
    return made.clone()


def _blocks_allow(t: Any, d: int, at: int) -> bool:
    """Whether the numbers of a row or column lie in the blocks so that PyTorch can see them as one vector: those of one
    block do."""
    layout = layout_of(t)
    if layout not in (sparse_bsr, sparse_bsc):
        return True
    rows, columns = parts(t).values._shape[1:3]
    if int((coordinates(t)[d] == at // (columns if d else rows)).sum()) <= 1:
        return True
    if layout is sparse_bsc:
        return d == 1 or columns == 1
    return rows == 1 or (d == 0 and columns == 1)


def _select_compressed(t: Any, d: int, at: int, name: str = "select") -> Any:
    p, batch = parts(t), batch_dim(t)
    size = [n for e, n in enumerate(t._shape) if e != d]
    if d < batch:
        return compressed(layout_of(t), p.compressed.select(d, at), p.plain.select(d, at), p.values.select(d, at), size)
    if d < batch + 2:
        if batch:
            raise RuntimeError(
                f"{name}(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
            )
        if name == "select" and not _blocks_allow(t, d, at):
            raise RuntimeError("select(): no view exists for the given input, consider using torch.select_copy.")
        made = select(to_coo(t), d, at)
        return with_values(made, parts(made).values, True) if is_sparse(made) else made
    # Values of blocks have the block's two dimensions before the dense ones.
    place = d + 1 if layout_of(t) in (sparse_bsr, sparse_bsc) else d - 1
    return compressed(layout_of(t), p.compressed, p.plain, p.values.select(place, at), size)


@serves("unbind", above=True)
def unbind(self: Any, dim: int) -> Any:
    d = wrap_dim(dim, self.dim())
    return tuple(torch.select(self, d, i) for i in range(self._shape[d]))


@serves("index_select")
def index_select(self: Any, dim: int, index: Any) -> Any:
    if not is_coo(self):
        raise refused("index_select", [self])
    d = wrap_dim(dim, self.dim())
    if index.dim() != 1:
        raise IndexError("index_select() argument index must be 1-D long-tensor.")
    n, p = self._shape[d], parts(self)
    index = index.to(torch.int64)
    if index.numel() and not bool(((index >= -n) & (index < n)).all()):
        bad = next(i for i in index.tolist() if not -n <= i < n)
        raise IndexError(
            f"index_select(): index contains {bad} that is out of range for tensor of size {list(self._shape)} at "
            f"dimension {d}"
        )
    index = torch.where(index < 0, index + n, index)
    size = [*self._shape]
    size[d] = index.shape[0]
    if d >= p.sparse_dim:
        return coo(p.plain, p.values.index_select(d - p.sparse_dim + 1, index), size)
    # For each place of the index, the entries with the coordinate that it names.
    found, order = p.plain[d].sort(stable=True)
    low = torch.searchsorted(found, index)
    counts = torch.searchsorted(found, index, right=True) - low
    total = int(counts.sum())
    places = torch.repeat_interleave(torch.arange(index.shape[0], device=index.device), counts, output_size=total)
    first = counts.cumsum(0) - counts
    mine = order[low[places] + (torch.arange(total, device=index.device) - first[places])]
    indices = p.plain[:, mine].clone()
    indices[d] = places
    return coo(indices, p.values[mine], size)


@serves("narrow_copy")
def narrow_copy(self: Any, dim: int, start: int, length: int) -> Any:
    if not is_coo(self):
        raise refused("narrow_copy", [self])
    if not 0 <= dim < self.dim():
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {self.dim()}.")
    d = dim
    n, p = self._shape[d], parts(self)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start + length > n or start < 0:
        raise RuntimeError(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, input.size({d}))."
        )
    size = [*self._shape]
    size[d] = length
    if d >= p.sparse_dim:
        return coo(p.plain, p.values.narrow_copy(d - p.sparse_dim + 1, start, length), size, p.coalesced)
    hit = ((p.plain[d] >= start) & (p.plain[d] < start + length)).nonzero().flatten()
    indices = p.plain[:, hit].clone()
    indices[d] -= start
    return coo(indices, p.values[hit], size, p.coalesced)


@serves("cat")
def cat(tensors: Any, dim: int) -> Any:
    for i, t in enumerate(tensors):
        if not is_sparse(t):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")
        if not is_coo(t):
            raise refused("cat", [t])
    first = tensors[0]
    d, p = wrap_dim(dim, first.dim()), parts(first)
    for i, t in enumerate(tensors):
        q = parts(t)
        if any(a != b for e, (a, b) in enumerate(zip(first._shape, t._shape)) if e != d):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first._shape)} (except in the concatenating dimension), "
                f"but found shape: {list(t._shape)} at position {i}."
            )
        if (q.sparse_dim, q.dense_dim) != (p.sparse_dim, p.dense_dim):
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {p.sparse_dim}, {p.dense_dim}, but tensor "
                f"at position {i} has {q.sparse_dim}, {q.dense_dim}."
            )
    size = [*first._shape]
    size[d] = sum(t._shape[d] for t in tensors)
    moved, values, begin = [], [], 0
    for t in tensors:
        q = parts(t)
        indices, own = q.plain, q.values
        if d < p.sparse_dim:
            if begin:
                indices = indices.clone()
                indices[d] += begin
        else:
            at = d - p.sparse_dim + 1
            before = own.new_zeros((*own._shape[:at], begin, *own._shape[at + 1 :]))
            rest = size[d] - begin - own._shape[at]
            after = own.new_zeros((*own._shape[:at], rest, *own._shape[at + 1 :]))
            own = torch.cat([before, own, after], at)
        moved.append(indices)
        values.append(own)
        begin += t._shape[d]
    return coo(torch.cat(moved, 1), torch.cat(values), size, False)


@serves("stack", above=True)
def stack(tensors: Any, dim: int) -> Any:
    d = wrap_dim(dim, tensors[0].dim() + 1)
    return torch.cat([t.unsqueeze(d) for t in tensors], d)


@serves("expand")
def expand(self: Any, size: Any, implicit: bool) -> Any:
    if not is_coo(self):
        raise refused("expand", [self])
    raise RuntimeError(f"expand is unsupported for {NAMES[sparse_coo]} tensors")
