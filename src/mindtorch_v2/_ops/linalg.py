"""Rows of linear algebra that need a factorization, and their derivatives.

Invariant: results of LAPACK are column-major, as PyTorch's are; formulas are PyTorch's (FunctionsManual), so that they
refuse, and divide by zero, where its do.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.keys import BATCHED, PYTHON, TORCH_DISPATCH
from .._dispatch.op import Op, Spec
from .._dispatch.state import differentiated
from .._dtype import complex32, dtype, int32
from .._strides import contiguous_strides
from .._tensor_base import all_values, numel
from .rules.base import KeptRule, like
from .rules.dtype_checks import not_implemented
from .rules.pointwise import broadcast_shapes
from .table import composite, op

_cat = registry.get("cat")
_diag_embed = registry.get("diag_embed")
Ints = tuple[int, ...]


class _LinAlgError(RuntimeError):
    """`torch.linalg.LinAlgError`: a matrix cannot be factored. PyTorch's messages show it under this name."""


LinAlgError = _LinAlgError


# -- shapes -------------------------------------------------------------------------------------------------------
def columns(t: Any, shape: Ints, dt: dtype | None = None) -> Spec:
    """A result whose matrices are column-major."""
    swapped = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    d = t._dtype if dt is None else dt
    return Spec(shape, (*swapped[:-2], swapped[-1], swapped[-2]), d, d, t._device)


def check_matrix(t: Any, name: str, argument: str = "A") -> None:
    if t.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_factored(t: Any, name: str) -> None:
    """The functions of LU say it in their own words."""
    if len(t._shape) < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(t._shape)} instead")


def check_square(t: Any, name: str, argument: str = "A") -> None:
    check_matrix(t, name, argument)
    if t._shape[-1] != t._shape[-2]:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {t._shape[-2]} by "
                           f"{t._shape[-1]} matrices")


def check_float(t: Any, name: str, kernel: str = "") -> None:
    """LAPACK has single and double precision, real and complex."""
    dt = t._dtype
    if not dt.is_inexact:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {dt.scalar_name}")
    if dt.itemsize < 4 or dt is complex32:
        if kernel:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {dt.scalar_name}")


def _batch(t: Any) -> Ints:
    return tuple(t._shape[:-2])


def H(t: Any) -> Any:
    out = t.transpose(-2, -1)
    return out.conj() if t._dtype.is_complex else out


def check_info(name: str, info: Any, text: str) -> None:
    """Raise for the first matrix that LAPACK refused; `text` has {} for the number it gave."""
    info = all_values(info)
    if info._device.type == "meta" or not numel(info):
        return
    if not (info.item() if numel(info) == 1 else bool((info != 0).any())):
        return
    values = info.reshape((-1,)).tolist()
    first = next(i for i, v in enumerate(values) if v)
    where = f" (Batch element {first}):" if info.dim() else ""
    raise LinAlgError(f"{name}:{where} {text.format(values[first])}")


# -- LU -----------------------------------------------------------------------------------------------------------
def _lu_meta(A: Any, pivot: bool, check_errors: bool) -> list[Spec]:
    check_factored(A, "torch.lu_factor")
    check_float(A, "torch.lu_factor", "lu_cpu")
    if not pivot and A._device.type == "cpu":
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    k = min(A._shape[-2:])
    return [columns(A, A._shape), like(A, (*_batch(A), k), int32), like(A, _batch(A), int32)]


