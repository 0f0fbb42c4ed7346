"""What must hold of the parts of a sparse tensor, in PyTorch's words; and whether constructors ask.

Invariant: the checks only read. Values of indices are looked at where there are any: not on meta.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.keys import META
from .._dtype import int32, int64
from .._layout import layout as Layout
from .parts import BLOCKS, COMPRESSED, NAMES, ROWS


class Invariants:
    """Whether constructors check what they are given unless told otherwise; one for the process, as in PyTorch."""

    on = False


INVARIANTS = Invariants()


def _shown(shape: Any) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def check_coo_shapes(indices: Any, values: Any, size: Any) -> None:
    """What every constructor asks, whether invariants are checked or not."""
    if len(indices._shape) != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {_shown(indices._shape)}")
    sparse, dense = indices._shape[0], len(values._shape) - 1
    check_coo_dims(size, sparse, dense)


def check_coo_dims(size: Any, sparse: int, dense: int) -> None:
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )


def check_compressed_dims(
    nnz: int, dense: int, size: tuple[int, ...], blocks: tuple[int, ...], index_dtype: Any, layout: Any, pinned: Any
) -> None:
    """What `_sparse_compressed_tensor_with_dims` asks."""
    name = "sparse_compressed_tensor_with_dims"
    if layout not in COMPRESSED:
        given = "none" if layout is None else NAMES.get(layout, str(layout))
        raise RuntimeError(f"{name}: expected sparse compressed tensor layout but got {given}")
    if nnz < 0:
        raise RuntimeError(f"{name}: nnz must be non-negative, got {nnz}")
    if dense < 0 or len(size) < dense + 2:
        raise RuntimeError(
            f"{name}: dimensionality must be at least dense_dim(={dense}) + sparse_dim(=2), but got {len(size)}"
        )
    if index_dtype not in (int32, int64):
        raise RuntimeError(f"indices dtype must be Int or Long, but got {index_dtype.scalar_name}")
    if layout in BLOCKS:
        if len(blocks) != 2:
            raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(blocks)}")
        for d, n in enumerate(blocks, len(size) - dense - 2):
            if n <= 0 or size[d] % n:
                at = d - len(size) + dense + 2
                raise RuntimeError(f"{name}: dimension {d} must be multiple of blocksize[{at}](={n}) but got {size[d]}")
    elif blocks:
        raise RuntimeError(f"{name}: blocksize cannot be specified for non-block layout {NAMES[layout]}")
    if pinned:
        raise RuntimeError("pin_memory: sparse tensors in page-locked memory are not supported here")


def check_coo_parts(indices: Any, values: Any, size: Any, sparse: int, dense: int) -> None:
    """What the tensor itself asks of its parts."""
    if not values._shape:
        raise RuntimeError("values must be an array of at least one dimension")
    if len(indices._shape) != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {_shown(indices._shape)}")
    if indices._shape[1] != values._shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices._shape[1]}, nnz from values: "
            f"{values._shape[0]}"
        )
    if indices._shape[0] != sparse:
        raise RuntimeError(f"indices has incorrect first dimension, expected {sparse}, got {indices._shape[0]}")
    if len(values._shape) != dense + 1:
        raise RuntimeError(f"values has incorrect number of dimensions, expected {dense + 1}, got {len(values._shape)}")
    wanted = (values._shape[0], *size[sparse:])
    if tuple(values._shape) != wanted:
        raise RuntimeError(f"values has incorrect size, expected {_shown(wanted)}, got {_shown(values._shape)}")


def check_coo(indices: Any, values: Any, size: Any, coalesced: bool | None) -> None:
    """`check_invariants=True`."""
    check_coo_shapes(indices, values, size)
    if indices._device != values._device:
        raise RuntimeError(f"device of indices ({indices._device}) must match device of values ({values._device})")
    if indices._keys & META or indices._shape[0] == 0:
        return
    if indices.numel():
        low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
        for d, (a, b) in enumerate(zip(low, high)):
            if a < 0:
                raise RuntimeError(f"found negative index {a} for dim {d}")
            if b >= size[d]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {b}"
                )
    if coalesced and indices._shape[1] > 1:
        from .coalesce import flat_keys

        keys = flat_keys(indices, size)
        if not bool((keys[1:] > keys[:-1]).all()):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


class Words:
    """How a compressed layout names its parts."""

    def __init__(self, layout: Layout) -> None:
        rows = layout in ROWS
        self.blocks = layout in BLOCKS
        self.outer, self.inner = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        self.outer_count, self.inner_count = ("nrows", "ncols") if rows else ("ncols", "nrows")
        self.counted = ("row" if rows else "column") + (" blocks" if self.blocks else "s")


def check_compressed(outer: Any, inner: Any, values: Any, size: Any, layout: Layout) -> None:
    """`check_invariants=True` for CSR, CSC, BSR and BSC."""
    w = Words(layout)
    _check_dims(w, outer, inner, values, size)
    batch = len(outer._shape) - 1
    block = tuple(values._shape[batch + 1 : batch + 3]) if w.blocks else (1, 1)
    for d in range(2):
        if w.blocks and block[d] and size[batch + d] % block[d]:
            raise RuntimeError(
                f"tensor shape[{batch + d}] (={size[batch + d]}) must be divisible with blocksize[{d}] (={block[d]}) "
                "as defined by values shape"
            )
    rows, columns = (size[batch + d] // (block[d] or 1) for d in range(2))
    count, width = (rows, columns) if layout in ROWS else (columns, rows)
    nnz = values._shape[batch]
    if outer._shape[-1] != count + 1:
        raise RuntimeError(
            f"{w.outer}.shape[-1] must be equal to the number of {w.counted} + 1 (={count + 1}), but got "
            f"{outer._shape[-1]}"
        )
    if inner._shape[-1] != nnz:
        raise RuntimeError(
            f"{w.inner}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got "
            f"{inner._shape[-1]}"
        )
    wanted = (*size[:batch], nnz, *(block if w.blocks else ()), *size[batch + 2 :])
    if tuple(values._shape) != wanted:
        raise RuntimeError(f"values must have shape {_shown(wanted)} but got {_shown(values._shape)}")
    if outer._dtype is not inner._dtype:
        raise RuntimeError(
            f"{w.outer} and {w.inner} must have the same dtype, bot got {outer._dtype.scalar_name} and "
            f"{inner._dtype.scalar_name}, respectively"
        )
    if outer._dtype not in (int32, int64):
        raise RuntimeError(f"{w.outer} and {w.inner} dtype must be Int or Long, but got {outer._dtype.scalar_name}")
    if not outer._keys & META:
        check_indices(w, outer, inner, count, width, nnz)


def check_parts(w: Words, outer: Any, inner: Any, values: Any) -> tuple[int, int]:
    """How many batch and dense dimensions the parts have."""
    for name, t in ((w.outer, outer), (w.inner, inner)):
        if not t._shape:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got 0")
    if len(outer._shape) != len(inner._shape):
        raise RuntimeError(
            f"{w.outer} and {w.inner} dimensionalities must be equal but got {len(outer._shape)} and "
            f"{len(inner._shape)}, respectively"
        )
    batch, block = len(outer._shape) - 1, 2 if w.blocks else 0
    dense = len(values._shape) - batch - block - 1
    if dense < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {block}) but got "
            f"{len(values._shape)}"
        )
    return batch, dense


def _check_dims(w: Words, outer: Any, inner: Any, values: Any, size: Any) -> None:
    batch, dense = check_parts(w, outer, inner, values)
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) "
            f"but got {len(size)}"
        )
    for t in (outer, inner, values):
        if tuple(t._shape[:batch]) != tuple(size[:batch]):
            raise RuntimeError(
                f"all batch dimensions of {w.outer} (={_shown(outer._shape[:batch])}), {w.inner} "
                f"(={_shown(inner._shape[:batch])}), and values (={_shown(values._shape[:batch])}) must be equal to "
                f"tensor batch dimensions (={_shown(size[:batch])})"
            )
        if t._device != values._device:
            raise RuntimeError(
                f"device of {w.outer} (={outer._device}) must match device of values (={values._device})"
            )


def check_indices(w: Words, outer: Any, inner: Any, count: int, width: int, nnz: int) -> None:
    """The values of the indices of a compressed tensor."""
    if not bool((outer[..., 0] == 0).all()):
        raise RuntimeError(f"`{w.outer}[..., 0] == 0` is not satisfied.")
    if not bool((outer[..., -1] == nnz).all()):
        raise RuntimeError(f"`{w.outer}[..., -1] == nnz` is not satisfied.")
    if not bool(((inner >= 0) & (inner < width)).all()):
        raise RuntimeError(f"`0 <= {w.inner} < {w.inner_count}` is not satisfied.")
    steps = outer[..., 1:] - outer[..., :-1]
    if not bool(((steps >= 0) & (steps <= width)).all()):
        raise RuntimeError(f"`0 <= {w.outer}[..., 1:] - {w.outer}[..., :-1] <= {w.inner_count}` is not satisfied.")
    if nnz > 1:
        from .compressed import outer_ids

        ids = outer_ids(outer, nnz)
        rising = (inner[..., 1:] > inner[..., :-1]) | (ids[..., 1:] != ids[..., :-1])
        if not bool(rising.all()):
            raise RuntimeError(
                f"`{w.inner}[..., {w.outer}[..., i - 1]:{w.outer}[..., i]] for all i = 1, ..., {w.outer_count} are "
                "sorted and distinct along the last dimension values` is not satisfied."
            )
