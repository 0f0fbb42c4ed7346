"""`torch.sparse.mm` with a reduction: products of a CSR matrix whose terms are summed, averaged, or of which one is
taken.

Invariant: the second result says which entry of the matrix gave each element where one was taken; the number of
entries stands for none.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import sparse_csr
from .compressed import coordinates
from .parts import NAMES, is_sparse, layout_of, parts, with_values
from .refusals import refused
from .table import row, serves

_KINDS = ("sum", "prod", "mean", "amax", "amin")
_FLOATS = ("float32", "float64", "float16", "bfloat16")


def _check(self: Any, other: Any, reduce: str) -> None:
    if not is_sparse(self) or self.is_sparse:
        raise refused("_sparse_mm_reduce_impl", [self])
    if reduce not in _KINDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if layout_of(self) is not sparse_csr:
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {NAMES[layout_of(self)]}")
    if is_sparse(other):
        raise RuntimeError(
            f"Expected tensor to have Strided Layout, but got tensor with {NAMES[layout_of(other)]} Layout (while "
            "checking arguments for sparse_mm_reduce)"
        )
    if other._dtype is not self._dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {self._dtype.scalar_name}; but got "
            f"torch.{other._dtype.scalar_name}Tensor instead (while checking arguments for sparse_mm_reduce)"
        )
    if other.dim() != 2 or other._shape[0] != self._shape[1]:
        raise RuntimeError(
            f"Expected a tensor of dimension 2 and tensor.size[0] == {self._shape[1]} but got: dimension "
            f"{other.dim()} and tensor.size[0] = {other._shape[0] if other.dim() else 1}"
        )
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if self._dtype.name not in _FLOATS:
        raise NotImplementedError(f"\"spmm_reduce_kernel\" not implemented for '{self._dtype.scalar_name}'")


def _places(self: Any) -> tuple[Any, Any]:
    rows, columns = coordinates(self)
    return rows.to(torch.int64), columns.to(torch.int64)


def _counts(self: Any) -> Any:
    """How many terms each row has, at least one: a mean of none is zero."""
    begins = parts(self).compressed
    return (begins[1:] - begins[:-1]).clamp(min=1).unsqueeze(1)


def _terms(self: Any, other: Any) -> tuple[Any, Any]:
    """Every entry times its row of `other`, and the row of the result that each belongs to."""
    rows, columns = _places(self)
    return parts(self).values.unsqueeze(1) * other.index_select(0, columns), rows


def _taken(self: Any, other: Any, reduce: str) -> tuple[Any, Any]:
    terms, rows = _terms(self, other)
    shape, entries = (self._shape[0], other._shape[1]), terms._shape[0]
    at = rows.unsqueeze(1).expand(terms._shape)
    out = other.new_zeros(shape).scatter_reduce(0, at, terms, reduce, include_self=False)
    numbers = torch.arange(entries, device=rows.device).unsqueeze(1).expand(terms._shape)
    mine = (terms == out.index_select(0, rows)) | terms.isnan()
    which = torch.full(shape, entries, dtype=torch.int64, device=rows.device)
    return out, which.scatter_reduce(0, at, torch.where(mine, numbers, entries), "amin")


def _share(g: Any, self: Any, reduce: str, which: Any) -> tuple[Any, Any, Any]:
    """The gradient of every term, and where the terms stand."""
    rows, columns = _places(self)
    if reduce == "mean":
        g = g / _counts(self).to(g.dtype)
    found = g.index_select(0, rows)
    if reduce in ("amax", "amin"):
        numbers = torch.arange(rows._shape[0], device=rows.device).unsqueeze(1)
        found = torch.where(which.index_select(0, rows) == numbers, found, 0)
    return found, rows, columns


def _backward(grads: Any, needs: Any, self: Any, other: Any, reduce: str, result1: Any) -> Any:
    found, _, columns = _share(grads[0], self, reduce, result1)
    mine = with_values(self, (found * other.index_select(0, columns)).sum(1)) if needs[0] else None
    if not needs[1]:
        return mine, None
    yours = torch.zeros_like(other).index_add(0, columns, found * parts(self).values.unsqueeze(1))
    return mine, yours


@row(
    "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
    grad={("self", "other"): _backward},
    node="SparseMmReduceImplBackward0",
)
def REDUCED(self: Any, other: Any, reduce: str) -> Any:
    _check(self, other, reduce)
    if reduce in ("amax", "amin"):
        return _taken(self, other, reduce)
    terms, rows = _terms(self, other)
    # Halves are summed as floats.
    wide = terms.float() if terms.dtype.itemsize < 4 else terms
    out = torch.zeros((self._shape[0], other._shape[1]), dtype=wide.dtype, device=wide.device).index_add(0, rows, wide)
    if reduce == "mean":
        out = out / _counts(self).to(out.dtype)
    return out.to(other.dtype), torch.empty((0,), dtype=torch.int64, device=other.device)


@row("_spsolve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
def SPSOLVE(A: Any, B: Any, left: bool) -> Any:
    raise refused("_spsolve", [A, B])


@serves("linalg_solve", above=True)
def solve(A: Any, B: Any, left: bool) -> Any:
    if is_sparse(A) and layout_of(A) is sparse_csr:
        return SPSOLVE.call((A, B, left))
    raise refused("linalg_solve", [A, B])