def _plu_backward(gL: Any, gU: Any, P: Any, L: Any, U: Any) -> Any:
    """The gradient of A = P L U; `gL`, `gU` may be None."""
    m, n = L._shape[-2], U._shape[-1]
    k = min(m, n)
    inner = None
    if gL is not None:
        inner = H(L) @ gL
    if m == n:
        total = inner.tril(-1) if inner is not None else None
        if gU is not None:
            upper = (gU @ H(U)).triu()
            total = upper if total is None else total + upper
        total = TRIANGULAR.call((H(U), total, False, False, False))
        return P @ TRIANGULAR.call((H(L), total, True, True, True))
    if m < n:
        first = inner.tril(-1) if inner is not None else None
        if gU is not None:
            lower = (gU @ H(U)).tril(-1)
            first = -lower if first is None else first - lower
        first = TRIANGULAR.call((H(U.narrow(-1, 0, k)), first, False, False, False))
        if gU is not None:
            first = first + gU.narrow(-1, 0, k).triu()
            rest = gU.narrow(-1, k, n - k)
        else:
            rest = first.new_zeros((*first._shape[:-1], n - k))
        return P @ TRIANGULAR.call((H(L), _cat.call(((first, rest), -1)), True, True, True))
    first = (gU @ H(U)).triu() if gU is not None else None
    if inner is not None:
        first = -inner.triu() if first is None else first - inner.triu()
    first = TRIANGULAR.call((H(L.narrow(-2, 0, k)), first, True, True, True))
    if gL is not None:
        first = first + gL.narrow(-2, 0, k).tril(-1)
        rest = gL.narrow(-2, k, m - k)
    else:
        rest = first.new_zeros((*first._shape[:-2], m - k, first._shape[-1]))
    return P @ TRIANGULAR.call((H(U), _cat.call(((first, rest), -2)), False, False, False))


def _lu_factor_grad(grads: Any, LU: Any, pivots: Any) -> Any:
    g = grads[0]
    P, L, U = UNPACK.call((LU, pivots, True, True))
    k = min(LU._shape[-2:])
    return _plu_backward(g.narrow(-1, 0, k).tril(-1), g.narrow(-2, 0, k).triu(), P, L, U)


LU_FACTOR: Op = op("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
                   "-> (Tensor LU, Tensor pivots, Tensor info)",
                   meta=KeptRule(_lu_meta), out=True, nondiff=("pivots", "info"),
                   grad=dict(A=_lu_factor_grad), function=False, method=False)
composite("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor "
          # PyTorch asks for the check by default and does not make it; what failed is said by `info`.
          "info)", lambda self, pivot, check_errors: LU_FACTOR.call((self, pivot, False)), method=False)


def _unpack_meta(LU_data: Any, LU_pivots: Any, unpack_data: bool, unpack_pivots: bool) -> list[Spec]:
    if LU_pivots._dtype is not int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                           "Note: this function is intended to be used with the output produced by "
                           "torch.linalg.lu_factor")
    check_matrix(LU_data, "torch.lu_unpack", "LU_data")
    m, n = LU_data._shape[-2:]
    k, b = min(m, n), _batch(LU_data)
    if unpack_pivots and LU_pivots._shape != (*b, k):
        raise RuntimeError(f"torch.lu_unpack: LU_pivots is expected to have the shape {[*b, k]}, got "
                           f"{list(LU_pivots._shape)}")
    none = like(LU_data, (0,))
    return [like(LU_data, (*b, m, m)) if unpack_pivots else none,
            like(LU_data, (*b, m, k)) if unpack_data else none,
            like(LU_data, (*b, k, n)) if unpack_data else none]


def _unpack_grad(grads: Any, LU_data_shape: Ints) -> Any:
    m, n = LU_data_shape[-2:]
    k = min(m, n)
    gL, gU = grads[1].tril(-1), grads[2].triu()
    if m > k:
        gU = _cat.call(((gU, gU.new_zeros((*gU._shape[:-2], m - k, n))), -2))
    if n > k:
        gL = _cat.call(((gL, gL.new_zeros((*gL._shape[:-2], m, n - k))), -1))
    return gL + gU


UNPACK: Op = op("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
                "-> (Tensor P, Tensor L, Tensor U)", meta=KeptRule(_unpack_meta), out=True, nondiff=("P",),
                grad=dict(LU_data=_unpack_grad), method=False)


