"""`torch.sparse.spdiags`.

Invariant: column j of the result holds column j of the diagonals, as in SciPy.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import sparse_coo, sparse_csc, sparse_csr
from .parts import NAMES
from .rows import make_coo, to_sparse


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any) -> Any:
    """A sparse matrix with the rows of `diagonals` on the diagonals that `offsets` names."""
    lines = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    places = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    if lines.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if places.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if lines.shape[0] != places.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({lines.shape[0]}) does not match the number of offsets ({places.shape[0]})"
        )
    if layout is not None and layout not in (sparse_coo, sparse_csc, sparse_csr):
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {NAMES.get(layout, str(layout))}"
        )
    if places.dtype is not torch.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {places.dtype.scalar_name}")
    found = places.tolist()
    if len(set(found)) < len(found):
        raise RuntimeError("Offset tensor contains duplicate values")
    rows, columns = int(shape[0]), int(shape[1])
    indices, values = [], []
    for k, offset in enumerate(found):
        begin, end = max(offset, 0), min(columns, rows + offset, int(lines.shape[1]))
        if begin < end:
            at = torch.arange(begin, end, device=lines.device)
            indices.append(torch.stack([at - offset, at]))
            values.append(lines[k, begin:end])
    if not values:
        indices, values = [places.new_zeros((2, 0))], [lines.reshape(-1)[:0]]
    made = make_coo(torch.cat(indices, 1), torch.cat(values), (rows, columns), None, False)
    return made if layout is None or layout is sparse_coo else to_sparse(made, None, layout, None, None)
