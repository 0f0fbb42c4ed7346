"""Sums, products and quotients with sparse tensors.

Invariant: what is zero by layout stays so; a result that would be dense is one only where PyTorch's is.
"""

from __future__ import annotations

from math import prod
from typing import Any

import mindtorch_v2 as torch

from .. import _native
from .._layout import sparse_csr
from .._numbers import is_number
from .._tensor_base import TensorBase
from .._types import result_type
from .broadcast import BROADCAST
from .coalesce import add_at, coalesced, flat_keys
from .compressed import between, to_coo
from .compressed import to_dense as dense_of
from .mask import masked
from .parts import (
    BLOCKS,
    NAMES,
    ROWS,
    Parts,
    batch_dim,
    blocksize,
    compressed,
    coo,
    is_compressed,
    is_coo,
    is_sparse,
    layout_of,
    parts,
    replace,
    with_values,
    without_entries,
)
from .refusals import refused
from .table import bumped, serves

_MERGE: Any = _native.sparse_merge


def _shown(t: Any) -> str:
    return "[" + ", ".join(map(str, getattr(t, "_shape", ()))) + "]"


def _cast(t: Any, dtype: Any) -> Any:
    return t if t._dtype is dtype else with_values(t, parts(t).values.to(dtype))


# -- sums ---------------------------------------------------------------------------------------------------------
def _check_alpha(alpha: Any, dtype: Any) -> None:
    if isinstance(alpha, float) and not dtype.is_inexact:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


def _check_dense_operand(self: Any, other: Any) -> None:
    """Blocks are added to blocks only."""
    if is_sparse(self) != is_sparse(other):
        sparse = self if is_sparse(self) else other
        if layout_of(sparse) in BLOCKS:
            raise RuntimeError(
                f"add(): a tensor of layout {layout_of(sparse)} cannot be added to a dense tensor, only to one of the "
                "same layout; to_dense() makes it dense"
            )


@serves("add")
def add(self: Any, other: Any, alpha: Any) -> Any:
    if is_number(other) or is_number(self):
        sparse = self if is_sparse(self) else other
        if is_coo(sparse):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size [] while other has size "
            f"{_shown(sparse)} (FYI: op2-sparse addition does not currently support broadcasting)"
        )
    dtype = result_type(self, other)
    _check_alpha(alpha, dtype)
    _check_dense_operand(self, other)
    if not is_sparse(self):
        out = self.to(dtype, copy=True) if is_coo(other) or self._shape == other._shape else self
        return _add_into(out.contiguous(), other, alpha)
    if not is_sparse(other):
        if is_coo(self):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        # As PyTorch: the sparse operand is the one that is scaled.
        return _add_into(other.to(dtype, copy=True).contiguous(), self, alpha)
    if layout_of(self) is not layout_of(other):
        if is_coo(self) or is_coo(other):
            raise refused("add.Tensor", [self, other])
        for t in (self, other):
            if layout_of(t) not in ROWS:
                raise RuntimeError(
                    f"crow_indices expected sparse row compressed tensor layout but got {NAMES[layout_of(t)]}"
                )
        raise RuntimeError("MKL Sparse doesn't support matrices with non-square blocks.")
    return _add_coo(self, other, alpha, dtype) if is_coo(self) else _add_compressed(self, other, alpha, dtype)


def _add_into(out: Any, sparse: Any, alpha: Any) -> Any:
    """A sparse tensor added into memory of our own."""
    if out._shape != sparse._shape:
        kind = "dense" if is_coo(sparse) else "op2"
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {_shown(out)} while other has size "
            f"{_shown(sparse)} (FYI: {kind}-sparse addition does not currently support broadcasting)"
        )
    if not is_coo(sparse):
        return out.add_(dense_of(sparse), alpha=alpha)
    p = parts(sparse)
    if p.nnz == 0 or out.numel() == 0:
        return out
    heads = out._shape[: p.sparse_dim]
    flat = out.view(prod(heads), *out._shape[p.sparse_dim :])
    add_at(flat, flat_keys(p.plain, heads), p.values.to(out._dtype), alpha)
    return out


