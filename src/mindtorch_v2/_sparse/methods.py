"""Methods of Tensor about layouts, for dense and sparse tensors.

Invariant: what a layout does not have is refused with PyTorch's text; nothing here computes.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import type_name as given_name
from .._dispatch.parsed import parsed
from .._dtype_names import type_string
from .._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .._overrides import overridable
from .._tensor_base import TensorBase
from . import rows
from .parts import COLUMNS, NAMES, ROWS, Parts, is_coo, is_sparse, layout_of, parts, plain_alias, replace
from .products import HSPMM, SPARSE_ADDMM, SSPADDMM
from .refusals import refused
from .resize import coo_resized


def _expected(name: str, what: str, t: Any) -> RuntimeError:
    return RuntimeError(f"{name} expected {what} tensor layout but got {NAMES[layout_of(t)]}")


def type_name(t: Any) -> str:
    """`Tensor.type()`"""
    if not is_coo(t):
        raise RuntimeError("Unimplemented backend SparseCsrCPU")
    return type_string(t._dtype, t._device).replace("torch.", "torch.sparse.", 1)


# -- conversions --------------------------------------------------------------------------------------------------
@parsed("torch.dtype dtype = None, *, bool masked_grad = None")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """This tensor if it is dense, else a dense tensor with its elements."""
    return rows.to_dense(self, dtype, masked_grad)


@parsed("*, torch.layout layout = None, tuple of ints blocksize = None, int dense_dim = None", "int sparse_dim")
def to_sparse(
    self: Any, sparse_dim: int | None = None, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Any:
    """to_sparse(sparse_dim) or to_sparse(*, layout=None, blocksize=None, dense_dim=None): this tensor in a sparse
    layout, COO by default."""
    if blocksize is not None:
        blocksize = _block("dense_to_sparse" if not is_sparse(self) else "sparse_to_sparse", blocksize)
    return rows.to_sparse(self, sparse_dim, sparse_coo if layout is None else layout, blocksize, dense_dim)


def _block(name: str, block: Any) -> tuple[int, int]:
    pair = tuple(block) if isinstance(block, (list, tuple)) else (block, block)
    if len(pair) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(pair)}")
    return int(pair[0]), int(pair[1])


def to_sparse_coo(self: Any) -> Any:
    """This tensor in layout COO."""
    return rows.to_sparse(self, None, sparse_coo, None, None)


@parsed("int dense_dim = None")
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """This tensor in layout CSR."""
    return rows.to_sparse(self, None, sparse_csr, None, dense_dim)


@parsed("int dense_dim = None")
def to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """This tensor in layout CSC."""
    return rows.to_sparse(self, None, sparse_csc, None, dense_dim)


@parsed("tuple of ints blocksize, int dense_dim = None")
def to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """This tensor in layout BSR."""
    return rows.to_sparse(self, None, sparse_bsr, _block("dense_to_sparse_bsr", blocksize), dense_dim)


@parsed("tuple of ints blocksize, int dense_dim = None")
def to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """This tensor in layout BSC."""
    return rows.to_sparse(self, None, sparse_bsc, _block("dense_to_sparse_bsc", blocksize), dense_dim)


_to_sparse = to_sparse
_to_sparse_csr = to_sparse_csr
_to_sparse_csc = to_sparse_csc
_to_sparse_bsr = to_sparse_bsr
_to_sparse_bsc = to_sparse_bsc


# -- parts --------------------------------------------------------------------------------------------------------
def dense_dim(self: Any) -> int:
    """How many dimensions are dense: all of a dense tensor's."""
    return parts(self).dense_dim if is_sparse(self) else len(self._shape)


def sparse_dim(self: Any) -> int:
    """How many dimensions are sparse: none of a dense tensor's."""
    return parts(self).sparse_dim if is_sparse(self) else 0


def _dimI(self: Any) -> int:
    """`sparse_dim` of a COO tensor."""
    return _coo(self, "_dimI").sparse_dim


def _dimV(self: Any) -> int:
    """`dense_dim` of a COO tensor."""
    return _coo(self, "_dimV").dense_dim


def _coo(t: Any, name: str) -> Parts:
    if not is_coo(t):
        raise refused(name, [t])
    return parts(t)


def is_coalesced(self: Any) -> bool:
    """Whether the coordinates of a COO tensor are sorted and distinct, as far as it knows."""
    if not is_coo(self):
        raise _expected("is_coalesced", "sparse coordinate", self)
    return parts(self).coalesced


def coalesce(self: Any) -> Any:
    """This tensor with entries of one coordinate added up and coordinates sorted."""
    if not is_coo(self):
        raise _expected("coalesce", "sparse coordinate", self)
    return self if parts(self).coalesced else rows.COALESCE.call((self,))