# -- determinants -------------------------------------------------------------------------------------------------
def _det_meta(A: Any) -> Spec:
    check_square(A, "linalg.det")
    check_float(A, "linalg.det", "lu_cpu")
    return like(A, _batch(A))


def _det_grad(g: Any, A: Any, result: Any) -> Any:
    if differentiated():
        return (g * result.conj()).unsqueeze(-1).unsqueeze(-1) * H(INV.call((A, False))[0])
    # Products of all singular values but one: right for singular matrices too.
    U, S, Vh = SVD.call((A, False, True, None))
    n = S._shape[-1]
    parts = [S.narrow(-1, 0, i).prod(-1) * S.narrow(-1, i + 1, n - i - 1).prod(-1) for i in range(n)]
    if not parts:
        return A * 0
    left_out = registry.get("stack").call((tuple(parts), -1))
    turn = DET.call((U,)) * DET.call((Vh,))
    return (g * turn.conj()).unsqueeze(-1).unsqueeze(-1) * ((U * left_out.unsqueeze(-2)) @ Vh)


DET: Op = op("linalg_det(Tensor A) -> Tensor",
             meta=KeptRule(_det_meta), out=True, grad=dict(A=_det_grad), function=False,
             method=False)


def _slogdet_meta(A: Any) -> list[Spec]:
    check_square(A, "linalg.slogdet")
    check_float(A, "linalg.slogdet")
    return [like(A, _batch(A)), like(A, _batch(A), A._dtype.to_real() if A._dtype.is_complex else None)]


def _slogdet_grad(grads: Any, A: Any, sign: Any) -> Any:
    d = grads[1]
    if A._dtype.is_complex:
        d = d - (grads[0].conj() * sign).imag * 1j
    return d.unsqueeze(-1).unsqueeze(-1) * H(INV.call((A, False))[0])


SLOGDET: Op = op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", meta=KeptRule(_slogdet_meta), out=True,
                 grad=dict(A=_slogdet_grad), function=False, method=False)


# -- inverse and solving ------------------------------------------------------------------------------------------
def _inv_meta(A: Any, check_errors: bool) -> list[Spec]:
    check_square(A, "linalg.inv")
    check_float(A, "linalg.inv")
    return [columns(A, A._shape), like(A, _batch(A), int32)]


INV: Op = op("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
             meta=KeptRule(_inv_meta),
             out=True, nondiff=("info",), function=False, method=False,
             grad=dict(A=lambda g, inverse: -(H(inverse) @ (g @ H(inverse)))))


def is_vector(A: Any, B: Any) -> bool:
    """Whether B is a batch of vectors, as NumPy decides it."""
    return bool(B.dim() == 1 or (A.dim() - 1 == B.dim() and A._shape[:-1] == B._shape))


def _solve_meta(A: Any, B: Any, left: bool, check_errors: bool) -> list[Spec]:
    check_float(A, "linalg.solve")
    check_square(A, "linalg.solve")
    if A._dtype is not B._dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, but found A of type "
                           f"{A._dtype.scalar_name} and B of type {B._dtype.scalar_name} instead")
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
                           "In this case linalg.solve is equivalent to B / A.squeeze(-1)")
    n = A._shape[-1]
    shape = (*B._shape, 1) if vector else B._shape
    if len(shape) < 2:
        raise RuntimeError("linalg.solve: The input tensor B must have at least 2 dimensions.")
    if shape[-2 if left else -1] != n:
        raise RuntimeError("linalg.solve: Incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {shape[-2]}x{shape[-1]})")
    b = broadcast_shapes(_batch(A), tuple(shape[:-2]))
    full = (*b, *shape[-2:])
    if left:
        result = columns(A, full)
    else:
        result = like(A, full)
    if vector:
        result = columns(A, full[:-1]) if len(full) > 2 else like(A, full[:-1])
    return [result, columns(A, (*b, n, n)), like(A, (*b, n), int32), like(A, _batch(A), int32)]


