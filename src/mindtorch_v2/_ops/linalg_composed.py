"""Linear algebra in terms of the rows that factor matrices, and the older names of `torch`.

Invariant: nothing here has a kernel; what it cannot do is what its parts cannot.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.keys import SPARSE
from .._dispatch.op import Op, Spec
from .._dtype import int32, int64
from .._dtype_names import cpp_name
from .._finfo import finfo
from .._layout import contiguous_format
from .._tensor_base import TensorBase, all_values, is_dual, numel
from .._warn import warn_once
from . import linalg
from .linalg import H, check_factored, check_float, check_info, check_matrix, check_square, columns
from .rules.base import like, wrap_dim
from .rules.pointwise import broadcast_shapes
from .table import composite, op

_MM = registry.get("mm")
_MATMUL = registry.get("matmul")

_norm = registry.get("linalg_vector_norm")
_where = registry.get("where")
_matmul = registry.get("matmul")
Ints = tuple[int, ...]


def _public(schema: str, fn: Any, out: bool = True) -> Op:
    return composite(schema, fn, out=out, function=False, method=False)


# -- one matrix ---------------------------------------------------------------------------------------------------
def _inverse(A: Any) -> Any:
    inverse, info = linalg.INV.call((A, False))
    check_info("linalg.inv", info, "The diagonal element {} is zero, the inversion could not be completed because the "
               "input matrix is singular.")
    return inverse


def _cholesky(self: Any, upper: bool) -> Any:
    L, info = linalg.CHOLESKY.call((self, upper, False))
    check_info("linalg.cholesky", info, "The factorization could not be completed because the input is not "
               "positive-definite (the leading minor of order {} is not positive-definite).")
    return L


_public("linalg_inv(Tensor A) -> Tensor", _inverse)
_public("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", _cholesky)
composite("inverse(Tensor self) -> Tensor", _inverse, out=True)


def _old_cholesky(self: Any, upper: bool) -> Any:
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = "
        "torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will "
        "produce equivalent results for all valid (symmetric positive definite) inputs.")
    return _cholesky(self, upper) if numel(self) else self.clone()


composite("cholesky(Tensor self, bool upper=False) -> Tensor", _old_cholesky, out=True)
composite("det(Tensor self) -> Tensor", lambda self: linalg.DET.call((self,)))
composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", lambda self: linalg.SLOGDET.call((self,)),
          out=True)
composite("matrix_exp(Tensor self) -> Tensor", lambda self: linalg.EXP.call((self,)))


def _logdet(self: Any) -> Any:
    check_square(self, "logdet")
    check_float(self, "logdet")
    sign, size = linalg.SLOGDET.call((self,))
    if self._dtype.is_complex:
        return sign.log() + size
    return _where.call((sign == -1, math.nan, size))


composite("logdet(Tensor self) -> Tensor", _logdet)


def _solve(A: Any, B: Any, left: bool) -> Any:
    result, _, _, info = linalg.SOLVE.call((A, B, left, False))
    check_info("torch.linalg.solve", info, "The solver failed because the input matrix is singular.")
    return result


def _solve_ex(A: Any, B: Any, left: bool, check_errors: bool) -> Any:
    result, _, _, info = linalg.SOLVE.call((A, B, left, check_errors))
    return result, info


_public("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", _solve)
_public("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
        "info)", _solve_ex)


# -- factorizations -----------------------------------------------------------------------------------------------
def _lu_factor(A: Any, pivot: bool) -> Any:
    LU, pivots, info = linalg.LU_FACTOR.call((A, pivot, False))
    check_info("torch.linalg.lu_factor_ex", info, "U[{0},{0}] is zero and using it on lu_solve would result in a "
               "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) "
               "or linalg.lu_factor_ex(A, pivot)")
    return LU, pivots


def _lu(A: Any, pivot: bool) -> Any:
    check_factored(A, "linalg.lu")
    LU, pivots, _ = linalg.LU_FACTOR.call((A, pivot, False))
    return linalg.UNPACK.call((LU, pivots, True, True))


def _lu_solve_meta(LU: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Spec:
    check_float(LU, "torch.linalg.lu_solve")
    check_square(LU, "torch.linalg.lu_solve")
    check_matrix(B, "torch.linalg.lu_solve", "B")
    if LU._dtype is not B._dtype:
        raise RuntimeError("linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
                           f"{LU._dtype.scalar_name} and B of type {B._dtype.scalar_name} instead")
    n = LU._shape[-1]
    if pivots._dtype is not int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if pivots._shape[-1] != n:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots._shape != LU._shape[:-1]:
        raise RuntimeError("linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots "
                           f"with shape {list(pivots._shape)} instead")
    if B._shape[-2 if left else -1] != n:
        raise RuntimeError("linalg.lu_solve: Incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {B._shape[-2]}x{B._shape[-1]})")
    shape = (*broadcast_shapes(tuple(LU._shape[:-2]), tuple(B._shape[:-2])), *B._shape[-2:])
    # From the right the equation is solved transposed.
    return columns(B, shape) if left else like(B, shape)


def _lu_solve(LU: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Any:
    if not numel(B) or not numel(LU):
        spec = _lu_solve_meta(LU, pivots, B, left, adjoint)
        return B.new_empty_strided(spec.shape, spec.stride)
    if LU._device.type == "cpu":
        for wrong, text in (((pivots < 1), "greater or equal to 1"),
                            ((pivots > LU._shape[-2]), "smaller or equal to LU.size(-2)")):
            if bool(all_values(wrong).any()):
                raise RuntimeError(f"Pivots given to lu_solve must all be {text}. Did you properly pass the result of "
                                   "lu_factor?")
    P, L, U = linalg.UNPACK.call((LU, pivots, True, True))
    return _applied(P, L, U, B, left, adjoint)


def _lu_solve_grads(g: Any, LU: Any, pivots: Any, result: Any, left: bool, adjoint: bool,
                    needs: tuple[bool, bool]) -> tuple[Any, Any]:
    gB = LU_SOLVE.call((LU, pivots, g, left, not adjoint))
    if not needs[0]:
        return None, gB
    if left:
        gA = -(result @ H(gB)) if adjoint else -(gB @ H(result))
    else:
        gA = -(H(gB) @ result) if adjoint else -(H(result) @ gB)
    P, L, U = linalg.UNPACK.call((LU, pivots, True, True))
    inner = H(P) @ gA
    return (inner @ H(U)).tril(-1) + (H(L) @ inner).triu(), gB


def _applied(P: Any, L: Any, U: Any, B: Any, left: bool, adjoint: bool) -> Any:
    solve = linalg.TRIANGULAR.call
    if left != adjoint:
        if left:
            out = solve((L, H(P) @ B, False, True, True))
            return solve((U, out, True, True, False))
        # X A^H = B: A X^H = B^H
        out = solve((H(L), B @ P, True, False, True))
        return solve((H(U), out, False, False, False))
    if left:
        out = solve((H(U), B, False, True, False))
        return P @ solve((H(L), out, True, True, True))
    out = solve((U, B, True, False, False))
    return solve((L, out, False, False, True)) @ H(P)


_public("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", _lu_factor)
_public("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", _lu)
LU_SOLVE: Op = op("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) "
                  "-> Tensor", meta=_lu_solve_meta, out=True, kernel=_lu_solve, function=False, method=False,
                  grad={("LU", "B"): _lu_solve_grads})


def _old_lu_solve(self: Any, LU_data: Any, LU_pivots: Any) -> Any:
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch "
        "release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\n"
        "should be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)")
    return LU_SOLVE.call((LU_data, LU_pivots, self, True, False))


def _old_qr(self: Any, some: bool) -> Any:
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
        "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould "
        "be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')")
    return linalg.QR.call((self, "reduced" if some else "complete"))


composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", _old_lu_solve, out=True)
composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", _old_qr, out=True)


def warn_triangular_solve() -> None:
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future "
        "PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one "
        "of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
        "torch.linalg.solve_triangular(A, B).")


def _triangular_solve(self: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    warn_triangular_solve()
    factor = A.mT if transpose else A
    solution = linalg.TRIANGULAR.call((factor, self, upper != transpose, True, unitriangular))
    batch = tuple(solution._shape[:-2])
    return solution, A.expand((*batch, *A._shape[-2:])).mT.clone(memory_format=contiguous_format).mT


composite("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
          "-> (Tensor solution, Tensor cloned_coefficient)", _triangular_solve, out=True)


# -- eigenvalues and singular values --------------------------------------------------------------------------------
def _needs(t: Any) -> bool:
    from .._dispatch.state import is_grad_enabled

    return is_dual(t) or (bool(t.requires_grad) and is_grad_enabled())


_public("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
        lambda self, UPLO: linalg.EIGH.call((self, UPLO, True)))
_public("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
        lambda self, UPLO: linalg.EIGH.call((self, UPLO, _needs(self)))[0])
_public("linalg_eigvals(Tensor self) -> Tensor", lambda self: linalg.EIG.call((self,))[0])
_public("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        lambda A, full_matrices, driver: linalg.SVD.call((A, full_matrices, True, driver)))
_public("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", lambda A, driver: _svdvals(A, driver))


def _svdvals(A: Any, driver: str | None = None) -> Any:
    return linalg.SVD.call((A, False, _needs(A), driver))[1]


def _svd(self: Any, some: bool, compute_uv: bool) -> Any:
    if not compute_uv and len(self._shape) > 1:
        m, n = self._shape[-2:]
        batch = tuple(self._shape[:-2])
        return self.new_zeros((*batch, m, m)), _svdvals(self), self.new_zeros((*batch, n, n))
    U, S, Vh = linalg.SVD.call((self, not some, True, None))
    return U, S, H(Vh)


composite("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", _svd, out=True)


def _tolerance(self: Any, atol: Any, rtol: Any, name: str) -> tuple[Any, Any]:
    for label, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, complex):
            raise TypeError(f"linalg_{name}(): argument '{label}' must be Tensor or float, not complex")
        if isinstance(value, TensorBase) and value._dtype.is_complex:
            raise RuntimeError(f"torch.linalg.{name}: {label} tensor of complex type is not supported. Got "
                               f"{label} of type {value._dtype.scalar_name}")
    if rtol is None:
        dt = self._dtype.to_real() if self._dtype.is_complex else self._dtype
        default = finfo(dt).eps * max(self._shape[-2:])
        if atol is None:
            rtol = default
        elif isinstance(atol, TensorBase):
            rtol = _where.call((atol > 0, 0.0, default))
        else:
            rtol = 0.0 if atol > 0 else default
    return 0.0 if atol is None else atol, rtol


def _cut(S: Any, atol: Any, rtol: Any) -> Any:
    """The size below which a singular value counts as zero, for each matrix."""
    largest = S.narrow(-1, 0, 1) if S._shape[-1] else S
    part = largest * (rtol if isinstance(rtol, (int, float)) else rtol.unsqueeze(-1))
    return part.clamp(min=atol) if isinstance(atol, (int, float)) else part.maximum(atol.unsqueeze(-1))


def _matrix_rank(self: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    check_matrix(self, "torch.linalg.matrix_rank", "input")
    x = self.detach()
    atol, rtol = _tolerance(x, atol, rtol, "matrix_rank")
    if not numel(x):
        return x.new_zeros(tuple(x._shape[:-2]), dtype=int64)
    S = linalg.EIGH.call((x, "L", False))[0].abs().sort(-1, True)[0] if hermitian else _svdvals(x)
    return (S > _cut(S, atol, rtol)).sum(-1)


_public("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
        "hermitian=False) -> Tensor", _matrix_rank)
_public("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
        "-> Tensor", _matrix_rank)
_public("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
        lambda self, tol, hermitian: _matrix_rank(self, tol, 0.0, hermitian))
_public("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
        lambda input, tol, hermitian: _matrix_rank(input, tol, 0.0, hermitian))


def _pinv(self: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    atol, rtol = _tolerance(self, atol, rtol, "pinv")
    m, n = self._shape[-2:]
    if not numel(self):
        return self.new_empty((*self._shape[:-2], n, m))
    if hermitian:
        L, V = linalg.EIGH.call((self, "L", True))
        size = L.abs()
        S = size.amax(-1, True)
        inverse = _where.call((size > _cut(S, atol, rtol), L.reciprocal(), 0.0))
        return (V * inverse.unsqueeze(-2)) @ H(V)
    U, S, Vh = linalg.SVD.call((self, False, True, None))
    inverse = _where.call((S > _cut(S, atol, rtol), S.reciprocal(), 0.0)).to(U._dtype)
    return H(Vh) @ (inverse.unsqueeze(-1) * H(U))


def _pinv_meta(self: Any, atol: Any, rtol: Any, hermitian: bool) -> Spec:
    check_matrix(self, "linalg.pinv")
    check_float(self, "linalg.pinv")
    if hermitian and numel(self):
        check_square(self, "linalg.pinv")
    return like(self, (*self._shape[:-2], self._shape[-1], self._shape[-2]))


def _pinv_grad(g: Any, self: Any, result: Any) -> Any:
    return linalg.pinv_grad(g, result, self)


PINV: Op = op("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
              "hermitian=False) -> Tensor", meta=_pinv_meta, out=True, kernel=_pinv, grad=dict(self=_pinv_grad),
              numbers=("atol", "rtol"), function=False, method=False)
_public("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
        lambda self, rcond, hermitian: PINV.call((self, 0.0, rcond, hermitian)))
_public("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
        lambda self, rcond, hermitian: PINV.call((self, 0.0, rcond, hermitian)))
composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor",
          lambda self, rcond: PINV.call((self, 0.0, rcond, False)))


# -- norms --------------------------------------------------------------------------------------------------------
def _matrix_norm(self: Any, ord: Any, dim: Ints, keepdim: bool, dtype: Any) -> Any:
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    check_matrix(self, "linalg.matrix_norm")
    if not self._dtype.is_inexact:
        raise RuntimeError("linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
                           f"{self._dtype.scalar_name}")
    if isinstance(ord, complex):
        raise RuntimeError("linalg.matrix_norm: Expected a non-complex scalar as the order of norm.")
    size = abs(ord)
    if size not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    x = self if dtype is None else self.to(dtype)
    rows, cols = (wrap_dim(d, x.dim()) for d in dim)
    if rows == cols:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({rows}, {cols})")
    best = "amax" if ord > 0 else "amin"
    if size == 2:
        S = _svdvals(x.movedim((rows, cols), (-2, -1)))
        if not S._shape[-1]:
            if ord < 0:
                raise IndexError("amin(): Expected reduction dim -1 to have non-zero size.")
            S = S.new_zeros((*S._shape[:-1], 1))
        return _kept(getattr(S, best)(-1, keepdim), rows, cols, keepdim)
    summed, kept = (rows, cols) if size == 1 else (cols, rows)
    if kept > summed and not keepdim:
        kept -= 1
    sums = _norm.call((x, 1, (summed,), keepdim, None))
    if ord > 0 and not sums._shape[kept]:
        # The largest of no sums is 0, since no norm is less.
        return sums.sum(kept, keepdim)
    return getattr(sums, best)(kept, keepdim)


def _kept(norms: Any, rows: int, cols: int, keepdim: bool) -> Any:
    """Norms behind the dimensions of the batch; `keepdim`: one more, which go where the matrices' dimensions were."""
    return norms.unsqueeze(-1).movedim((-2, -1), (rows, cols)) if keepdim else norms


