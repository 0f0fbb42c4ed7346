"""Masked reductions of COO and CSR tensors: over the entries they have; what has no entry is masked out.

Invariant: the result has the layout of the input, with an entry wherever one of the elements it is made of has one.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


def _over(name: str, values: Any, dim: Any, keepdim: bool = False) -> Any:
    return getattr(torch, name)(values, dim=dim, keepdim=keepdim)


def _gathered(name: str, values: Any, places: Any, count: int) -> Any:
    """The reduction of values that have the same place."""
    small = values.dtype in (torch.bfloat16, torch.float16)
    given = values.to(torch.float) if small else values
    at = places.view(-1, *[1] * (given.dim() - 1)).expand(given.shape)
    room = given.new_empty((count, *given.shape[1:]))
    return room.scatter_reduce(0, at, given, reduce=name, include_self=False).to(values.dtype)


def coo(name: str, t: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any, identity: Any) -> Any:
    """A reduction of a COO tensor; `identity` gives what it is of nothing."""
    values, indices, sparse = t._values().to(dtype), t._indices(), t.sparse_dim()
    dims = tuple([d for d in dims if d < t.dim()])
    dense = [d + 1 - sparse for d in dims if d >= sparse]
    if dense:
        if name != "sum":
            raise NotImplementedError(f"masked {name} over dense dimensions of a sparse_coo tensor")
        values = _over("sum", values, dense, keepdim)
    gone = [d for d in dims if d < sparse]
    shape = [1 if d in dims else n for d, n in enumerate(t.shape) if keepdim or d not in dims]
    if len(gone) == sparse:
        nothing = name in ("amax", "amin") and values.shape[0] == 0
        whole = identity(values) if nothing else _over(name, values, 0)
        return (whole.reshape(shape) if keepdim else whole).to(dtype=dtype).to_sparse()
    if keepdim:
        indices = indices.clone()
        indices[gone] = 0
    else:
        indices = indices[[d for d in range(sparse) if d not in gone]]
    if indices.numel() > 0:
        indices, places = torch.unique(indices, return_inverse=True, dim=1)
        values = _gathered(name, values, places, indices.shape[1])
    return torch.sparse_coo_tensor(indices, values, shape, dtype=dtype, device=t.device)


def csr(name: str, t: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any, identity: Any) -> Any:
    """A reduction of a CSR tensor, which stays a matrix."""
    if not keepdim:
        text = "reduction operations on CSR tensors with keepdim=False is unsupported"
        raise AssertionError(text) if name in ("amax", "amin", "mean") else RuntimeError(text)
    if not dims:
        return t
    if len(dims) == 1:
        return coo(name, t.to_sparse_coo(), dims, True, dtype, identity).coalesce().to_sparse_csr()
    values = t.values().to(dtype)
    count = min(1, values.numel())
    found = _over(name, values, 0, True) if count else values
    rows = torch.tensor([0, count], device=t.device)
    columns = torch.zeros(count, dtype=torch.int64, device=t.device)
    return torch.sparse_csr_tensor(rows, columns, found, [1, count], dtype=dtype, device=t.device)
