"""What a sparse tensor consists of, and how one is made of its parts.

Invariant: parts are plain dense tensors without history, on one device. Making a tensor checks nothing; `construct`
does.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.keys import BACKENDS, SPARSE
from .._layout import layout as Layout
from .._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .._sizes import numel_of
from .._tensor_base import TensorBase, alias, make
from .._warn import warn_once

ROWS = (sparse_csr, sparse_bsr)
COLUMNS = (sparse_csc, sparse_bsc)
BLOCKS = (sparse_bsr, sparse_bsc)
COMPRESSED = ROWS + COLUMNS
# As C++ prints them.
NAMES = {
    strided: "Strided",
    sparse_coo: "Sparse",
    sparse_csr: "SparseCsr",
    sparse_csc: "SparseCsc",
    sparse_bsr: "SparseBsr",
    sparse_bsc: "SparseBsc",
}


class Parts:
    """The storage of a sparse tensor. COO has `plain` indices of (sparse dimensions, entries); the others have
    `compressed` ones too, which say where in `plain` each row (or column) begins."""

    __slots__ = ("coalesced", "compressed", "dense_dim", "layout", "plain", "sparse_dim", "values")

    def __init__(
        self, layout: Layout, compressed: Any, plain: Any, values: Any, sparse_dim: int, dense_dim: int, coalesced: bool
    ) -> None:
        self.layout = layout
        self.compressed = compressed
        self.plain = plain
        self.values = values
        self.sparse_dim = sparse_dim
        self.dense_dim = dense_dim
        self.coalesced = coalesced

    @property
    def nnz(self) -> int:
        return int(self.plain._shape[-1])

    @property
    def ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    @property
    def wrapper(self) -> Any:
        kind = "SparseTensorImpl" if self.layout is sparse_coo else "SparseCsrTensorImpl"
        raise NotImplementedError(f"Cannot access storage of {kind}")

    @property
    def name(self) -> str:
        return NAMES[self.layout]

    def check_has(self, what: str) -> None:
        """COO tensors answer questions about strides, compressed ones refuse them."""
        if self.layout is not sparse_coo:
            raise RuntimeError(f"Sparse {self.layout.name[-3:].upper()} tensors do not have {what}")


def parts(t: Any) -> Parts:
    found = t._storage
    if not isinstance(found, Parts):
        raise NotImplementedError(f"expected a sparse tensor, but got a tensor of layout {t.layout}")
    return found


def is_sparse(t: Any) -> bool:
    """Of any layout but strided."""
    return isinstance(t, TensorBase) and bool(t._keys & SPARSE)


def is_coo(t: Any) -> bool:
    return is_sparse(t) and parts(t).layout is sparse_coo


def is_compressed(t: Any) -> bool:
    return is_sparse(t) and parts(t).layout is not sparse_coo


def layout_of(t: Any) -> Layout:
    return parts(t).layout if t._keys & SPARSE else strided


def plain_alias(t: Any) -> Any:
    """The same memory without history."""
    return alias(t, t._shape, t._stride, t._offset)


def of_parts(p: Parts, shape: Any) -> Any:
    """A tensor around parts that nobody else changes."""
    v = p.values
    sizes = tuple(shape)
    numel_of(sizes)  # a tensor has a number of elements, however few of them are kept
    t = make(p, 0, sizes, (0,) * len(shape), v._dtype, v._device, (v._keys & BACKENDS) | SPARSE)
    t._contig = 2
    return t


def coo(indices: Any, values: Any, shape: Any, coalesced: bool = False) -> Any:
    """A COO tensor of parts that fit."""
    n = indices._shape[0]
    coalesced = coalesced or values._shape[0] < 2
    p = Parts(sparse_coo, None, plain_alias(indices), plain_alias(values), n, len(values._shape) - 1, coalesced)
    return of_parts(p, shape)


def compressed(layout: Layout, outer: Any, inner: Any, values: Any, shape: Any) -> Any:
    """A CSR, CSC, BSR or BSC tensor of parts that fit. PyTorch warns once a process of each."""
    warn_once(
        f"Sparse {layout.name[-3:].upper()} tensor support is in beta state. If you miss a functionality in the sparse "
        "tensor support, please submit a feature request to https://github.com/pytorch/pytorch/issues."
    )
    batch = len(outer._shape) - 1
    dense = len(values._shape) - batch - 1 - (2 if layout in BLOCKS else 0)
    p = Parts(layout, plain_alias(outer), plain_alias(inner), plain_alias(values), 2, dense, False)
    return of_parts(p, shape)


def with_values(t: Any, values: Any, coalesced: bool | None = None) -> Any:
    """The same pattern with other values of the same shape."""
    p = parts(t)
    flag = p.coalesced if coalesced is None else coalesced
    return of_parts(
        Parts(p.layout, p.compressed, p.plain, plain_alias(values), p.sparse_dim, p.dense_dim, flag), t._shape
    )


def without_entries(t: Any) -> Any:
    """The same tensor with no entry, of the same memory."""
    p = parts(t)
    batch = len(p.plain._shape) - 1 if p.compressed is not None else 0
    values = p.values.narrow(batch, 0, 0)
    made = Parts(p.layout, p.compressed, p.plain.narrow(-1, 0, 0), values, p.sparse_dim, p.dense_dim, True)
    return of_parts(made, t._shape)


def shallow(t: Any) -> Any:
    """Another tensor of the same parts."""
    return with_values(t, parts(t).values)


def blocksize(t: Any) -> tuple[int, int] | None:
    p = parts(t)
    if p.layout not in BLOCKS:
        return None
    at = len(p.compressed._shape)
    return int(p.values._shape[at]), int(p.values._shape[at + 1])


def batch_dim(t: Any) -> int:
    return len(parts(t).compressed._shape) - 1


def replace(t: Any, new: Any) -> Any:
    """Make `t` the tensor that `new` is: an in-place write."""
    from .._tensor_base import bump

    t._storage = parts(shallow(new))
    t._shape, t._stride, t._dtype = new._shape, new._stride, new._dtype
    t._numel = -1
    bump(t)
    return t