def _matrix_norm_text(self: Any, ord: str, dim: Ints, keepdim: bool, dtype: Any) -> Any:
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    check_matrix(self, "linalg.matrix_norm")
    if ord in ("fro", "nuc") and wrap_dim(dim[0], self.dim()) == wrap_dim(dim[1], self.dim()):
        raise RuntimeError("linalg.matrix_norm: dims must be different. Got "
                           f"({wrap_dim(dim[0], self.dim())}, {wrap_dim(dim[1], self.dim())})")
    if ord == "fro":
        return _norm.call((self, 2, dim, keepdim, dtype))
    if ord != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    x = self if dtype is None else self.to(dtype)
    rows, cols = (wrap_dim(d, x.dim()) for d in dim)
    return _kept(_svdvals(x.movedim((rows, cols), (-2, -1))).sum(-1, keepdim), rows, cols, keepdim)


_SHAPE = "int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
_public(f"linalg_matrix_norm(Tensor self, Scalar ord, {_SHAPE}", _matrix_norm)
_public(f"linalg_matrix_norm.str_ord(Tensor self, str ord='fro', {_SHAPE}", _matrix_norm_text)


def _any_norm(self: Any, ord: Any, dim: Ints | None, keepdim: bool, dtype: Any) -> Any:
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and self.dim() not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                           f"{self.dim()}D.")
    if ord is not None and (len(dim) == 2 if dim is not None else self.dim() == 2):
        return _matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    return _norm.call((self, 2 if ord is None else ord, dim, keepdim, dtype))


