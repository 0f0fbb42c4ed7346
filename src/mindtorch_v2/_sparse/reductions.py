"""Sums, norms and softmax of sparse tensors.

Invariant: what is not written down is zero for sums and norms, and minus infinity for softmax.
"""

from __future__ import annotations

import operator
from typing import Any

import mindtorch_v2 as torch

from .._dispatch.binding import is_element, is_index, need_tensor
from .._dispatch.op import plain_name
from .._layout import sparse_csr
from .._ops.rules.base import wrap_dim
from .._sizes import is_long
from .coalesce import add_at, coalesced, flat_keys
from .compressed import offsets, outer_ids
from .mask import at_indices
from .parts import compressed, coo, is_coo, is_sparse, layout_of, parts, with_values
from .refusals import refused
from .rows import SPARSE_MASK
from .table import row, serves


def _dims(t: Any, dim: Any) -> list[int]:
    found = [wrap_dim(d, t.dim()) for d in ((dim,) if isinstance(dim, int) else dim)]
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return sorted(found)


def _sum_grad(g: Any, self: Any, dim: Any) -> Any:
    """The gradient of a sum, where the input has entries."""
    p = parts(self)
    dims = _dims(self, dim)
    dense = [d - p.sparse_dim + 1 for d in dims if d >= p.sparse_dim]
    kept = [d for d in range(p.sparse_dim) if d not in dims]
    if kept:
        heads = p.plain[torch.tensor(kept, device=p.plain.device)]
        values = at_indices(g if is_sparse(g) else g, heads, len(kept))
    else:
        values = g.unsqueeze(0)
    for d in dense:
        values = values.unsqueeze(d)
    return with_values(self, values.expand(p.values._shape).contiguous())


@row("_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor", grad={"self": _sum_grad}, node="SparseSumBackward0")
def SPARSE_SUM(self: Any, dim: Any) -> Any:
    if not is_coo(self):
        raise refused("_sparse_sum.dim", [self])
    if len(dim) == 0:
        raise RuntimeError("sparse_sum: expected at least one dimension to sum")
    p = parts(self)
    dims = _dims(self, dim)
    dense = [d - p.sparse_dim + 1 for d in dims if d >= p.sparse_dim]
    kept = [d for d in range(p.sparse_dim) if d not in dims]
    values = p.values.sum(dense, dtype=self._dtype) if dense else p.values.clone()
    if not kept:
        return values.sum(0, dtype=self._dtype)
    size = [n for d, n in enumerate(self._shape) if d not in dims]
    indices = p.plain if len(kept) == p.sparse_dim else p.plain[torch.tensor(kept, device=p.plain.device)]
    return coalesced(coo(indices.clone(), values, size))


def sparse_sum(t: Any, dim: Any = None, dtype: Any = None) -> Any:
    """`torch.sparse.sum`"""
    need_tensor("_sparse_sum", "input", 1, t)
    dims = dim if isinstance(dim, (list, tuple)) else (dim,)
    if dim is not None and not all(is_index(d) or is_element(d) for d in dims):
        got = f"Tensor, {plain_name(dim)}" + ("" if dtype is None else f", dtype={plain_name(dtype)}")
        raise TypeError(
            f"_sparse_sum() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            " * (Tensor input)\n * (Tensor input, *, torch.dtype dtype)\n * (Tensor input, tuple of ints dim)\n"
            " * (Tensor input, tuple of ints dim, *, torch.dtype dtype)\n"
        )
    if dim is not None and not all(is_long(operator.index(d)) for d in dims):
        raise ValueError("Overflow when unpacking long long")
    if dtype is not None and dtype is not t._dtype:
        t = t.to(dtype)
    if dim is None:
        whole = t if not is_coo(t) else t.coalesce()
        return whole.values().sum()
    return SPARSE_SUM.call((t, tuple(operator.index(d) for d in dims)))


