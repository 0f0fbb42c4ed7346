"""Operators of sparse tensors: construction, parts, conversions, masks; and their derivatives.

Invariant: a row's kernel gets parts without history and gives a tensor without one; the derivative is that of PyTorch's
formula of the same name.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import sparse_coo, strided
from . import mask as masks
from .checks import INVARIANTS, check_compressed, check_compressed_dims, check_coo, check_coo_dims, check_coo_parts
from .coalesce import coalesced
from .compressed import KIND, between, dense_to_compressed, dense_to_coo
from .compressed import to_coo as compressed_to_coo
from .compressed import to_dense as dense_of
from .parts import (
    BLOCKS,
    COMPRESSED,
    NAMES,
    ROWS,
    blocksize,
    compressed,
    coo,
    is_coo,
    is_sparse,
    layout_of,
    parts,
    plain_alias,
    with_values,
)
from .table import row


def cast(t: Any, dtype: Any) -> Any:
    """The same pattern in another dtype."""
    return with_values(t, parts(t).values.to(dtype))


# -- construction -------------------------------------------------------------------------------------------------
def _constructor_grad(g: Any, indices: Any) -> Any:
    return masks.at_indices(coalesced(g) if is_sparse(g) else g, indices, indices._shape[0])


@row(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, "
    "Tensor values, *, bool? is_coalesced=None) -> Tensor",
    grad={"values": _constructor_grad},
)
def MAKE_COO(sparse_dim: int, dense_dim: int, size: Any, indices: Any, values: Any, is_coalesced: Any) -> Any:
    check_coo_dims(size, sparse_dim, dense_dim)
    check_coo_parts(indices, values, size, sparse_dim, dense_dim)
    made = coo(indices, values, size, bool(is_coalesced))
    return made


def make_coo(indices: Any, values: Any, size: Any, is_coalesced: bool | None, check: bool | None) -> Any:
    """`torch.sparse_coo_tensor` of tensors and a size."""
    if INVARIANTS.on if check is None else check:
        check_coo(indices, values, size, is_coalesced)
    sparse = indices._shape[0] if indices._shape else 0
    return MAKE_COO.call((sparse, len(values._shape) - 1, tuple(size), indices, values, is_coalesced))


@row(
    "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] size, "
    "*, Layout? layout=None) -> Tensor",
    grad={"values": lambda g, result: masks.masked(g, result).values()},
)
def MAKE_COMPRESSED(outer: Any, inner: Any, values: Any, size: Any, layout: Any) -> Any:
    if layout not in COMPRESSED:
        given = "none" if layout is None else str(layout)
        raise RuntimeError(f"sparse_compressed_tensor_unsafe expected sparse compressed tensor layout but got {given}")
    return compressed(layout, outer, inner, values, size)


@row(
    "_sparse_compressed_tensor_with_dims(int nnz, int dense_dim, int[] size, int[] blocksize, ScalarType index_dtype, "
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor"
)
def COMPRESSED_WITH_DIMS(
    nnz: int, dense_dim: int, size: Any, blocks: Any, index_dtype: Any, dtype: Any, layout: Any, device: Any, pin: Any
) -> Any:
    check_compressed_dims(nnz, dense_dim, tuple(size), tuple(blocks), index_dtype, layout, pin)
    batch = len(size) - dense_dim - 2
    place = 0 if layout in ROWS else 1
    outer = size[batch + place] // (blocks[place] if blocks else 1)
    # PyTorch's tensor has whatever lay in the memory; this one has no entry before the end of the last line.
    compressed_indices = torch.zeros((*size[:batch], outer + 1), dtype=index_dtype, device=device)
    compressed_indices[..., -1] = nnz
    plain_indices = torch.zeros((*size[:batch], nnz), dtype=index_dtype, device=device)
    values = torch.zeros((*size[:batch], nnz, *blocks, *size[batch + 2 :]), dtype=dtype, device=device)
    return compressed(layout, compressed_indices, plain_indices, values, tuple(size))


def make_compressed(outer: Any, inner: Any, values: Any, size: Any, layout: Any, check: bool | None) -> Any:
    if INVARIANTS.on if check is None else check:
        check_compressed(outer, inner, values, size, layout)
    return MAKE_COMPRESSED.call((outer, inner, values, tuple(size), layout))


# -- parts --------------------------------------------------------------------------------------------------------
def _values_grad(g: Any, self: Any) -> Any:
    p = parts(self)
    if is_coo(self):
        return make_coo(p.plain, g, self._shape, True, False)
    return make_compressed(p.compressed, p.plain, g, self._shape, p.layout, False)


@row("values(Tensor(a) self) -> Tensor(a)", grad={"self": _values_grad})
def VALUES(self: Any) -> Any:
    return plain_alias(parts(self).values)


@row("_coalesce(Tensor self) -> Tensor", grad={"self": lambda g: g})
def COALESCE(self: Any) -> Any:
    if not is_sparse(self):
        raise NotImplementedError("Could not run 'aten::_coalesce' with arguments from the 'CPU' backend.")
    return coalesced(self)


# -- conversions --------------------------------------------------------------------------------------------------
def _to_dense_grad(g: Any, self: Any, masked_grad: Any) -> Any:
    if masked_grad is None or masked_grad:
        return SPARSE_MASK.call((g, coalesced(self) if is_coo(self) else self))
    p = parts(self)
    if is_coo(self):
        return TO_SPARSE.call((g, sparse_coo, None, None, p.sparse_dim))
    return TO_SPARSE.call((g, p.layout, blocksize(self), p.dense_dim, None))


@row(
    "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
    grad={"self": _to_dense_grad},
    node="ToDenseBackward0",
)
def TO_DENSE(self: Any, dtype: Any, masked_grad: Any) -> Any:
    if not is_sparse(self):
        raise NotImplementedError("Could not run 'aten::_to_dense' with arguments from the 'CPU' backend.")
    return dense_of(self if dtype is None or dtype is self._dtype else cast(self, dtype))


def _to_sparse_grad(g: Any, self: Any) -> Any:
    here = layout_of(self)
    if here is strided:
        return to_dense(g)
    block = blocksize(self) if here in BLOCKS else None
    return to_sparse(g, None, here, block, None)


@row(
    "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None, int? sparse_dim=None)"
    " -> Tensor",
    grad={"self": _to_sparse_grad},
)
def TO_SPARSE(self: Any, layout: Any, block: Any, dense_dim: Any, sparse_dim: Any) -> Any:
    layout = sparse_coo if layout is None else layout
    source = "dense" if not is_sparse(self) else "coo" if is_coo(self) else "sparse_compressed"
    name = f"{source}_to_sparse_{KIND[layout]}"
    if block is not None and len(block) != 2:
        raise RuntimeError(f"dense_to_sparse: blocksize needs to be a tuple of size 2, but got {len(block)}")
    block = None if block is None else (int(block[0]), int(block[1]))
    if not is_sparse(self):
        if layout is sparse_coo:
            return dense_to_coo(self, self.dim() if sparse_dim is None else sparse_dim)
        return dense_to_compressed(self, layout, block, dense_dim or 0, name)
    if layout is sparse_coo:
        return compressed_to_coo(self)
    return between(self, layout, block, name)


@row("_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", grad={"self": _to_sparse_grad})
def TO_SPARSE_OF_DIM(self: Any, sparse_dim: int) -> Any:
    # Below autograd: this row records the call.
    with torch.no_grad():
        return TO_SPARSE.call((self, None, None, None, sparse_dim))


def to_dense(t: Any, dtype: Any = None, masked_grad: Any = None) -> Any:
    """`Tensor.to_dense`"""
    if not is_sparse(t):
        return t if dtype is None else t.to(dtype)
    if dtype is not None:
        kind = KIND[layout_of(t)]
        raise RuntimeError(f"dtype argument is not supported by sparse_{'' if kind == 'coo' else 'csr_'}to_dense")
    return TO_DENSE.call((t, dtype, masked_grad))


def _check_from_dense(t: Any, layout: Any, block: Any, dense_dim: Any) -> None:
    name = f"dense_to_sparse_{KIND[layout]}"
    if layout in BLOCKS and block is None:
        raise RuntimeError(
            f"dense_to_sparse: conversion from Strided to {NAMES[layout]} without blocksize argument given is not "
            "supported"
        )
    if layout not in BLOCKS and block is not None:
        raise RuntimeError(
            f"dense_to_sparse: conversion from Strided to {NAMES[layout]} with blocksize argument given is not "
            "supported"
        )
    if dense_dim is not None and not 0 <= dense_dim <= t.dim() - 2:
        raise RuntimeError(f"{name}: dense_dim argument must be in [0,{t.dim() - 2}] range, but {dense_dim} is given")
    if t.dim() < 2 and layout is not sparse_coo:
        raise IndexError(f"{name}: expected a tensor of at least 2 dimensions, got {t.dim()}")


def to_sparse(t: Any, sparse_dim: int | None, layout: Any, block: Any, dense_dim: Any) -> Any:
    """`Tensor.to_sparse` in all its forms, once they are told apart."""
    here = layout_of(t)
    if layout is strided:
        return to_dense(t)
    if sparse_dim is not None and here is strided:
        if t.dim() and sparse_dim == 0:
            raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
        if not 0 <= sparse_dim <= t.dim():
            raise RuntimeError(
                f"dense_to_sparse: sparse_dim argument must be in [0,{t.dim()}] range, but {sparse_dim} is given"
            )
    if here is strided:
        _check_from_dense(t, layout, block, dense_dim if layout is not sparse_coo else None)
        if layout is sparse_coo and dense_dim is not None:
            sparse_dim = t.dim() - dense_dim
        return TO_SPARSE.call((t, layout, block, dense_dim, sparse_dim))
    if sparse_dim is not None and here is not sparse_coo and sparse_dim != 2:
        raise RuntimeError(
            f"sparse_compressed_to_sparse: conversion from {NAMES[here]} to {NAMES[layout]} with sparse_dim argument "
            "!=2 is not supported"
        )
    if layout is sparse_coo and here is sparse_coo:
        if sparse_dim is not None and sparse_dim != parts(t).sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() "
                "is not supported"
            )
        return t
    if here is layout and (block is None or tuple(block) == blocksize(t)):
        return t
    if layout in BLOCKS and block is None:
        block = blocksize(t)
        if block is None:
            raise RuntimeError(
                f"sparse_to_sparse: conversion from {NAMES[here]} to {NAMES[layout]} without blocksize argument given "
                "is not supported"
            )
    return TO_SPARSE.call((t, layout, block, dense_dim, sparse_dim))


# -- masks --------------------------------------------------------------------------------------------------------
def _mask_grad(g: Any, self: Any, mask: Any) -> Any:
    """As far as PyTorch goes: the gradient where the mask has entries, in the layout of the input."""
    if not is_sparse(self):
        return to_dense(SPARSE_MASK.call((g, mask))) if is_sparse(g) else torch.where(_pattern(mask), g, 0)
    return SPARSE_MASK.call((g, mask))


def _pattern(mask: Any) -> Any:
    return dense_of(with_values(mask, torch.ones_like(parts(mask).values, dtype=torch.int64))).ne(0)


@row("sparse_mask(Tensor self, Tensor mask) -> Tensor", grad={"self": _mask_grad})
def SPARSE_MASK(self: Any, mask: Any) -> Any:
    return masks.masked(self, mask)


@row("_sparse_mask_projection(Tensor self, Tensor mask, bool accumulate_matches=False) -> Tensor")
def MASK_PROJECTION(self: Any, mask: Any, accumulate_matches: bool) -> Any:
    if accumulate_matches:
        raise NotImplementedError("_sparse_mask_projection: accumulate_matches=True is not supported")
    return masks.masked(self, mask)


@row("_conj_physical(Tensor self) -> Tensor", grad={"self": lambda g: g.conj()})
def CONJ(self: Any) -> Any:
    return with_values(self, parts(self).values.conj_physical())