_REST = "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
_public(f"linalg_norm(Tensor self, Scalar? ord=None, {_REST}", _any_norm)
_public(f"linalg_norm.ord_str(Tensor self, str ord, {_REST}",
        lambda self, ord, dim, keepdim, dtype: _matrix_norm_text(self, ord, (0, 1) if dim is None else dim, keepdim,
                                                                 dtype))


def _cond(self: Any, p: Any) -> Any:
    check_matrix(self, "linalg.cond")
    if not numel(self):
        return self.new_zeros(tuple(self._shape[:-2]), dtype=self._dtype.to_real() if self._dtype.is_complex else None)
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        S = _svdvals(self)
        high, low = S.narrow(-1, 0, 1), S.narrow(-1, S._shape[-1] - 1, 1)
        return (low / high if p == -2 else high / low).squeeze(-1)
    if (p not in ("fro", "nuc")) if isinstance(p, str) else abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p if isinstance(p, str) else f'{p:g}'}")
    check_square(self, f"linalg.cond(ord={p if isinstance(p, str) else f'{p:g}'})")
    inverse, info = linalg.INV.call((self, False))
    inverse = inverse.masked_fill((info != 0).unsqueeze(-1).unsqueeze(-1), math.inf)
    if isinstance(p, str):
        return _matrix_norm_text(self, p, (-2, -1), False, None) * _matrix_norm_text(inverse, p, (-2, -1), False, None)
    return _matrix_norm(self, p, (-2, -1), False, None) * _matrix_norm(inverse, p, (-2, -1), False, None)


