"""Singular values and principal components of matrices that are nearly of low rank (`torch.svd_lowrank`).

Invariant: only products with the matrix and factorizations of thin ones; the directions tried first are random, drawn
as PyTorch draws them.
"""

from __future__ import annotations

import operator
from typing import Any

from ._overrides import overridable

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]


def _torch() -> Any:
    import mindtorch_v2

    return mindtorch_v2


def get_approximate_basis(A: Any, q: int, niter: int | None = 2, M: Any = None) -> Any:
    """An orthonormal basis of about the range of A - M, with `q` columns."""
    torch = _torch()
    dtype = A.dtype if A.dtype.is_floating_point or A.dtype.is_complex else torch.float32
    Q = torch.randn(A.shape[-1], q, dtype=dtype, device=A.device)
    for step in range(2 * (2 if niter is None else max(0, operator.index(niter))) + 1):
        left = A.mH if step % 2 else A
        X = left @ Q
        if M is not None:
            X = X - (M.mH if step % 2 else M) @ Q
        Q = torch.linalg.qr(X).Q
    return Q


@overridable
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """U, S and V of about A - M, with `q` singular values."""
    torch = _torch()
    q = 6 if q is None else q
    if A.layout is torch.sparse_coo and A.dim() > 2:
        raise RuntimeError("expand is unsupported for Sparse tensors. 'svd_lowrank' takes no batches of them.")
    m, n = A.shape[-2:]
    wide = m < n
    if M is not None:
        M = M.broadcast_to(A.size())
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = get_approximate_basis(A, q, niter=niter, M=M)
    B = Q.mH @ A.to(Q.dtype)
    if M is not None:
        B = B - Q.mH @ M
    U, S, Vh = torch.linalg.svd(B, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def _centred(A: Any) -> Any:
    """A without the means of its columns; what is left of a sparse matrix is dense."""
    torch = _torch()
    if A.layout is not torch.strided:
        return A.to_dense() - torch.sparse.sum(A, dim=(-2,)).to_dense() / A.shape[-2]
    return A - A.mean(dim=(-2,), keepdim=True)


@overridable
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """U, S and V of about A, or of A without the means of its columns."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(_centred(A) if center else A, q, niter=niter)