@parsed("bool coalesced")
def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Say whether the coordinates are sorted and distinct."""
    _coo(self, "_coalesced_").coalesced = bool(coalesced)
    return replace(self, self)


def _nnz(self: Any) -> int:
    """How many entries are specified."""
    if not is_sparse(self):
        raise refused("_nnz", [self])
    return parts(self).nnz


def _checked(self: Any, name: str) -> Parts:
    if not is_coo(self):
        raise _expected(name, "sparse coordinate" if name == "indices" else "sparse", self)
    p = parts(self)
    if not p.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
    return p


def indices(self: Any) -> Any:
    """The coordinates of a coalesced COO tensor, one column each."""
    return plain_alias(_checked(self, "indices").plain)


def values(self: Any) -> Any:
    """The entries, one row each; part of the graph."""
    if not is_sparse(self):
        raise _expected("values", "sparse", self)
    if is_coo(self):
        _checked(self, "values")
    return rows.VALUES.call((self,))


def _indices(self: Any) -> Any:
    """The coordinates of a COO tensor, coalesced or not."""
    return plain_alias(_coo(self, "_indices").plain)


def _values(self: Any) -> Any:
    """The entries of a COO tensor, coalesced or not, without history."""
    return plain_alias(_coo(self, "_values").values)


def _of(self: Any, name: str, layouts: Any, what: str, field: str) -> Any:
    if layout_of(self) not in layouts:
        raise _expected(name, f"sparse {what} compressed", self)
    return plain_alias(getattr(parts(self), field))


def crow_indices(self: Any) -> Any:
    """Where each row begins, of a CSR or BSR tensor."""
    return _of(self, "crow_indices", ROWS, "row", "compressed")


def col_indices(self: Any) -> Any:
    """The column of each entry, of a CSR or BSR tensor."""
    return _of(self, "col_indices", ROWS, "row", "plain")


def ccol_indices(self: Any) -> Any:
    """Where each column begins, of a CSC or BSC tensor."""
    return _of(self, "ccol_indices", COLUMNS, "column", "compressed")


def row_indices(self: Any) -> Any:
    """The row of each entry, of a CSC or BSC tensor."""
    return _of(self, "row_indices", COLUMNS, "column", "plain")


@parsed("Tensor mask")
def sparse_mask(self: Any, mask: Any) -> Any:
    """This tensor's elements where `mask` has entries, in its layout."""
    return rows.SPARSE_MASK.call((self, mask))


@parsed("Tensor mask, bool accumulate_matches = False")
def _sparse_mask_projection(self: Any, mask: Any, accumulate_matches: bool = False) -> Any:
    """`sparse_mask` for COO tensors, as derivatives need it."""
    return rows.MASK_PROJECTION.call((self, mask, accumulate_matches))


# -- sizes --------------------------------------------------------------------------------------------------------
@parsed("tuple of ints size, int sparse_dim, int dense_dim")
def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Another size for a COO tensor that keeps its entries."""
    return coo_resized(self, "sparse_resize_", tuple(size), sparse_dim, dense_dim, False)


@parsed("tuple of ints size, int sparse_dim, int dense_dim")
def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Another size for a COO tensor, and no entries."""
    return coo_resized(self, "sparse_resize_and_clear_", tuple(size), sparse_dim, dense_dim, True)


def resize_as_sparse_(self: Any, the_template: Any) -> Any:
    """The size of another sparse tensor."""
    for name, position, t in (("input", 1, self), ("the_template", 2, the_template)):
        if not isinstance(t, TensorBase):
            raise TypeError(
                f"resize_as_sparse_(): argument '{name}' (position {position}) must be Tensor, not {given_name(t)}"
            )
    if not is_coo(self) or not is_coo(the_template):
        raise refused("resize_as_sparse_", [self, the_template])
    p = parts(the_template)
    return coo_resized(self, "resize_as_sparse_", tuple(the_template._shape), p.sparse_dim, p.dense_dim, False)


# -- products -----------------------------------------------------------------------------------------------------
@parsed("Tensor mat2")
def smm(self: Any, mat: Any) -> Any:
    """The product of a sparse matrix with a dense one, as a sparse tensor."""
    if self.dim() != 2 or mat.dim() != 2:
        which, t = ("2", mat) if self.dim() == 2 else ("1", self)
        raise RuntimeError(f"sspaddmm: Argument #{which}: 2D tensor expected, got {t.dim()}D tensor")
    zeros = torch.sparse_coo_tensor((self._shape[0], mat._shape[1]), dtype=self.dtype, device=self.device)
    return SSPADDMM.call((zeros, self, mat, 0, 1))


@parsed("Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1")
def sspaddmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * (mat1 @ mat2) of a sparse matrix and a dense one, as a sparse tensor."""
    return SSPADDMM.call((self, mat1, mat2, beta, alpha))


@overridable
def hspmm(mat1: Any, mat2: Any) -> Any:
    """The rows of a sparse matrix times a dense one that are not empty."""
    return HSPMM.call((mat1, mat2))


def _coalesce(input: Any) -> Any:
    """`Tensor.coalesce` as an operator."""
    return rows.COALESCE.call((input,))


def _sparse_addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`torch.sparse.addmm`"""
    return SPARSE_ADDMM.call((self, mat1, mat2, beta, alpha))


@overridable
def dsmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """`torch.mm` under an old name."""
    return torch.mm(input, mat2, out=out)


hsmm = hspmm