_public("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", _cond)
_public("linalg_cond.p_str(Tensor self, str p) -> Tensor", _cond)


# -- products -----------------------------------------------------------------------------------------------------
def _matrix_power(self: Any, n: int) -> Any:
    check_square(self, "linalg.matrix_power")
    if n == 0:
        eye = registry.get("eye").call((*self._shape[-2:], self._dtype, None, self._device, None))
        return self.clone(memory_format=contiguous_format).copy_(eye)
    x = _inverse(self) if n < 0 else self
    n = abs(n)
    if n == 1:
        return x.clone() if x is self else x
    out: Any = None
    while n:
        n, odd = divmod(n, 2)
        if odd:
            out = x if out is None else _matmul.call((out, x))
        if n:
            x = _matmul.call((x, x))
    return out


_public("linalg_matrix_power(Tensor self, int n) -> Tensor", _matrix_power)
composite("matrix_power(Tensor self, int n) -> Tensor", _matrix_power, out=True)


def _vecdot(x: Any, y: Any, dim: int) -> Any:
    if x._dtype is not y._dtype:
        raise RuntimeError("linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
                           f"{x._dtype.scalar_name} and y of type {y._dtype.scalar_name} instead")
    if not x._dtype.is_inexact:
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x._dtype.scalar_name}")
    if x.dim() == 1 and y.dim() == 1:
        return x.vdot(y)
    return ((x.conj() if x._dtype.is_complex else x) * y).sum(dim)