def _solve_grads(grads: Any, A: Any, B: Any, result: Any, left: bool, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    vector = is_vector(A, B)
    g, x = (t.unsqueeze(-1) if vector else t for t in (grads[0], result))
    gB = SOLVE.call((H(A), g, left, False))[0]
    gA = None
    if needs[0]:
        gA = -(gB @ H(x)) if left else -(H(x) @ gB)
    return gA, gB.squeeze(-1) if vector else gB


SOLVE: Op = op("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
               "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)", meta=KeptRule(_solve_meta),
               method=False, nondiff=("LU", "pivots", "info"), node="LinalgSolveExBackward0",
               grad={("A", "B"): _solve_grads})


def _triangular_meta(self: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> Spec:
    check_square(self, "linalg.solve_triangular")
    check_matrix(B, "linalg.solve_triangular", "B")
    if self._dtype is not B._dtype:
        raise RuntimeError(f"linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type "
                           f"{self._dtype.scalar_name} and B of type {B._dtype.scalar_name} instead")
    check_float(self, "linalg.solve_triangular", "triangular_solve_cpu")
    n = self._shape[-1]
    if B._shape[-2 if left else -1] != n:
        raise RuntimeError("linalg.solve_triangular: Incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {B._shape[-2]}x{B._shape[-1]})")
    return columns(B, (*broadcast_shapes(_batch(self), _batch(B)), *B._shape[-2:]))


def _triangular_grads(g: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool,
                      needs: tuple[bool, bool]) -> tuple[Any, Any]:
    gB = TRIANGULAR.call((H(self), g, not upper, left, unitriangular))
    gA = None
    if needs[0]:
        full = -(gB @ H(result)) if left else -(H(result) @ gB)
        gA = full.triu(1 if unitriangular else 0) if upper else full.tril(-1 if unitriangular else 0)
    return gA, gB


TRIANGULAR: Op = op("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
                    "unitriangular=False) -> Tensor",
                    meta=KeptRule(_triangular_meta), out=True, function=False, method=False,
                    grad={("self", "B"): _triangular_grads})


# -- Cholesky -----------------------------------------------------------------------------------------------------
def _cholesky_meta(self: Any, upper: bool, check_errors: bool) -> list[Spec]:
    check_square(self, "linalg.cholesky")
    check_float(self, "linalg.cholesky", "cholesky_cpu")
    return [columns(self, self._shape), like(self, _batch(self), int32)]


def _cholesky_grad(g: Any, L: Any, upper: bool) -> Any:
    if upper:
        L, g = H(L), H(g)
    phi = (H(L) @ g).tril()
    phi = (phi + H(phi.tril(-1))) * 0.5
    out = TRIANGULAR.call((H(L), phi, True, True, False))
    return TRIANGULAR.call((L, out, False, False, False))


CHOLESKY: Op = op("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) "
                  "-> (Tensor L, Tensor info)",
                  meta=KeptRule(_cholesky_meta), out=True, nondiff=("info",), function=False,
                  method=False, grad=dict(self=_cholesky_grad))


# -- QR -----------------------------------------------------------------------------------------------------------
def _qr_meta(A: Any, mode: str) -> list[Spec]:
    check_matrix(A, "linalg.qr")
    check_float(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    m, n = A._shape[-2:]
    k, b = min(m, n), _batch(A)
    wide = m if mode == "complete" else k
    return [like(A, (0,)) if mode == "r" else columns(A, (*b, m, wide)), columns(A, (*b, wide, n))]


def _square_qr(gQ: Any, gR: Any, Q: Any, R: Any) -> Any:
    inner = (gR @ H(R) - H(Q) @ gQ).triu()
    both = inner + H(inner)
    both = both - _diag_embed.call((both.diagonal(0, -2, -1) * 0.5, 0, -2, -1))
    return TRIANGULAR.call((H(R), gQ + Q @ both, False, False, False))


def _qr_grad(grads: Any, A: Any, Q: Any, R: Any, mode: str) -> Any:
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                           "linalg.qr(A, mode='reduced') if you are going to require gradients.")
    m, n = A._shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    gQ, gR = grads
    if m >= n:
        return _square_qr(gQ, gR, Q, R)
    # The first columns are factored; the others are Q times what stands over them.
    over = gR.narrow(-1, m, n - m)
    first = _square_qr(gQ + A.narrow(-1, m, n - m) @ H(over), gR.narrow(-1, 0, m), Q, R.narrow(-1, 0, m))
    return _cat.call(((first, Q @ over), -1))


QR: Op = op("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", meta=KeptRule(_qr_meta), out=True,
            grad=dict(A=_qr_grad), function=False, method=False)


# -- eigenvalues --------------------------------------------------------------------------------------------------
def _eigh_meta(A: Any, UPLO: str, compute_v: bool) -> list[Spec]:
    check_square(A, "linalg.eigh")
    if not A._dtype.is_inexact or A._dtype.itemsize < 4:
        raise NotImplementedError(f"\"linalg_eigh_cpu\" not implemented for '{A._dtype.scalar_name}'")
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return [like(A, A._shape[:-1], A._dtype.to_real() if A._dtype.is_complex else None),
            columns(A, A._shape) if compute_v else like(A, (0,))]


def _or_zeros(pairs: tuple[tuple[Any, Any], ...]) -> tuple[Any, ...]:
    """The gradients that arrived, and zeros for the others."""
    return tuple(like.new_zeros(like._shape) if g is None else g for g, like in pairs)


def _differences(values: Any) -> Any:
    """values[j] - values[i] at (i, j), and 1 on the diagonal."""
    e = values.unsqueeze(-2) - values.unsqueeze(-1)
    return e + _diag_embed.call((values.detach() * 0 + 1, 0, -2, -1))


# Whose values nobody may ask for: PyTorch leaves the question out for them too.
_UNREAD = BATCHED | TORCH_DISPATCH | PYTHON


def _check_phases(term: Any, message: str) -> None:
    """Complex vectors are free up to a phase; a loss that depends on it has no gradient. Where it does not, `term` is
    zero."""
    if term._device.type == "meta" or term._keys & _UNREAD:
        return
    # PyTorch's bound; NaN counts as dependent.
    if not bool((term.detach().abs() <= 1e-2).all()):
        raise RuntimeError(message)


_EIGENVECTORS = ("The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified "
                 "loss function depends on this quantity, so it is ill-defined.")


def _eigh_grad(arrived: Any, eigenvalues: Any, eigenvectors: Any, compute_v: bool) -> Any:
    if not compute_v:
        raise RuntimeError("linalg_eigh_backward: torch.linalg.eigvalsh has no eigenvectors to differentiate with")
    gL, gV = arrived
    (gL,) = _or_zeros(((gL, eigenvalues),))
    if gV is None:
        return (eigenvectors * gL.unsqueeze(-2)) @ H(eigenvectors)
    inner = H(eigenvectors) @ gV
    if eigenvectors._dtype.is_complex:
        _check_phases(inner.diagonal(0, -2, -1).imag, f"linalg_eigh_backward: {_EIGENVECTORS}")
    inner = inner / _differences(eigenvalues)
    inner = inner - _diag_embed.call((inner.diagonal(0, -2, -1) - gL, 0, -2, -1))
    # One triangle stands for both: the gradient is Hermitian, as the matrix is.
    return eigenvectors @ ((inner + H(inner)) / 2) @ H(eigenvectors)


EIGH: Op = op("_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
              meta=KeptRule(_eigh_meta), method=False, node="LinalgEighBackward0", grad=dict(A=_eigh_grad))


def _eig_meta(self: Any) -> list[Spec]:
    check_square(self, "linalg.eig")
    check_float(self, "linalg.eig")
    dt = self._dtype if self._dtype.is_complex else self._dtype.to_complex()
    V = like if self._device.type == "meta" else columns
    return [like(self, self._shape[:-1], dt), V(self, self._shape, dt)]


def _eig_grad(arrived: Any, self_dtype: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    gL, gV = arrived
    V = eigenvectors
    (gL,) = _or_zeros(((gL, eigenvalues),))
    if gV is None:
        inner = _diag_embed.call((gL, 0, -2, -1))
    else:
        inner = H(V) @ gV
        _check_phases(inner.diagonal(0, -2, -1).imag, f"linalg_eig_backward: {_EIGENVECTORS}")
        norm = _diag_embed.call((inner.diagonal(0, -2, -1).real.to(V._dtype), 0, -2, -1))
        inner = (inner - H(V) @ V @ norm) / _differences(eigenvalues.conj())
        inner = inner - _diag_embed.call((inner.diagonal(0, -2, -1) - gL, 0, -2, -1))
    out = SOLVE.call((H(V), inner @ H(V), True, False))[0]
    return out if self_dtype.is_complex else out.real


EIG: Op = op("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", meta=KeptRule(_eig_meta), out=True,
             function=False, method=False, grad=dict(self=_eig_grad))


# -- singular values ----------------------------------------------------------------------------------------------
def _svd_meta(A: Any, full_matrices: bool, compute_uv: bool, driver: str | None) -> list[Spec]:
    check_matrix(A, "linalg.svd")
    check_float(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                           "cuSOLVER backend.")
    m, n = A._shape[-2:]
    k, b = min(m, n), _batch(A)
    real = A._dtype.to_real() if A._dtype.is_complex else A._dtype
    if not compute_uv:
        return [like(A, (0,)), like(A, (*b, k), real), like(A, (0,))]
    # PyTorch's meta device lays out V as other libraries than LAPACK would.
    V = like if A._device.type == "meta" else columns
    return [columns(A, (*b, m, m if full_matrices else k)), like(A, (*b, k), real),
            V(A, (*b, n if full_matrices else k, n))]


def _skew(x: Any) -> Any:
    return x - H(x)


_SINGULAR_VECTORS = ("svd_backward: The singular vectors in the complex case are specified up to multiplication by "
                     "e^{i phi}. The specified loss function depends on this phase term, making it ill-defined.")


def _svd_grad(arrived: Any, A: Any, U: Any, S: Any, Vh: Any, full_matrices: bool, compute_uv: bool) -> Any:
    gU, gS, gVh = arrived
    m, n = A._shape[-2:]
    k = min(m, n)
    (gS,) = _or_zeros(((gS, S),))
    if gU is None and gVh is None:
        # The values alone may be differentiated where some of them are equal.
        if not compute_uv:
            U, _, Vh = SVD.call((A, False, True, None))
        return (U.narrow(-1, 0, k) * gS.unsqueeze(-2).to(U._dtype)) @ Vh.narrow(-2, 0, k)
    gU, gVh = _or_zeros(((gU, U), (gVh, Vh)))
    U, gU = U.narrow(-1, 0, k), gU.narrow(-1, 0, k)
    Vh, gVh = Vh.narrow(-2, 0, k), gVh.narrow(-2, 0, k)
    left, right = _skew(H(U) @ gU), _skew(Vh @ H(gVh))
    if A._dtype.is_complex:
        _check_phases((left.diagonal(0, -2, -1) + right.diagonal(0, -2, -1)).imag, _SINGULAR_VECTORS)
    inner = (left * S.unsqueeze(-2) + S.unsqueeze(-1) * right) / _differences(S * S)
    inner = inner + _diag_embed.call((gS.to(inner._dtype), 0, -2, -1))
    if A._dtype.is_complex:
        inner = inner + _diag_embed.call((left.diagonal(0, -2, -1) / (S * 2), 0, -2, -1))
    out = U @ inner @ Vh
    if m > k:
        scaled = gU / S.unsqueeze(-2)
        out = out + (scaled - U @ (H(U) @ scaled)) @ Vh
    if n > k:
        scaled = gVh / S.unsqueeze(-1)
        out = out + U @ (scaled - (scaled @ H(Vh)) @ Vh)
    return out


SVD: Op = op("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
             "-> (Tensor U, Tensor S, Tensor Vh)", meta=KeptRule(_svd_meta), method=False,
             node="LinalgSvdBackward0", grad=dict(A=_svd_grad))


# -- exponential --------------------------------------------------------------------------------------------------
def _exp_meta(self: Any) -> Spec:
    check_square(self, "linalg.matrix_exp")
    if not self._dtype.is_inexact:
        raise RuntimeError("linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
                           f"{self._dtype.scalar_name}")
    return like(self)


def _exp_grad(g: Any, self: Any) -> Any:
    """The upper right block of the exponential of [[A^H, g], [0, A^H]]."""
    a = H(self)
    n = a._shape[-1]
    top = _cat.call(((a, g), -1))
    bottom = _cat.call(((a * 0, a), -1))
    whole = EXP.call((_cat.call(((top, bottom), -2)),))
    return whole.narrow(-2, 0, n).narrow(-1, n, n)


EXP: Op = op("linalg_matrix_exp(Tensor self) -> Tensor", meta=KeptRule(_exp_meta), function=False, method=False,
             grad=dict(self=_exp_grad))


# -- least squares and pseudo-inverse -------------------------------------------------------------------------------
def pinv_grad(g: Any, P: Any, A: Any) -> Any:
    """The gradient of P = pinv(A)."""
    if A._shape[-2] <= A._shape[-1]:
        k = H(g) @ P
        kp = k @ H(P)
        return -H(P @ k) + kp - (A @ P) @ kp + (H(P) @ P) @ (H(g) - k @ A)
    k = P @ H(g)
    pk = H(P) @ k
    return -H(k @ P) + ((H(g) - A @ k) @ P) @ H(P) + pk - (pk @ P) @ A


def _lstsq_meta(self: Any, b: Any, rcond: float | None, driver: str | None) -> list[Spec]:
    if self.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if not 0 <= self.dim() - b.dim() <= 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                           "other.dim()) <= 1")
    if self._dtype is not b._dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{self._dtype.scalar_name} and other's dtype {b._dtype.scalar_name}")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = self.dim() - 1 == b.dim() and self._shape[:-1] == b._shape
    shape = (*b._shape, 1) if vector else b._shape
    m, n = self._shape[-2:]
    if len(shape) < 2 or shape[-2] != m:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match "
                           f"other.size({-1 if b.dim() == 1 else -2})")
    if self._dtype.name not in ("float32", "float64", "complex64", "complex128"):
        if rcond is None:  # its default asks for the precision of the dtype
            raise RuntimeError("This function doesn't handle types other than float and double")
        raise not_implemented("linalg_lstsq_cpu", self._dtype)
    if self.dim() > len(shape):
        broadcast_shapes(_batch(self), tuple(b._shape[:-1]))  # as many matrices of one column, which must fit
    batch = broadcast_shapes(_batch(self), tuple(shape[:-2]))
    full = (*batch, n, shape[-1])
    # The solution lies in the memory that held the larger right side.
    place = columns(self, (*batch, max(m, n), shape[-1]))
    solution = Spec(full[:-1], place.stride[:-1], self._dtype, self._dtype, self._device) if vector else Spec(
        full, place.stride, self._dtype, self._dtype, self._device)
    real = self._dtype.to_real() if self._dtype.is_complex else self._dtype
    kind = driver or "gelsy"
    from .._dtype import int64

    return [solution, like(self, (*batch, shape[-1]) if m > n and kind in ("gelsd", "gelss", "gels") else (0,), real),
            like(self, (0,) if kind == "gels" else _batch(self), int64),
            like(self, (*_batch(self), min(m, n)) if kind in ("gelsd", "gelss") else (0,), real)]


def _lstsq_grads(grads: Any, self: Any, b: Any, solution: Any, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    vector = self.dim() - 1 == b.dim() and self._shape[:-1] == b._shape
    g, right = (t.unsqueeze(-1) if vector else t for t in (grads[0], b))
    P = registry.get("linalg_pinv.atol_rtol_tensor").call((self, None, None, False))
    gA = pinv_grad(g @ H(right), P, self) if needs[0] else None
    gB = H(P) @ g
    if numel(grads[1]):
        x = solution.unsqueeze(-1) if vector else solution
        rest = 2 * grads[1].unsqueeze(-2) * (self @ x - right)
        gA = gA + rest @ H(x) if gA is not None else None
        gB = gB - rest
    return gA, gB.squeeze(-1) if vector else gB


LSTSQ: Op = op("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
               "Tensor residuals, Tensor rank, Tensor singular_values)",
               meta=KeptRule(_lstsq_meta), out=True, function=False,
               method=False, nondiff=("rank", "singular_values"), grad={("self", "b"): _lstsq_grads})


# -- Householder reflections ------------------------------------------------------------------------------------------
def _geqrf_meta(self: Any) -> list[Spec]:
    check_matrix(self, "torch.geqrf", "input")
    if self._dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise not_implemented("geqrf_cpu", self._dtype)
    return [columns(self, self._shape), like(self, (*_batch(self), min(self._shape[-2:])))]


op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", meta=KeptRule(_geqrf_meta), out=True, nondifferentiable=True)


# -- with a Cholesky factor -------------------------------------------------------------------------------------------
def _factor_grad(common: Any, factor: Any, upper: bool) -> Any:
    common = common + H(common)
    return -(factor @ common) if upper else -(common @ factor)


def _cholesky_solve_meta(self: Any, input2: Any, upper: bool) -> Spec:
    if self.dim() < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {self.dim()} dimensions instead")
    if input2.dim() < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {input2.dim()} dimensions instead")
    check_square(input2, "cholesky_solve", "A")
    check_float(self, "cholesky_solve", "cholesky_solve_cpu")
    if input2._shape[-1] != self._shape[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2._shape[-1]} by "
                           f"{input2._shape[-1]} but each b matrix is {self._shape[-2]} by {self._shape[-1]}")
    return columns(self, (*broadcast_shapes(_batch(self), _batch(input2)), *self._shape[-2:]))


def _cholesky_solve(self: Any, input2: Any, upper: bool) -> Any:
    L = H(input2) if upper else input2
    y = TRIANGULAR.call((L, self, False, True, False))
    return TRIANGULAR.call((H(L), y, True, True, False))


def _cholesky_solve_grads(g: Any, input2: Any, result: Any, upper: bool, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    gB = CHOLESKY_SOLVE.call((g, input2, upper))
    return gB, _factor_grad(gB @ H(result), input2, upper) if needs[1] else None


CHOLESKY_SOLVE: Op = op("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
                        meta=KeptRule(_cholesky_solve_meta), out=True, kernel=_cholesky_solve,
                        grad={("self", "input2"): _cholesky_solve_grads})


def _cholesky_inverse_meta(self: Any, upper: bool) -> Spec:
    check_square(self, "cholesky_inverse")
    check_float(self, "cholesky_inverse", "cholesky_inverse_out_cpu")
    return columns(self, self._shape)


def _cholesky_inverse(self: Any, upper: bool) -> Any:
    n = self._shape[-1]
    eye = registry.get("eye").call((n, n, self._dtype, None, self._device, None))
    return _cholesky_solve(eye.expand(self._shape), self, upper)


op("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", meta=KeptRule(_cholesky_inverse_meta), out=True,
   kernel=_cholesky_inverse,
   grad=dict(self=lambda g, self, result, upper: _factor_grad(result @ g @ result, self, upper)))