@serves("add_")
def add_(self: Any, other: Any, alpha: Any) -> Any:
    if is_sparse(self):
        if is_compressed(self) and layout_of(self) not in ROWS:
            raise RuntimeError(
                f"crow_indices expected sparse row compressed tensor layout but got {NAMES[layout_of(self)]}"
            )
        made = add(self, other, alpha)
        _check_castable(made, self)
        return replace(self, _cast(made, self._dtype))
    dtype = result_type(self, other)
    _check_alpha(alpha, dtype)
    if not torch.can_cast(dtype, self._dtype):
        raise RuntimeError(
            f"Can't convert result type {dtype.scalar_name} to output {self._dtype.scalar_name} in add operation"
        )
    _check_dense_operand(self, other)
    if self.is_contiguous() and is_coo(other):
        flat = self.detach()
        _add_into(flat, other, alpha)
        return bumped(self) if self._version == flat._version and flat._vc is not self._vc else self
    return self.add_(dense_of(other), alpha=alpha)


def _check_castable(made: Any, target: Any) -> None:
    if not torch.can_cast(made._dtype, target._dtype):
        raise RuntimeError(
            f"result type {made._dtype.scalar_name} can't be cast to the desired output type "
            f"{target._dtype.scalar_name}"
        )


def _add_coo(self: Any, other: Any, alpha: Any, dtype: Any) -> Any:
    if self._shape != other._shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {_shown(self)} != {_shown(other)}")
    p, q = parts(self), parts(other)
    scaled = q.values.to(dtype) if alpha == 1 else q.values.to(dtype) * alpha
    if q.nnz == 0:
        return coo(p.plain.clone(), p.values.to(dtype, copy=True), self._shape, p.coalesced)
    if p.nnz == 0:
        return coo(q.plain.clone(), scaled.clone() if scaled is q.values else scaled, self._shape, q.coalesced)
    if p.sparse_dim != q.sparse_dim:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has {p.sparse_dim} sparse dimensions "
            f"while 'other' has {q.sparse_dim} sparse dimensions"
        )
    if self._device.type == "cpu" and p.values.is_contiguous() and q.values.is_contiguous():
        return _merged(p, q, scaled, self._shape, dtype)
    made = coo(torch.cat([p.plain, q.plain], 1), torch.cat([p.values.to(dtype), scaled]), self._shape)
    # As PyTorch: more entries than elements are added up.
    return coalesced(made) if 0 < made.numel() < parts(made).nnz else made


def _merged(p: Parts, q: Parts, scaled: Any, shape: Any, dtype: Any) -> Any:
    """A sum as PyTorch's CPU forms it: along both, the smaller coordinate first, equal ones together."""
    heads = shape[: p.sparse_dim]
    lines = [flat_keys(x.plain, heads).contiguous() for x in (p, q)]
    places = [torch.empty_like(keys) for keys in lines]
    operands = [x for t in (*lines, *places) for x in (t._storage, int(t._offset), t._stride, t._dtype.code)]
    count = _MERGE(*operands, p.nnz, q.nnz)
    indices = p.plain.new_empty((p.sparse_dim, count))
    indices[:, places[0]] = p.plain
    indices[:, places[1]] = q.plain
    values = p.values.new_zeros((count, *p.values._shape[1:]), dtype=dtype)
    values[places[0]] = p.values.to(dtype)
    return coo(indices, add_at(values, places[1], scaled), shape, p.coalesced and q.coalesced)


def _add_compressed(self: Any, other: Any, alpha: Any, dtype: Any) -> Any:
    if self._shape != other._shape:
        raise RuntimeError(
            "torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape "
            f"{_shown(self)} and tensor `other` with shape {_shown(other)}"
        )
    if self._device.type == "meta":
        self, other = without_entries(self), without_entries(other)
    p, q = parts(self), parts(other)
    if self._device.type == "meta" or torch.equal(p.compressed, q.compressed) and torch.equal(p.plain, q.plain):
        return with_values(self, p.values.to(dtype) + q.values.to(dtype) * alpha)
    if dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise NotImplementedError(f"\"add_out_sparse_csr_impl_mkl\" not implemented for '{dtype.scalar_name}'")
    if batch_dim(self):
        raise NotImplementedError("add: batches of compressed tensors of different patterns are not supported")
    layout, block = layout_of(self), blocksize(self)
    if block is not None:
        raise NotImplementedError(f"add: {layout} tensors of different patterns are not supported")
    a, b = to_coo(self), to_coo(other)
    made = between(_add_coo(a, b, alpha, dtype), layout, None, "add")
    m = parts(made)
    return compressed(layout, m.compressed.to(p.compressed.dtype), m.plain.to(p.plain.dtype), m.values, self._shape)