_public("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", _vecdot)


def _vander(x: Any, N: int | None) -> Any:
    if x._dtype.is_bool or (x._dtype.is_floating_point and x._dtype.itemsize < 4):
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, but got "
                           f"{x._dtype.scalar_name}")
    if not x.dim():
        x = x.unsqueeze(0)
    n = x._shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    rows = x.unsqueeze(-1).expand((*x._shape, n - 1))
    if not x._dtype.is_inexact:
        rows = rows.to(int64)
    one = rows.new_ones((*x._shape, 1))
    return registry.get("cat").call(((one, rows.cumprod(-1)), -1))


_public("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", _vander, out=False)


def _in_cheapest_order(parts: list[Any]) -> Any:
    """The product of matrices; of two orders that cost the same, PyTorch's."""
    n = len(parts)
    size = [parts[0]._shape[0]] + [t._shape[1] for t in parts]
    if n == 3:
        a, b, c = parts
        if size[0] * size[2] * (size[1] + size[3]) > size[1] * size[3] * (size[0] + size[2]):
            return _MM.call((a, _MM.call((b, c))))
        return _MM.call((_MM.call((a, b)), c))
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min((cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1], k)
                                          for k in range(i, j))

    def product(i: int, j: int) -> Any:
        if i == j:
            return parts[i]
        k = split[i][j]
        return product(i, k).mm(product(k + 1, j))

    return product(0, n - 1)


