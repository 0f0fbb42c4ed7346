"""Systems of equations with a sparse triangular matrix, by SciPy's substitution on the CPU.

Invariant: the matrix is never made dense; only its triangle that the call names is read.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import sparse_bsr, sparse_csr
from .._ops.linalg_composed import warn_triangular_solve
from .compressed import between, to_coo
from .parts import is_sparse, layout_of, parts
from .refusals import refused
from .table import serves


@serves("triangular_solve")
def triangular_solve(self: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    if not is_sparse(A) or layout_of(A) not in (sparse_csr, sparse_bsr) or is_sparse(self) or A._device.type != "cpu":
        raise refused("triangular_solve", [self, A])
    warn_triangular_solve()
    for name, t in (("b", self), ("A", A)):
        if t.dim() != 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {t.dim()} "
                "dimensions instead"
            )
    if self._dtype is not A._dtype:
        raise RuntimeError(
            f"torch.triangular_solve: Expected b and A to have the same dtype, but got {self._dtype.scalar_name} and "
            f"{A._dtype.scalar_name}"
        )
    n = A._shape[0]
    if A._shape[1] != n:
        raise RuntimeError(
            "triangular_solve: A must be batches of square matrices, but they are "
            f"{A._shape[0]} by {A._shape[1]} matrices"
        )
    if self._shape[0] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {n} by {n} but each b matrix is "
            f"{self._shape[0]} by {self._shape[1]}"
        )
    solution = torch.from_numpy(_solved(self, A, upper, transpose, unitriangular)).to(self._dtype)
    return solution, self.new_empty((0,))


def _solved(b: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    import numpy as np
    from scipy import sparse
    from scipy.sparse import linalg

    p = parts(A if layout_of(A) is sparse_csr else between(to_coo(A), sparse_csr, None, "triangular_solve"))
    arrays = tuple(t.detach().resolve_conj().numpy() for t in (p.values, p.plain, p.compressed))
    matrix = sparse.csr_matrix(arrays, shape=tuple(A._shape))
    matrix = sparse.triu(matrix, format="csr") if upper else sparse.tril(matrix, format="csr")
    if not unitriangular and not matrix.diagonal().all():
        raise RuntimeError("triangular_solve: an element of the diagonal of A is zero, so that A cannot be inverted")
    if transpose:
        matrix = matrix.T.tocsr()
    lower = upper == transpose
    right = b.detach().resolve_conj().numpy()
    found = linalg.spsolve_triangular(matrix, right, lower=lower, unit_diagonal=unitriangular)
    return np.array(found, order="C")