@serves("sub")
def sub(self: Any, other: Any, alpha: Any) -> Any:
    if is_compressed(self) or is_compressed(other):
        raise _unsupported(self if is_compressed(self) else other)
    return add(self, other, -alpha)


def _unsupported(t: Any) -> RuntimeError:
    return RuntimeError(f"unsupported tensor layout: {NAMES[layout_of(t)]}")


@serves("sub_")
def sub_(self: Any, other: Any, alpha: Any) -> Any:
    if is_compressed(self) or is_compressed(other):
        raise _unsupported(self if is_compressed(self) else other)
    return add_(self, other, -alpha)


# -- products -----------------------------------------------------------------------------------------------------
def _is_scalar(x: Any) -> bool:
    return is_number(x) or (not is_sparse(x) and not x._shape)


@serves("mul")
def mul(self: Any, other: Any) -> Any:
    if _is_scalar(other) and is_sparse(self):
        return with_values(self, parts(self).values * other)
    if _is_scalar(self):
        return with_values(other, self * parts(other).values)
    if not is_sparse(self):
        self, other = other, self
    if not is_sparse(other):
        return _mul_dense(self, other)
    if is_coo(self) and is_coo(other):
        return _mul_coo(self, other)
    _check_mul(self)
    if batch_dim(self):
        raise RuntimeError(
            "coo_to_sparse_csr: conversion from Sparse to SparseCsr for input tensors with sparse_dim()!=2 is not "
            "supported"
        )
    if layout_of(other) is not sparse_csr:
        other = between(other if is_coo(other) else to_coo(other), sparse_csr, None, "mul")
    return _mul_compressed(self, other)


def _check_mul(t: Any) -> None:
    if blocksize(t) is not None:
        raise RuntimeError(
            "empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{NAMES[layout_of(t)]}"
        )
    if layout_of(t) is not sparse_csr:
        raise RuntimeError("Expected result Tensor to be of format CSR")


def _mul_dense(sparse: Any, dense: Any) -> Any:
    p = parts(sparse)
    if not is_coo(sparse):
        if blocksize(sparse) is not None:
            raise RuntimeError("Expected result Tensor to be of format CSR")
        _check_mul(sparse)
        return with_values(sparse, p.values * parts(masked(dense, sparse)).values)
    try:
        shape = torch.broadcast_shapes(sparse._shape, dense._shape)
    except RuntimeError:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to be broadcastable, got {_shown(sparse)} and {_shown(dense)}"
        ) from None
    if shape != tuple(sparse._shape):
        return _mul_dense(coalesced(BROADCAST.call((sparse, shape))), dense)
    whole = dense.expand(sparse._shape)
    picked = whole[tuple(p.plain)] if p.sparse_dim else whole.unsqueeze(0)
    return coo(p.plain.clone(), p.values * picked, sparse._shape, p.coalesced)


def _mul_coo(self: Any, other: Any) -> Any:
    if self._shape != other._shape:
        for scalar, t in ((self, other), (other, self)):
            if not scalar._shape:
                return t * dense_of(scalar)
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse "
            "dimensions, and shape of sparse dimensions"
        )
    dtype = result_type(self, other)
    if parts(self).nnz == 0 or parts(other).nnz == 0:
        p = parts(self)
        return coo(p.plain[:, :0], p.values[:0].to(dtype), self._shape)
    if parts(self).sparse_dim != parts(other).sparse_dim:
        raise RuntimeError(
            f"mul(sparse, sparse): the inputs have {parts(self).sparse_dim} and {parts(other).sparse_dim} sparse "
            "dimensions"
        )
    # The product has the entries of one factor that the other, coalesced, has too.
    x, y = parts(self), parts(other)
    first = y.coalesced if x.coalesced != y.coalesced else x.nnz < y.nnz
    a, b = (x, parts(coalesced(other))) if first else (y, parts(coalesced(self)))
    heads = self._shape[: a.sparse_dim]
    mine, yours = flat_keys(a.plain, heads), flat_keys(b.plain, heads)
    at = torch.searchsorted(yours, mine).clamp_(max=b.nnz - 1)
    hit = yours[at] == mine
    if not a.coalesced:
        wide = hit.view(-1, *[1] * (a.values.dim() - 1))
        return coo(a.plain.clone(), a.values.to(dtype) * torch.where(wide, b.values[at].to(dtype), 0), self._shape)
    values = a.values[hit].to(dtype) * b.values[at[hit]].to(dtype)
    return coo(a.plain[:, hit], values, self._shape, a.coalesced)


