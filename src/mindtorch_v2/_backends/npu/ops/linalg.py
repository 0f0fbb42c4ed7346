"""NPU lines of linear algebra.

Invariant: matrices come from the vendor row-major and are written into the results' own order; a matrix that cannot be
factored is reported where the factorization is made here (LU), not by the vendor's functions: their `info` is zero.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dtype import complex128, float64, int32, int64
from ...._finfo import finfo
from ...._ops.linalg import check_info, is_vector
from .. import quirks
from ..lines import accepts_dtype, call, into, missing, npu, parts

_cat = registry.get("cat")
_where = registry.get("where")

_MODES = {"reduced": 0, "complete": 1, "r": 2}


def _nothing(squares: Any, outs: Any) -> None:
    """Results for matrices without elements: zeros, and `squares` are the identity."""
    for out in outs:
        out.zero_()
    for out in squares:
        out.diagonal(0, -2, -1).fill_(1)


def _serves(function: str, t: Any) -> bool:
    """Whether the chip has a vendor function, for matrices of this dtype."""
    return accepts_dtype(function, t) and not quirks.lacks(function)


def _inverse(outs: Any, A: Any, check_errors: bool) -> None:
    outs[1].zero_()
    if not A.numel():
        return
    if _serves("aclnnInverse", A):
        call("aclnnInverse", "linalg_inv_ex", A, outs[0])
        return
    LU, pivots, info = _factored(A, True)
    unit = A.new_zeros(A._shape)
    unit.diagonal(0, -2, -1).fill_(1)
    outs[0].copy_(registry.get("linalg_lu_solve").call((LU, pivots, unit, True, False)))
    outs[1].copy_(info)
    if check_errors:
        check_info("linalg.inv", outs[1], "The diagonal element {} is zero, the inversion could not be completed "
                   "because the input matrix is singular.")


def _cholesky(outs: Any, self: Any, upper: bool, check_errors: bool) -> None:
    outs[1].zero_()
    if not self.numel():
        return
    if _serves("aclnnLinalgCholesky", self):
        call("aclnnLinalgCholesky", "linalg_cholesky_ex", self, upper, outs[0])
        return
    # Without exchanges the triangles of LU differ by the diagonal.
    half = self.mH if upper else self
    LU = _factored(half.tril() + half.tril(-1).mH, False)[0]
    pivots = LU.diagonal(0, -2, -1)
    pivots = pivots.real if self._dtype.is_complex else pivots
    L = LU.tril(-1) * pivots.sqrt().unsqueeze(-2)
    L.diagonal(0, -2, -1).copy_(pivots.sqrt())
    outs[0].copy_(L.mH if upper else L)
    wrong = (pivots > 0).logical_not().to(int32)
    outs[1].copy_(_where.call((wrong.any(-1), wrong.argmax(-1) + 1, 0)))
    if check_errors:
        check_info("linalg.cholesky", outs[1], "The factorization could not be completed because the input is not "
                   "positive-definite (the leading minor of order {} is not positive-definite).")


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
    if quirks.lacks("aclnnSvd"):
        raise NotImplementedError("'linalg_svd' is not available on NPU: aclnnSvd is documented for 910B and later")
    m, n = A._shape[-2:]
    k, batch = min(m, n), tuple(A._shape[:-2])
    rows, cols = (m, n) if full_matrices else (k, k)
    U = outs[0] if compute_uv else A.new_empty((*batch, m, rows))
    V = A.new_empty((*batch, n, cols))
    # Singular values come in the dtype of the matrix.
    values = A.new_empty(outs[1]._shape) if A._dtype.is_complex else outs[1]
    call("aclnnSvd", "linalg_svd", A, full_matrices, compute_uv, values, U, V)
    if values is not outs[1]:
        outs[1].copy_(values.real)
    if compute_uv:
        outs[2].copy_(V.mH)


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
    from .... import linalg

    sign, size = linalg.slogdet(A)
    return sign * size.exp()


# -- LU: column by column, all matrices of a batch at once ------------------------------------------------------------
def _swapped(size: int, j: int, other: Any) -> Any:
    """The places of rows after j and `other`, one for each matrix, were exchanged."""
    from .... import arange

    rows = arange(size, device=other._device)
    return _where.call((rows == j, other, _where.call((rows == other, j, rows))))


def _factored(A: Any, pivot: bool) -> tuple[Any, Any, Any]:
    from .... import arange

    LU, (m, n), batch = A.contiguous().clone(), A._shape[-2:], tuple(A._shape[:-2])
    chosen = []
    for j in range(min(m, n)):
        if pivot:
            column = LU.narrow(-2, j, m - j).select(-1, j)
            # LAPACK compares complex numbers by the sum of their parts.
            size = column.real.abs() + column.imag.abs() if A._dtype.is_complex else column.abs()
            largest = size.argmax(-1, True) + j
            chosen.append(largest)
            order = _swapped(m, j, largest)
            LU = LU.gather(-2, order.unsqueeze(-1).expand(LU._shape))
        if j + 1 < m:
            head, row = LU.narrow(-2, j, 1).narrow(-1, j, 1), LU.narrow(-2, j, 1).narrow(-1, j + 1, n - j - 1)
            below = LU.narrow(-2, j + 1, m - j - 1)
            # As LAPACK leaves it: under a zero nothing is divided.
            factors = below.narrow(-1, j, 1) / _where.call((head == 0, head + 1, head))
            rest = below.narrow(-1, j + 1, n - j - 1) - factors * row
            below.narrow(-1, j, 1).copy_(factors)
            below.narrow(-1, j + 1, n - j - 1).copy_(rest)
    zero = (LU.diagonal(0, -2, -1) == 0).to(int32)
    info = _where.call((zero.any(-1), zero.argmax(-1) + 1, 0)).to(int32)
    if pivot:
        pivots = _cat.call((tuple(chosen), -1)) + 1
    else:
        pivots = (arange(min(m, n), device=A._device) + 1).expand((*batch, min(m, n)))
    return LU, pivots.to(int32), info


def _lu_factor(outs: Any, A: Any, pivot: bool, check_errors: bool) -> None:
    if not A.numel():
        outs[2].zero_()
        return
    for out, made in zip(outs, _factored(A, pivot)):
        out.copy_(made)
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", outs[2], "U[{0},{0}] is zero and using it on lu_solve would result in "
                   "a division by zero. If you still want to perform the factorization, consider calling "
                   "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")


def _order(pivots: Any, size: int) -> Any:
    """Where each row was before all exchanges."""
    from .... import arange

    order = arange(size, device=pivots._device).expand((*pivots._shape[:-1], size))
    for j in range(pivots._shape[-1]):
        order = order.gather(-1, _swapped(size, j, pivots.narrow(-1, j, 1).to(int64) - 1))
    return order


def _lu_unpack(outs: Any, LU_data: Any, LU_pivots: Any, unpack_data: bool, unpack_pivots: bool) -> None:
    from .... import arange

    m, n = LU_data._shape[-2:]
    k = min(m, n)
    if unpack_pivots:
        rows = arange(m, device=LU_data._device).unsqueeze(-1)
        outs[0].copy_(rows == _order(LU_pivots, m).unsqueeze(-2))
    if unpack_data:
        outs[1].copy_(LU_data.narrow(-1, 0, k).tril(-1))
        outs[1].diagonal(0, -2, -1).fill_(1)
        outs[2].copy_(LU_data.narrow(-2, 0, k).triu())


def _solve(outs: Any, A: Any, B: Any, left: bool, check_errors: bool) -> None:
    for out in outs[2:]:
        out.zero_()
    if not A.numel():
        return
    vector = is_vector(A, B)
    result, right = (t.unsqueeze(-1) if vector else t for t in (outs[0], B))
    batch = outs[1]._shape[:-2]
    LU, pivots, info = _factored(A, True)
    outs[1].copy_(LU.expand((*batch, *LU._shape[-2:])))
    outs[2].copy_(pivots.expand((*batch, pivots._shape[-1])))
    outs[3].copy_(info)
    if right.numel():
        result.copy_(registry.get("linalg_lu_solve").call((LU, pivots, right, left, False)))
    if check_errors:
        check_info("torch.linalg.solve", outs[3], "The solver failed because the input matrix is singular.")


# -- reflections: column by column, as LAPACK makes them ---------------------------------------------------------------
def _reflections(outs: Any, self: Any) -> None:
    if not self.numel():
        return
    A, (m, n), factors = self.contiguous().clone(), self._shape[-2:], []
    for j in range(min(m, n)):
        alpha, below = A.narrow(-2, j, 1).narrow(-1, j, 1), A.narrow(-2, j + 1, m - j - 1).narrow(-1, j, 1)
        real = alpha.real if A._dtype.is_complex else alpha
        rest = (below.abs() ** 2).sum(-2, True)
        size = (rest + alpha.abs() ** 2).sqrt()
        beta = _where.call((real < 0, size, -size))
        # A column that is reduced already is left alone.
        done = rest == 0
        if A._dtype.is_complex:
            done = done.logical_and(alpha.imag == 0)
        beta, divisor = (_where.call((done, a, b)) for a, b in ((real, beta), (real * 0 + 1, alpha - beta)))
        tau = _where.call((done, alpha * 0, (beta - alpha) / _where.call((done, beta * 0 + 1, beta))))
        v = below / divisor
        if j + 1 < n:
            row, block = (A.narrow(-1, j + 1, n - j - 1).narrow(-2, start, size_)
                          for start, size_ in ((j, 1), (j + 1, m - j - 1)))
            along = (row + (v.conj() * block).sum(-2, True)) * tau.conj()
            row.sub_(along)
            block.sub_(v * along)
        alpha.copy_(beta)
        below.copy_(v)
        factors.append(tau.squeeze(-1))
    outs[0].copy_(A)
    outs[1].copy_(_cat.call((tuple(factors), -1)))


# -- exponential and least squares ------------------------------------------------------------------------------------
_SMALL = 64


def _exponential(self: Any) -> Any:
    """Taylor's series of a matrix whose norm was halved to below two, squared as often; as in PyTorch the host asks how
    often that is."""
    if not self.numel():
        return self.clone()
    # Every squaring doubles the error. Small matrices can afford products outside of the matrix unit.
    precise = {"float32": float64, "complex64": complex128}.get(self._dtype.name)
    if precise is not None and self._shape[-1] <= _SMALL:
        return _exponential(self.to(precise)).to(self._dtype)
    size = float(self.abs().sum(-2).amax().item())
    halvings = max(0, math.ceil(math.log2(size / 2))) if 0 < size < math.inf else 0
    x = self * 2.0 ** -halvings
    unit = x.new_zeros(x._shape)
    unit.diagonal(0, -2, -1).fill_(1)
    out = unit
    terms = 26 if x._dtype.itemsize // (2 if x._dtype.is_complex else 1) == 8 else 16
    for k in range(terms, 0, -1):
        out = unit + x.matmul(out) * (1 / k)
    for _ in range(halvings):
        out = out.matmul(out)
    return out


def _least_squares(outs: Any, self: Any, b: Any, rcond: float | None, driver: str | None) -> None:
    """By the singular values that count."""
    from .... import linalg

    solution, residuals, rank, values = outs
    vector = self.dim() - 1 == b.dim() and self._shape[:-1] == b._shape
    right, target = (t.unsqueeze(-1) if vector else t for t in (b, solution))
    if not self.numel() or not right.numel():
        for out in outs:
            out.zero_()
        return
    m, n = self._shape[-2:]
    U, S, Vh = linalg.svd(self, full_matrices=False)
    least = finfo(S._dtype).eps * max(m, n) if rcond is None or rcond < 0 else rcond
    counts = S > S.narrow(-1, 0, 1) * least
    inverse = _where.call((counts, 1 / _where.call((counts, S, 1)), 0))
    x = Vh.mH.matmul(inverse.unsqueeze(-1).to(self._dtype) * U.mH.matmul(right))
    target.copy_(x)
    if rank.numel():
        rank.copy_(counts.sum(-1))
    if values.numel():
        values.copy_(S)
    if residuals.numel():
        apart = (self.matmul(x) - right).abs()
        residuals.copy_((apart * apart).sum(-2))


# -- eigenvalues of Hermitian matrices --------------------------------------------------------------------------------
def _eigh(outs: Any, A: Any, UPLO: str, compute_v: bool) -> None:
    """A multiple of the unit matrix makes all eigenvalues positive: then they are the singular values, and the vectors
    are the same. What is lost is what any way loses, a rounding of the largest."""
    from .... import linalg

    values, vectors = outs
    if not A.numel():
        return
    half = A.triu(1).mH if UPLO in "Uu" else A.tril(-1)
    diagonal = A.diagonal(0, -2, -1)
    whole = half + half.mH
    whole.diagonal(0, -2, -1).copy_(diagonal.real if A._dtype.is_complex else diagonal)
    shift = whole.abs().sum(-1).amax(-1, True)
    raised = whole.clone()
    raised.diagonal(0, -2, -1).add_(shift)
    U = linalg.svd(raised, full_matrices=False)[0].flip(-1)
    # Asked of the matrix itself, they are nearer than the difference of two large numbers.
    found, order = (U.conj() * whole.matmul(U)).sum(-2).real.sort(-1)
    values.copy_(found)
    if compute_v:
        vectors.copy_(U.gather(-1, order.unsqueeze(-2).expand(U._shape)))


npu("linalg_inv_ex", into(_inverse))
npu("linalg_cholesky_ex", into(_cholesky))
npu("linalg_qr", into(_qr))
npu("_linalg_svd", into(_svd))
npu("linalg_solve_triangular", parts(_triangular))
npu("linalg_slogdet", "aclnnSlogdet(A, out0, out1)")
npu("linalg_det", parts(_det))
npu("linalg_lu_factor_ex", into(_lu_factor))
npu("lu_unpack", into(_lu_unpack))
npu("_linalg_solve_ex", into(_solve))
npu("linalg_matrix_exp", parts(_exponential))
npu("linalg_lstsq", into(_least_squares))
npu("_linalg_eigh", into(_eigh))
missing("linalg_eig", "the vendor has no eigenvalues of matrices that are not Hermitian")
npu("geqrf", into(_reflections))