def _multi_dot(tensors: Any) -> Any:
    """The cheapest order of products by the sizes alone."""
    n = len(tensors)
    if n < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(n))
    if n == 2:
        a, b = tensors
        plain = len(a._shape) == 2 == len(b._shape) and a._dtype is b._dtype and a._shape[1] == b._shape[0]
        if plain and not (a._keys | b._keys) & SPARSE:
            return _MM.call((a, b))
    parts = list(tensors)
    if parts[0].dim() == 1:
        parts[0] = parts[0].unsqueeze(0)
    if parts[-1].dim() == 1:
        parts[-1] = parts[-1].unsqueeze(-1)
    for i, t in enumerate(parts):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
        if t._dtype is not parts[0]._dtype:
            raise RuntimeError("multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                               f"{cpp_name(parts[0]._dtype)} and tensor {i} {cpp_name(t._dtype)}")
    for i in range(n - 1):
        if parts[i]._shape[1] != parts[i + 1]._shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(parts[i]._shape)} and "
                               f"{list(parts[i + 1]._shape)} cannot be multiplied")
    out = _in_cheapest_order(parts)
    if out._keys & SPARSE:
        from .._sparse.refusals import refused

        raise refused("view", [out])
    if tensors[0].dim() == 1:
        out = out.squeeze(0)
    if tensors[-1].dim() == 1:
        out = out.squeeze(-1)
    return out


_public("linalg_multi_dot(Tensor[] tensors) -> Tensor", _multi_dot)


def _chain_matmul(matrices: Any) -> Any:
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.")
    return matrices[0] if len(matrices) == 1 else _multi_dot(matrices)


composite("chain_matmul(Tensor[] matrices) -> Tensor", _chain_matmul, out=True, function=False)
_public("linalg_matmul(Tensor self, Tensor other) -> Tensor", lambda self, other: _MATMUL.call((self, other)))


def _tensorinv(self: Any, ind: int) -> Any:
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    if ind > self.dim():
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {self.dim()}")
    rows, cols = self._shape[:ind], self._shape[ind:]
    n, m = math.prod(rows), math.prod(cols)
    if n != m:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
                           f"but got {m} != {n}")
    return _inverse(self.reshape((n, m))).reshape((*cols, *rows))


def _tensorsolve(self: Any, other: Any, dims: Ints | None) -> Any:
    if dims is not None:
        moved = [wrap_dim(d, self.dim()) for d in dims]
        self = self.permute((*(d for d in range(self.dim()) if d not in moved), *moved))
    shape = self._shape[other.dim():]
    n = math.prod(shape)
    if numel(other) != n:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {n} != {numel(other)}")
    return _solve(self.reshape((n, n)), other.flatten(), True).reshape(shape)


_public("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", _tensorinv)
_public("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", _tensorsolve)
_public("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
        lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2), out=False)