def _mul_compressed(self: Any, other: Any) -> Any:
    if self._shape != other._shape:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes, but {_shown(self)} != {_shown(other)}"
        )
    p, q = parts(self), parts(other)
    if torch.equal(p.compressed, q.compressed) and torch.equal(p.plain, q.plain):
        return with_values(self, p.values * q.values)
    made = between(_mul_coo(to_coo(self), to_coo(other)), layout_of(self), None, "mul")
    m = parts(made)
    return compressed(
        layout_of(self), m.compressed.to(p.compressed.dtype), m.plain.to(p.plain.dtype), m.values, self._shape
    )


@serves("mul_")
def mul_(self: Any, other: Any) -> Any:
    made = mul(self, other)
    if is_sparse(self):
        _check_castable(made, self)
        made = _cast(made, self._dtype)
        kept = parts(made).coalesced if is_sparse(other) else parts(made).nnz < 2
        return replace(self, with_values(made, parts(made).values, kept))
    if not is_coo(other):
        raise RuntimeError("Expected result Tensor to be of format CSR")
    return self.copy_(dense_of(made))


# -- quotients ----------------------------------------------------------------------------------------------------
def _quotient(name: str, self: Any, other: Any, mode: str | None) -> Any:
    if not _is_scalar(other):
        what = "floor division" if name == "floor_divide" else "division"
        raise RuntimeError(
            f"Sparse {what} requires a scalar or zero-dim dense tensor divisor (got shape {_shown(other)} for divisor)"
        )
    if not is_sparse(self):
        raise refused(f"{name}.Tensor", [other])
    if not is_coo(self):
        raise _unsupported(self)
    # A quotient that is rounded is not linear.
    rounds = mode is not None or name == "floor_divide"
    t = coalesced(self) if rounds else self
    values = parts(t).values
    if name == "floor_divide":
        return with_values(t, torch.floor_divide(values, other))
    return with_values(t, torch.div(values, other, rounding_mode=mode))


@serves("div")
def div(self: Any, other: Any) -> Any:
    return _quotient("div", self, other, None)


@serves("div.Tensor_mode")
def div_mode(self: Any, other: Any, rounding_mode: Any) -> Any:
    return _quotient("div", self, other, rounding_mode)


@serves("floor_divide")
def floor_divide(self: Any, other: Any) -> Any:
    sparse = [t for t in (self, other) if is_sparse(t)]
    if not all(is_coo(t) for t in sparse):
        raise refused("floor_divide", sparse)
    return _quotient("floor_divide", self, other, None)


def _in_place(made: Any, self: Any) -> Any:
    _check_castable(made, self)
    return replace(self, _cast(made, self._dtype))


@serves("div_")
def div_(self: Any, other: Any) -> Any:
    return _in_place(div(self, other), self)


@serves("div_.Tensor_mode")
def div_mode_(self: Any, other: Any, rounding_mode: Any) -> Any:
    return _in_place(div_mode(self, other, rounding_mode), self)


@serves("floor_divide_")
def floor_divide_(self: Any, other: Any) -> Any:
    return _in_place(floor_divide(self, other), self)


@serves("pow")
def power(self: Any, exponent: Any) -> Any:
    if not is_coo(self) or isinstance(exponent, TensorBase):
        by_tensor = "Tensor_Tensor" if isinstance(self, TensorBase) else "Scalar"
        form = by_tensor if isinstance(exponent, TensorBase) else "Tensor_Scalar"
        raise refused(f"pow.{form}", [t for t in (self, exponent) if isinstance(t, TensorBase)])
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    t = coalesced(self)
    return with_values(t, parts(t).values ** exponent)


@serves("square", above=True)
def square(self: Any) -> Any:
    return self**2