@serves("sum", above=True)
def sum_(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if not is_coo(self):
        return _csr_reduced(self, dim, keepdim, dtype, "sum")
    if dim is None or len(dim) == 0:
        return TOTAL.call((self, dtype))
    if dtype is None and not self._dtype.is_inexact:
        dtype = torch.int64
    made = sparse_sum(self, dim, dtype)
    if keepdim:
        for d in _dims(self, dim):
            made = made.unsqueeze(d)
    return made


def _total_grad(g: Any, self: Any) -> Any:
    return g.expand(self._shape)


@row("_sparse_total(Tensor self, ScalarType? dtype=None) -> Tensor", grad={"self": _total_grad}, node="SumBackward0")
def TOTAL(self: Any, dtype: Any) -> Any:
    return parts(self).values.sum(dtype=dtype)


def _csr_reduced(self: Any, dim: Any, keepdim: bool, dtype: Any, name: str) -> Any:
    if dim is None or len(dim) == 0:
        if name == "sum":
            return TOTAL.call((self, dtype))
        raise refused("prod", [self])
    if layout_of(self) is not sparse_csr:
        raise RuntimeError(
            f"Currently the only compressed sparse format supported for {name}.dim_IntList is CSR, but got layout "
            f"{'Sparse' + layout_of(self).name[7:].title()}"
        )
    return CSR_REDUCE.call((self, tuple(dim), keepdim, dtype, name))


@row("_sparse_csr_reduce(Tensor self, int[1] dim, bool keepdim, ScalarType? dtype, str name) -> Tensor")
def CSR_REDUCE(self: Any, dim: Any, keepdim: bool, dtype: Any, name: str) -> Any:
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    p, dims = parts(self), _dims(self, dim)
    if self.dim() != 2:
        raise NotImplementedError(f"{name}: batches of CSR tensors are not supported")
    values = p.values if dtype is None else p.values.to(dtype)
    wide = values.dtype if values.dtype.is_inexact or dtype is not None else torch.int64
    index = p.compressed.dtype
    if dims == [0, 1]:
        total = (values.sum(dtype=wide) if name == "sum" else values.prod(dtype=wide)).reshape(1)[: int(p.nnz > 0)]
        ends = torch.tensor([0, total.shape[0]], dtype=index, device=values.device)
        return compressed(sparse_csr, ends, ends.new_zeros(total.shape[0]), total, (1, 1))
    groups = p.plain if dims == [0] else outer_ids(p.compressed, p.nnz)
    kept, at = torch.unique(groups.to(torch.int64), sorted=True, return_inverse=True)
    if name == "sum":
        found = add_at(values.new_zeros(kept.shape[0], dtype=wide), at, values.to(wide))
    else:
        found = values.new_ones(kept.shape[0], dtype=wide).index_reduce_(0, at, values.to(wide), "prod")
    if dims == [0]:
        ends = torch.tensor([0, kept.shape[0]], dtype=index, device=values.device)
        return compressed(sparse_csr, ends, kept.to(index), found, (1, self._shape[1]))
    outer = offsets(kept, int(self._shape[0])).to(index)
    return compressed(sparse_csr, outer, torch.zeros_like(kept, dtype=index), found, (self._shape[0], 1))


@serves("dist", above=True)
def dist(self: Any, other: Any, p: Any) -> Any:
    """The norm of a difference; which layouts may be subtracted, and of which a norm is taken, is their affair."""
    sparse = [t for t in (self, other) if is_sparse(t)]
    if not all(is_coo(t) for t in sparse):
        raise refused("dist", sparse)
    return torch.norm(self - other, p)


@serves("norm", above=True)
def norm(self: Any, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if not is_coo(self):
        raise refused("norm.Scalar", [self])
    if keepdim or dtype is not None or (dim is not None and len(dim) not in (0, self.dim())):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    return torch.norm(self.coalesce().values(), 2 if p is None else p)


@serves("norm.fro", above=True)
def frobenius(self: Any, p: str, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if p != "fro":
        raise refused("norm." + p, [self])
    return norm(self, 2, dim, keepdim, dtype)


@serves("any")
def any_(self: Any, dim: Any, keepdim: bool) -> Any:
    if not is_coo(self) or dim is not None:
        raise refused("any.dim" if dim is not None else "any", [self])
    return parts(coalesced(self)).values.any()


# -- softmax ------------------------------------------------------------------------------------------------------
def _groups(t: Any, dim: int) -> tuple[Any, int]:
    """Entries that differ in one sparse dimension only belong together."""
    p = parts(t)
    others = [d for d in range(p.sparse_dim) if d != dim]
    if not others:
        return torch.zeros(p.nnz, dtype=torch.int64, device=p.plain.device), 1
    heads = p.plain[torch.tensor(others, device=p.plain.device)]
    kept, at = torch.unique(flat_keys(heads, [t._shape[d] for d in others]), return_inverse=True)
    return at, int(kept.shape[0])


def _softmax(self: Any, dim: int, log: bool) -> Any:
    t = coalesced(self)
    p, d = parts(t), wrap_dim(dim, self.dim())
    if d >= p.sparse_dim:
        fn = torch.log_softmax if log else torch.softmax
        return with_values(t, fn(p.values, d - p.sparse_dim + 1))
    at, count = _groups(t, d)
    values = p.values
    spread = at.view(-1, *[1] * (values.dim() - 1)).expand(values._shape)
    top = values.new_full((count, *values._shape[1:]), float("-inf")).scatter_reduce_(0, spread, values, "amax")
    moved = values - top[at]
    powers = moved.exp()
    total = values.new_zeros((count, *values._shape[1:])).index_add_(0, at, powers)
    return with_values(t, moved - total.log()[at] if log else powers / total[at])


def softmax_grad(g: Any, result: Any, dim: int, self: Any, log: bool) -> Any:
    t = coalesced(result)
    p, d = parts(t), wrap_dim(dim, result.dim())
    grads = parts(coalesced(SPARSE_MASK.call((g, t)))).values
    weights = grads if log else grads * p.values
    if d >= p.sparse_dim:
        total = weights.sum(d - p.sparse_dim + 1, keepdim=True)
    else:
        at, count = _groups(t, d)
        total = weights.new_zeros((count, *weights._shape[1:])).index_add_(0, at, weights)[at]
    return with_values(t, grads - p.values.exp() * total if log else p.values * (grads - total))


@row(
    "_sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    grad={"self": lambda g, result, dim, self: softmax_grad(g, result, dim, self, False)},
)
def SOFTMAX(self: Any, dim: int, half_to_float: bool) -> Any:
    return _checked_softmax(self, dim, False)


@row(
    "_sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    grad={"self": lambda g, result, dim, self: softmax_grad(g, result, dim, self, True)},
)
def LOG_SOFTMAX(self: Any, dim: int, half_to_float: bool) -> Any:
    return _checked_softmax(self, dim, True)


def _checked_softmax(self: Any, dim: int, log: bool) -> Any:
    if not is_coo(self):
        raise refused("_sparse_log_softmax" if log else "_sparse_softmax", [self])
    if not self._dtype.is_floating_point:
        name = "log_softmax" if log else "softmax"
        raise NotImplementedError(f"\"{name}\" not implemented for '{self._dtype.scalar_name}'")
    return _softmax(self, dim, log)
