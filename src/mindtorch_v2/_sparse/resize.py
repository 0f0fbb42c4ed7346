"""Sizes of sparse tensors that change in place: `resize_`, `transpose_` and their like.

Invariant: size and parts change together; what PyTorch would leave to memory that nobody wrote is refused.
"""

from __future__ import annotations

from typing import Any

from .._layout import sparse_coo, sparse_csr
from .indexing import transpose
from .parts import NAMES, Parts, compressed, is_coo, is_sparse, layout_of, of_parts, parts, replace
from .refusals import refused


def coo_resized(t: Any, name: str, size: tuple[int, ...], sparse: int, dense: int, clear: bool) -> Any:
    if not is_coo(t):
        raise refused(name, [t])
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    p = parts(t)
    if clear or p.nnz == 0:
        indices = p.plain.new_zeros((sparse, 0))
        values = p.values.new_zeros((0, *size[sparse:]))
        made = Parts(sparse_coo, None, indices, values, sparse, dense, p.coalesced if not clear else True)
        return replace(t, of_parts(made, size))
    _check_growth(t, size, sparse, dense)
    values = p.values
    if tuple(values._shape[1:]) != size[sparse:]:
        grown = values.new_zeros((p.nnz, *size[sparse:]))
        corner = (slice(None), *(slice(n) for n in values._shape[1:]))
        grown[corner] = values
        values = grown
    made = Parts(sparse_coo, None, p.plain, values, sparse, dense, p.coalesced)
    return replace(t, of_parts(made, size))


_ADVICE = (
    " on a non-empty sparse tensor is not supported.\nYou could try the following options:\n1. If you need an empty "
    "sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`.\n2. If you need to resize this tensor, you "
    "have the following options:\n    1. For both sparse and dense dimensions, keep the number of them constant and "
    "the size of them non-shrinking, and then try the same call again.\n    2. Or, create a new sparse tensor with the "
    "correct indices and values from this sparse tensor."
)


def _check_growth(t: Any, size: tuple[int, ...], sparse: int, dense: int) -> None:
    p = parts(t)
    for what, old, new in (("sparse", p.sparse_dim, sparse), ("dense", p.dense_dim, dense)):
        if old != new:
            raise RuntimeError(f"changing the number of {what} dimensions (from {old} to {new}){_ADVICE}")
    for what, begin, end in (("sparse", 0, sparse), ("dense", sparse, len(size))):
        if any(new < old for old, new in zip(t._shape[begin:end], size[begin:end])):
            raise RuntimeError(
                f"shrinking the size of {what} dimensions (from {list(t._shape[begin:end])} to "
                f"{list(size[begin:end])}){_ADVICE}"
            )


def resized(t: Any, size: tuple[int, ...]) -> Any:
    """`Tensor.resize_`: for CSR matrices and batches, whose rows after the last are empty."""
    if is_coo(t):
        raise refused("resize_", [t])
    if len(size) < 2:
        raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(size)}")
    if size[-1] < t._shape[-1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original "
            f"number of columns is {t._shape[-1]} while the requested new number of columns is {size[-1]}."
        )
    if layout_of(t) is not sparse_csr or parts(t).dense_dim:
        if tuple(size) == tuple(t._shape):
            return t
        raise RuntimeError(
            f"torch.resize_: a tensor of layout {layout_of(t)} and size {list(t._shape)} cannot become one of size "
            f"{list(size)}; only CSR matrices change their size"
        )
    p = parts(t)
    batch, (rows, columns) = size[:-2], size[-2:]
    kept, before = min(p.nnz, rows * columns), t._shape[-2]
    outer = _laid_out(p.compressed, (*batch, rows + 1))
    if rows < before:
        outer[..., -1] = kept
    else:
        outer[..., before + 1 :] = p.nnz
    plain, values = (_laid_out(part, (*batch, kept)) for part in (p.plain, p.values))
    return replace(t, compressed(sparse_csr, outer, plain, values, size))


def _laid_out(part: Any, size: tuple[int, ...]) -> Any:
    """The elements of `part` in their order in memory as another size, as `resize_` of a strided tensor does; what is
    beyond them is zero."""
    made = part.new_zeros(size)
    n = min(made.numel(), part.numel())
    made.view(-1)[:n] = part.reshape(-1)[:n]
    return made


def resized_as(t: Any, template: Any) -> Any:
    """`Tensor.resize_as_`"""
    if is_coo(t) and (not is_sparse(template) or not is_coo(template)):
        raise refused("resize_", [t])
    if tuple(t._shape) == tuple(template._shape):
        return t
    if not is_coo(t):
        return resized(t, tuple(template._shape))
    p = parts(template)
    return coo_resized(t, "resize_as_", tuple(template._shape), p.sparse_dim, p.dense_dim, False)


def become(t: Any, name: str, args: tuple[Any, ...]) -> Any:
    """`transpose_`, `t_`, `squeeze_`, `unsqueeze_`, `as_strided_`: PyTorch exchanges dimensions of COO tensors only."""
    layout = layout_of(t)
    if name not in ("t", "transpose"):
        if layout is sparse_coo or name == "as_strided":
            raise refused("as_strided_", [t])
        raise RuntimeError(f"Sparse {NAMES[layout].removeprefix('Sparse').upper()} tensors do not have strides")
    if layout is not sparse_coo:
        raise RuntimeError(f"torch.transpose_: in-place transposition is not supported for {NAMES[layout]} layout")
    p = parts(t)
    if name == "t":
        if p.sparse_dim > 2 or p.dense_dim:
            raise RuntimeError(
                f"t_() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {p.sparse_dim} sparse and "
                f"{p.dense_dim} dense dimensions"
            )
        args = (0, 0 if t.dim() < 2 else 1)
    if t.dim() == 0:
        return t
    return replace(t, transpose(t, *args))
