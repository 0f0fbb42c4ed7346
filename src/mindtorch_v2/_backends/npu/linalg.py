"""NPU lines of linear algebra.

Invariant: matrices come from the vendor row-major and are written into the results' own order; a matrix that cannot be
factored is not reported, because the vendor does not: `info` is zero.
"""
from __future__ import annotations

from typing import Any

from .lines import call, into, missing, npu, parts

_MODES = {"reduced": 0, "complete": 1, "r": 2}


def _nothing(squares: Any, outs: Any) -> None:
    """Results for matrices without elements: zeros, and `squares` are the identity."""
    for out in outs:
        out.zero_()
    for out in squares:
        out.diagonal(0, -2, -1).fill_(1)


def _inverse(outs: Any, A: Any, check_errors: bool) -> None:
    if A.numel():
        call("aclnnInverse", "linalg_inv_ex", A, outs[0])
    outs[1].zero_()


def _cholesky(outs: Any, self: Any, upper: bool, check_errors: bool) -> None:
    if self.numel():
        call("aclnnLinalgCholesky", "linalg_cholesky_ex", self, upper, outs[0])
    outs[1].zero_()


def _qr(outs: Any, A: Any, mode: str) -> None:
    if not A.numel():
        _nothing(outs[:1] if mode == "complete" else (), outs)
        return
    m, n = A._shape[-2:]
    # Where only R is wanted the vendor still writes Q.
    Q = A.new_empty((*A._shape[:-1], min(m, n))) if mode == "r" else outs[0]
    call("aclnnLinalgQr", "linalg_qr", A, _MODES["reduced" if mode == "r" else mode], Q, outs[1])


def _svd(outs: Any, A: Any, full_matrices: bool, compute_uv: bool, driver: str | None) -> None:
    if not A.numel():
        _nothing((outs[0], outs[2]) if full_matrices and compute_uv else (), outs)
        return
    m, n = A._shape[-2:]
    k, batch = min(m, n), tuple(A._shape[:-2])
    rows, cols = (m, n) if full_matrices else (k, k)
    U = outs[0] if compute_uv else A.new_empty((*batch, m, rows))
    V = A.new_empty((*batch, n, cols))
    call("aclnnSvd", "linalg_svd", A, full_matrices, compute_uv, outs[1], U, V)
    if compute_uv:
        outs[2].copy_(V.mT)


def _triangular(self: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    if not left:
        return _triangular(self.mT, B.mT, not upper, True, unitriangular).mT
    if not B.numel() or not self.numel():
        return B.clone()
    n = max(self.dim(), B.dim())
    shape = tuple(max(a, b) for a, b in zip((1,) * (n - self.dim()) + tuple(self._shape[:-2]),
                                            (1,) * (n - B.dim()) + tuple(B._shape[:-2])))
    A = self.expand((*shape, *self._shape[-2:])).contiguous()
    b = B.expand((*shape, *B._shape[-2:])).contiguous()
    out, copy = b.new_empty(b._shape), A.new_empty(A._shape)
    call("aclnnTriangularSolve", "linalg_solve_triangular", b, A, upper, False, unitriangular, out, copy)
    return out


def _det(A: Any) -> Any:
    from ... import linalg

    sign, size = linalg.slogdet(A)
    return sign * size.exp()


npu("linalg_inv_ex", into(_inverse))
npu("linalg_cholesky_ex", into(_cholesky))
npu("linalg_qr", into(_qr))
npu("_linalg_svd", into(_svd))
npu("linalg_solve_triangular", parts(_triangular))
npu("linalg_slogdet", "aclnnSlogdet(A, out0, out1)")
npu("linalg_det", parts(_det))
for _name in ("linalg_lu_factor_ex", "_linalg_solve_ex", "lu_unpack"):
    missing(_name, "the vendor has no LU factorization")
for _name in ("_linalg_eigh", "linalg_eig", "linalg_matrix_exp", "linalg_lstsq", "geqrf"):
    missing(_name, "the vendor has no function for it")
