"""Linear algebra: LAPACK through SciPy and NumPy, one matrix of a batch after the other. Regular matrices
of floats are factored by the native module: a whole batch of small ones in one call, large ones in blocks.

Invariant: LAPACK's `info` is what is reported for a matrix; nothing raises unless the caller asked for checks.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, nan, prod
from typing import Any, Final

from .... import _native
from ...._dtype import int32
from ...._ops.linalg import LinAlgError, check_info, is_vector
from ...._tensor_base import TensorBase, is_contiguous, numel
from ..blas import share_threads
from ..numpy_view import np_view
from .dense import deliver, dense, target

_reduce: Final[Any] = _native.reduce
_item: Final[Any] = _native.item
_SUM: Final = _native.SUM

# NumPy allows for 64, its own counted.
_MOST_BATCHES = 32


# By names and dtype.
_FOUND: Final[dict[Any, Any]] = {}


def lapack(names: tuple[str, ...], array: Any) -> Any:
    """LAPACK's functions of these names for the dtype of an array."""
    share_threads()
    key = (names, array.dtype.char)
    found = _FOUND.get(key)
    if found is None:
        from scipy.linalg import get_lapack_funcs

        found = _FOUND[key] = get_lapack_funcs(names, (array,))
    return found


def batched(function: Any, a: Any, *args: Any) -> Any:
    """`function(a, *args)` of NumPy for the last two dimensions; it allows for fewer others than a tensor may have."""
    share_threads()
    if a.ndim <= _MOST_BATCHES:
        return function(a, *args)
    batch = a.shape[:-2]
    found = function(a.reshape((prod(batch), *a.shape[-2:])), *args)
    if not isinstance(found, tuple):
        return found.reshape((*batch, *found.shape[1:]))
    return tuple([r.reshape((*batch, *r.shape[1:])) for r in found])


def places(batch: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Where the matrices of a batch are."""
    if not batch:
        return ((),)
    import numpy

    return numpy.ndindex(*batch)


# -- matrices of floats -----------------------------------------------------------------------------------------------
# Larger ones are factored in blocks.
_MOST_SMALL = 64


def _native_square(t: TensorBase) -> bool:
    """Whether the native module knows matrices like these."""
    n = t._shape[-1]
    return t._dtype.name in ("float32", "float64") and t._shape[-2] == n and n > 0 and numel(t) > 0


def _sized(name: str, t: TensorBase) -> Any:
    return getattr(_native, f"{name}_small" if t._shape[-1] <= _MOST_SMALL else f"{name}_blocked")


def _head(t: TensorBase) -> tuple[int, int, int]:
    """How many matrices, their rows, the dtype."""
    n = t._shape[-1]
    return int(numel(t)) // (n * n), n, t._dtype.code


def _place(t: TensorBase) -> tuple[Any, int]:
    return t._storage, int(t._offset)


def _written(out: TensorBase) -> TensorBase:
    """Row-major memory of a result."""
    return target(out, out._dtype)


def _no_failure(info: TensorBase) -> None:
    """LAPACK's answer where nothing went wrong."""
    _native.fill(info._storage, int(info._offset), info._stride, info._dtype.code, info._shape, 0)


def _sums_up(t: TensorBase) -> bool:
    """Whether the sum of all elements is finite; then so are they."""
    code = t._dtype.code
    total = _reduce(_SUM, t._storage, int(t._offset), t._stride, code, None, 0, (0,) * len(t._shape), code, t._shape,
                    code, 1)
    return isfinite(abs(_item(total, 0, code)))


# What `csrc/kernels/orthogonal.cpp` serves.
_MOST_TINY = 32


def _is_float(t: TensorBase) -> bool:
    return t._dtype.name in ("float32", "float64") and numel(t) > 0


def _is_tiny(t: TensorBase) -> bool:
    """Whether these are small matrices of floats."""
    return _is_float(t) and t._shape[-1] <= _MOST_TINY and t._shape[-2] <= _MOST_TINY


def _tiny_head(t: TensorBase) -> tuple[int, int, int, int]:
    """How many matrices, their rows and columns, the dtype."""
    m, n = t._shape[-2:]
    return int(numel(t)) // (m * n), m, n, t._dtype.code


def _spectrum(out: TensorBase, A: TensorBase, symmetric: bool) -> bool:
    """Eigenvalues or singular values; False where NumPy is to be asked."""
    if not _is_tiny(A):
        return False
    found = _written(out)
    if not _native.spectrum_small(*_tiny_head(A), *_place(dense(A)), *_place(found), symmetric):
        return False
    deliver(out, found)
    return True


# -- LU -----------------------------------------------------------------------------------------------------------
def lu_factor(outs: Any, A: Any, pivot: bool, check_errors: bool) -> None:
    if _native_square(A):
        x, found = dense(A), [_written(o) for o in outs[:2]]
        if _sized("lu", A)(*_head(A), *_place(x), *_place(found[0]), *_place(found[1])):
            for out, written in zip(outs, found):
                deliver(out, written)
            _no_failure(outs[2])
            return
    LU, pivots, info = (np_view(o) for o in outs)
    a = np_view(A)
    info[...] = 0
    if LU.size == 0:
        return
    (getrf,) = lapack(("getrf",), a)
    for at in places(a.shape[:-2]):
        lu, piv, status = getrf(a[at])
        LU[at], pivots[at], info[at] = lu, piv + 1, status
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", outs[2], "U[{0},{0}] is zero and using it on lu_solve would result in "
                   "a division by zero. If you still want to perform the factorization, consider calling "
                   "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")


def _permutation(pivots: Any, size: int) -> Any:
    """Rows after all exchanges."""
    import numpy

    order = numpy.arange(size)
    for i, p in enumerate(pivots):
        order[[i, p - 1]] = order[[p - 1, i]]
    return order


def lu_unpack(outs: Any, LU_data: Any, LU_pivots: Any, unpack_data: bool, unpack_pivots: bool) -> None:
    if unpack_data and LU_pivots._dtype is int32 and _is_float(LU_data):
        found = [_written(o) for o in outs]
        first = _place(found[0]) if unpack_pivots else (None, 0)
        if _native.unpack_lu(*_tiny_head(LU_data), *_place(dense(LU_data)), *_place(dense(LU_pivots)), *first,
                             *_place(found[1]), *_place(found[2])):
            for out, written in zip(outs, found):
                deliver(out, written)
            return
    import numpy

    lu, pivots = np_view(LU_data), np_view(LU_pivots)
    m, n = lu.shape[-2:]
    k = min(m, n)
    P, L, U = (np_view(o) for o in outs)
    if unpack_pivots and pivots.size and not 1 <= pivots.min() <= pivots.max() <= m:
        raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                           "Did you properly pass the result of lu_factor?")
    if unpack_data:
        L[...] = numpy.tril(lu[..., :k], -1) + numpy.eye(m, k, dtype=lu.dtype)
        U[...] = numpy.triu(lu[..., :k, :])
    if unpack_pivots:
        P[...] = 0
        for at in places(pivots.shape[:-1]):
            P[at][_permutation(pivots[at], m), numpy.arange(m)] = 1


# -- determinants, inverse, solving -----------------------------------------------------------------------------------
def det(out: Any, A: Any) -> None:
    if _native_square(A) and is_contiguous(out) and _sized("det", A)(
            *_head(A), *_place(dense(A)), *_place(out), None, 0):
        return
    import numpy

    a = np_view(A)
    with numpy.errstate(all="ignore"):
        found = batched(numpy.linalg.det, a)
    # LAPACK finds no pivot beside NaN and calls the matrix singular.
    nothing = complex(numpy.nan, numpy.nan) if A._dtype.is_complex else numpy.nan
    np_view(out)[...] = numpy.where(numpy.isnan(a).any((-2, -1)), nothing, found)


def slogdet(outs: Any, A: Any) -> None:
    if _native_square(A) and all(is_contiguous(o) for o in outs) and _sized("det", A)(
            *_head(A), *_place(dense(A)), *_place(outs[0]), *_place(outs[1])):
        return
    import numpy

    a = np_view(A)
    with numpy.errstate(all="ignore"):
        sign, size = batched(numpy.linalg.slogdet, a)
    unknown = numpy.isnan(a).any((-2, -1))
    np_view(outs[0])[...] = numpy.where(unknown, complex(numpy.nan, numpy.nan) if A._dtype.is_complex else 0, sign)
    np_view(outs[1])[...] = numpy.where(unknown, numpy.nan, size)


def inv(outs: Any, A: Any, check_errors: bool) -> None:
    if _native_square(A):
        written = _written(outs[0])
        if _sized("solve", A)(*_head(A), *_place(dense(A)), None, 0, *_place(written), A._shape[-1], None, 0, None,
                              0):
            deliver(outs[0], written)
            _no_failure(outs[1])
            return
    inverse, info = np_view(outs[0]), np_view(outs[1])
    a = np_view(A)
    info[...] = 0
    if a.size == 0:
        return
    getrf, getri = lapack(("getrf", "getri"), a)
    for at in places(a.shape[:-2]):
        lu, piv, status = getrf(a[at])
        if status == 0:
            inverse[at], status = getri(lu, piv)
        else:
            inverse[at] = lu
        info[at] = status
    if check_errors:
        check_info("linalg.inv", outs[1], "The diagonal element {} is zero, the inversion could not be completed "
                   "because the input matrix is singular.")


def _solve_native(outs: Any, A: Any, B: Any) -> bool:
    """Matrices and right sides of one batch."""
    columns = 1 if is_vector(A, B) else B._shape[-1]
    batch = A._shape[:-2]
    sides = B._shape[:-1] if is_vector(A, B) else B._shape[:-2]
    if not _native_square(A) or B._dtype is not A._dtype or sides != batch:
        return False
    found = [_written(o) for o in outs[:3]]
    if not _sized("solve", A)(*_head(A), *_place(dense(A)), *_place(dense(B)), *_place(found[0]), columns,
                              *_place(found[1]), *_place(found[2])):
        return False
    for out, written in zip(outs, found):
        deliver(out, written)
    _no_failure(outs[3])
    return True


def solve(outs: Any, A: Any, B: Any, left: bool, check_errors: bool) -> None:
    if left and _solve_native(outs, A, B):
        return
    import numpy

    result, LU, pivots, info = (np_view(o) for o in outs)
    a, b = np_view(A), np_view(B)
    info[...] = 0
    vector = is_vector(A, B)
    if vector:
        b, result = b[..., None], result[..., None]
    if a.size == 0:
        return
    getrf, getrs = lapack(("getrf", "getrs"), a)
    if result.size == 0:
        return
    batch = result.shape[:-2]
    a_all = numpy.broadcast_to(a, (*batch, *a.shape[-2:]))
    b_all = numpy.broadcast_to(b, (*batch, *b.shape[-2:]))
    states = numpy.zeros(batch, "int32")
    for at in places(batch):
        lu, piv, status = getrf(a_all[at])
        LU[at], pivots[at], states[at] = lu, piv + 1, status
        if status:
            result[at] = numpy.nan
            continue
        x, _ = getrs(lu, piv, b_all[at] if left else b_all[at].T, trans=0 if left else 1)
        result[at] = x if left else x.T
    info[...] = states if states.shape == info.shape else states.reshape((-1, *info.shape)).max(0)
    if check_errors:
        check_info("torch.linalg.solve", outs[3], "The solver failed because the input matrix is singular.")


def solve_triangular(out: Any, self: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> None:
    if left and _native_square(self) and self._shape[:-2] == B._shape[:-2] and numel(B) > 0:
        written = _written(out)
        deliver(written, B)
        _sized("triangular", self)(*_head(self), *_place(dense(self)), *_place(written), B._shape[-1], upper,
                                   unitriangular)
        deliver(out, written)
        return
    import numpy

    result = np_view(out)
    if result.size == 0:
        return
    batch = result.shape[:-2]
    a = numpy.broadcast_to(np_view(self), (*batch, *self._shape[-2:]))
    b = numpy.broadcast_to(np_view(B), (*batch, *B._shape[-2:]))
    (trsm,) = _blas("trsm", a)
    for at in places(batch):
        result[at] = trsm(1.0, a[at], b[at], side=0 if left else 1, lower=0 if upper else 1,
                          diag=1 if unitriangular else 0)


def _blas(name: str, array: Any) -> Any:
    from scipy.linalg import get_blas_funcs

    share_threads()
    return get_blas_funcs((name,), (array,))


# -- factorizations -----------------------------------------------------------------------------------------------
def cholesky(outs: Any, self: Any, upper: bool, check_errors: bool) -> None:
    if _native_square(self):
        # The upper factor of the upper triangle is the lower one of the transposed matrix, transposed.
        given, out = (self.mT, outs[0].mT) if upper else (self, outs[0])
        written = _written(out)
        if _sized("cholesky", self)(*_head(self), *_place(dense(given)), *_place(written)):
            deliver(out, written)
            _no_failure(outs[1])
            return
    import numpy

    L, info = np_view(outs[0]), np_view(outs[1])
    a = np_view(self)
    info[...] = 0
    if a.size == 0:
        return
    (potrf,) = lapack(("potrf",), a)
    for at in places(a.shape[:-2]):
        factor, status = potrf(a[at], lower=0 if upper else 1, clean=1)
        if status == 0:
            # LAPACK's versions differ in whether they notice; the first that is not a number is where it goes wrong.
            unknown = numpy.isnan(numpy.diagonal(factor))
            status = int(numpy.argmax(unknown)) + 1 if unknown.any() else 0
        L[at], info[at] = (numpy.triu(factor) if upper else numpy.tril(factor)), status
    if check_errors:
        check_info("linalg.cholesky", outs[1], "The factorization could not be completed because the input is not "
                   "positive-definite (the leading minor of order {} is not positive-definite).")


def qr(outs: Any, A: Any, mode: str) -> None:
    if _is_float(A):
        Q, R = outs
        r = _written(R)
        m, n = A._shape[-2:]
        found = _written(Q) if mode != "r" else None
        q = (None, 0) if found is None else _place(found)
        kernel: Any = _native.qr_small if _is_tiny(A) else _native.qr_blocked
        if kernel(*_tiny_head(A), *_place(dense(A)), m if mode == "complete" else min(m, n), *q, *_place(r)):
            deliver(R, r)
            if found is not None:
                deliver(Q, found)
            return
    import numpy

    a = np_view(A)
    if mode == "r":
        np_view(outs[1])[...] = batched(numpy.linalg.qr, a, "r")
        return
    kind: Any = mode
    Q, R = batched(numpy.linalg.qr, a, kind)
    np_view(outs[0])[...] = Q
    np_view(outs[1])[...] = R


def _check_numbers(a: Any, name: str, why: str) -> Any:
    """Which matrices are finite; a NaN is refused. LAPACK's iterations need not end for what is not finite."""
    import numpy

    finite = numpy.isfinite(a).all((-2, -1))
    if not finite.all() and numpy.isnan(a).any():
        raise _not_converged(name, why, numpy.isnan(a).any((-2, -1)))
    return finite


def _not_converged(name: str, why: str, failed: Any) -> LinAlgError:
    where = "" if failed.ndim == 0 else f" (Batch element {int(failed.reshape(-1).argmax())}):"
    return LinAlgError(f"linalg.{name}:{where} The algorithm failed to converge because the input matrix {why}.")


def _of_finite(outs: list[Any], function: Any, a: Any, finite: Any) -> None:
    """What `function` finds for each of the finite matrices, and NaN for the others."""
    for out in outs:
        out[...] = nan
    if finite.any():
        for out, value in zip(outs, function(a[finite])):
            out[finite] = value


def eigh(outs: Any, A: Any, UPLO: str, compute_v: bool) -> None:
    lower = UPLO in ("L", "l")
    if not compute_v and _spectrum(outs[0], A if lower else A.mT, True):
        return
    import numpy

    a = np_view(A)
    if a.size == 0:
        return
    if compute_v and a.ndim == 2 and _sums_up(A):
        (evd,) = lapack(("heevd" if a.dtype.kind == "c" else "syevd",), a)
        values, vectors, status = evd(a, compute_v=1, lower=1 if lower else 0)
        if status == 0:
            np_view(outs[0])[...], np_view(outs[1])[...] = values, vectors
            return
    n = a.shape[-1]
    why = "is ill-conditioned or has too many repeated eigenvalues (error code: {})"
    why = why.format(max(1, n - 1 if compute_v else n - 2))
    half = numpy.tril(a) if lower else numpy.triu(a)
    # PyTorch's LAPACK ends with NaN for the smallest matrices, and with vectors for large ones, which it divides.
    may_be_nan = n <= 2 or (compute_v and n > 25)
    finite = numpy.isfinite(half).all((-2, -1)) if may_be_nan else _check_numbers(half, "eigh", why)
    if not finite.all():
        views = [np_view(out) for out in (outs if compute_v else outs[:1])]
        _of_finite(views, lambda each: _eigh_of(each, UPLO, compute_v, why), a, finite)
        return
    for out, value in zip(outs, _eigh_of(a, UPLO, compute_v, why)):
        np_view(out)[...] = value


def _eigh_of(a: Any, UPLO: Any, compute_v: bool, why: str) -> Any:
    import numpy

    try:
        return batched(numpy.linalg.eigh, a, UPLO) if compute_v else (batched(numpy.linalg.eigvalsh, a, UPLO),)
    except numpy.linalg.LinAlgError:
        raise _not_converged("eigh", why, numpy.zeros((), bool)) from None


def _eig_one(a: Any) -> tuple[Any, Any]:
    """Of one real matrix: LAPACK's vectors of a conjugate pair are its real and imaginary part."""
    (geev,) = lapack(("geev",), a)
    real, imaginary, _, vectors, status = geev(a, compute_vl=0, compute_vr=1)
    if status:
        raise LinAlgError(
            f"linalg.eig: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            f"repeated eigenvalues (error code: {status}).")
    if not imaginary.any():
        return real, vectors
    whole = vectors + 0j
    for i in (imaginary > 0).nonzero()[0]:
        whole[:, i] = vectors[:, i] + 1j * vectors[:, i + 1]
        whole[:, i + 1] = whole[:, i].conj()
    return real + 1j * imaginary, whole


def eig(outs: Any, self: Any) -> None:
    import numpy

    a = np_view(self)
    if a.size == 0:
        return
    if not numpy.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = np_view(outs[0]), np_view(outs[1])
    if a.dtype.kind == "f":
        # One by one, so that a matrix in a batch has the vectors that it has alone.
        for at in places(a.shape[:-2]):
            values[at], vectors[at] = _eig_one(a[at])
        return
    values[...], vectors[...] = batched(numpy.linalg.eig, a)


def _svd_each(outs: Any, a: Any, full_matrices: bool, compute_uv: bool) -> bool:
    """One by one, so that a matrix in a batch has the vectors that it has alone; False if one does not converge."""
    (gesdd,) = lapack(("gesdd",), a)
    left, values, right = np_view(outs[0]), np_view(outs[1]), np_view(outs[2])
    for at in places(a.shape[:-2]):
        U, S, Vh, status = gesdd(a[at], compute_uv=compute_uv, full_matrices=full_matrices)
        if status != 0:
            return False
        values[at] = S
        if compute_uv:
            left[at], right[at] = U, Vh
    return True


def svd(outs: Any, A: Any, full_matrices: bool, compute_uv: bool, driver: str | None) -> None:
    if not compute_uv and _spectrum(outs[1], A, False):
        return
    a = np_view(A)
    if a.size and _sums_up(A) and _svd_each(outs, a, full_matrices, compute_uv):
        return
    finite = _check_numbers(a, "svd", "contained non-finite values")
    views = [np_view(out) for out in (outs if compute_uv else outs[1:2])]
    if not finite.all():
        _of_finite(views, lambda each: _svd_of(each, full_matrices, compute_uv), a, finite)
        return
    for out, value in zip(views, _svd_of(a, full_matrices, compute_uv)):
        out[...] = value


def _svd_of(a: Any, full_matrices: bool, compute_uv: bool) -> Any:
    import numpy

    try:
        if compute_uv:
            return batched(numpy.linalg.svd, a, full_matrices)
        return (batched(numpy.linalg.svd, a, False, False),)
    except numpy.linalg.LinAlgError:
        why = f"is ill-conditioned or has too many repeated singular values (error code: {min(a.shape[-2:]) - 1})"
        raise _not_converged("svd", why, numpy.zeros((), bool)) from None


# Quotients of polynomials that are nearest to the exponential, by degree, and the norms up to which each is good to the
# precision of the result: float32's, and any other's.
_PADE: Final = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    9: (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0, 1.0),
    13: (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
         10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
}
_NORMS: Final = ((3, 1.4e-2), (5, 0.25), (7, 0.95), (9, 2.0), (13, 5.37))
_NARROW_NORMS: Final = ((3, 0.42), (5, 1.88), (7, 3.92))


def _pade(a: Any, degree: int) -> tuple[Any, Any]:
    """The odd and the even part of the polynomial of that degree."""
    import numpy

    b, one = _PADE[degree], numpy.eye(a.shape[-1])
    a2 = a @ a
    if degree == 13:
        a4 = a2 @ a2
        a6 = a4 @ a2
        odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
        return odd, a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    odd, even, power = b[1] * one + b[3] * a2, b[0] * one + b[2] * a2, a2
    for i in range(4, degree, 2):
        power = power @ a2
        odd += b[i + 1] * power
        even += b[i] * power
    return a @ odd, even


def matrix_exp(out: Any, self: Any) -> None:
    import numpy

    share_threads()
    a = np_view(self)
    if not a.size:
        return
    norms = _NORMS if a.dtype.itemsize == (16 if a.dtype.kind == "c" else 8) else _NARROW_NORMS
    a = a.astype("complex128" if a.dtype.kind == "c" else "float64")
    size = numpy.abs(a).sum(-2).max(-1)
    finite = numpy.isfinite(size)
    most = size[finite].max(initial=0.0)
    degree, good = next((row for row in norms if most <= row[1]), norms[-1])
    # Halved until it is small; the result is squared as often.
    halvings = numpy.zeros(size.shape, "int64")
    large = finite & (size > good)
    halvings[large] = numpy.ceil(numpy.log2(size[large] / good))
    with numpy.errstate(all="ignore"):
        odd, even = _pade(a * numpy.ldexp(1.0, -halvings)[..., None, None], degree)
        if numpy.isfinite(odd).all():
            found = numpy.linalg.solve(even - odd, even + odd)
        else:
            found = numpy.full_like(a, numpy.nan)
            fine = numpy.isfinite(odd).all((-2, -1))
            found[fine] = numpy.linalg.solve((even - odd)[fine], (even + odd)[fine])
        for i in range(int(halvings.max(initial=0))):
            more = halvings > i
            found[more] = found[more] @ found[more]
        np_view(out)[...] = found


def _gelsy(a: Any, b: Any, cut: float) -> tuple[Any, int]:
    """The solution of one system, and the rank of its matrix."""
    import numpy

    (gelsy,) = lapack(("gelsy",), a)
    m, n = a.shape
    columns = b.shape[1]
    if m < n:  # the solution lies where the right side was
        b = numpy.concatenate((b, numpy.zeros((n - m, columns), b.dtype)))
    room = 64 * (m + n) + 32 * columns + 3 * n + 1
    _, x, _, rank, _ = gelsy(a, b, numpy.zeros((n, 1), "int32"), cut, room, False, False)
    return x[:n], rank


# Matrices below this condition have full rank whatever the driver; reflections then give the one solution.
_REGULAR: Final = {"float32": 1e4, "float64": 1e10}


def _lstsq_native(outs: Any, A: Any, b: Any, rcond: float | None, driver: str | None) -> bool:
    """Small matrices that are far from singular, and nothing asked for but the solution and the rank."""
    m, n = A._shape[-2:]
    vector = len(A._shape) - 1 == len(b._shape) and A._shape[:-1] == b._shape
    if (not _is_tiny(A) or m < n or driver in ("gelsd", "gelss") or numel(outs[1]) or numel(outs[3]) or numel(b) == 0
            or b._dtype is not A._dtype or (not vector and b._shape[:-1] != A._shape[:-1])
            or (rcond is not None and not 0 <= rcond <= 1 / _REGULAR[A._dtype.name])):
        return False
    x, rank = _written(outs[0]), outs[2]
    if not _native.lstsq_small(*_tiny_head(A), *_place(dense(A)), *_place(dense(b)), *_place(x),
                               1 if vector else b._shape[-1], _REGULAR[A._dtype.name]):
        return False
    deliver(outs[0], x)
    _native.fill(rank._storage, int(rank._offset), rank._stride, rank._dtype.code, rank._shape, n)
    return True


def lstsq(outs: Any, self: Any, b: Any, rcond: float | None, driver: str | None) -> None:
    if _lstsq_native(outs, self, b, rcond, driver):
        return
    import numpy
    from scipy.linalg import lstsq as solve_one

    share_threads()
    solution, residuals, rank, singular = (np_view(o) for o in outs)
    a, right = np_view(self), np_view(b)
    if self.dim() - 1 == b.dim() and self._shape[:-1] == b._shape:
        right, solution = right[..., None], solution[..., None]
    batch = solution.shape[:-2]
    rank[...] = 0
    if solution.size == 0 or a.size == 0:
        solution[...] = 0
        return
    cut = numpy.finfo(a.dtype).eps * max(a.shape[-2:]) if rcond is None else rcond
    # Every driver gives the same solution where there is one; only this one is safe for matrices without full rank.
    kind = driver if driver in ("gelsd", "gelss") else "gelsy"
    known = isfinite(a.sum().real) and isfinite(right.sum().real)
    if not known and not (numpy.isfinite(a).all() and numpy.isfinite(right).all()):
        raise RuntimeError("torch.linalg.lstsq: input tensors should not contain infs or NaNs.")
    if a.ndim == 2 and right.ndim == 2 and kind == "gelsy" and not residuals.size:
        solution[...], rank[...] = _gelsy(a, right, cut)
        return
    a_all = numpy.broadcast_to(a, (*batch, *a.shape[-2:]))
    b_all = numpy.broadcast_to(right, (*batch, *right.shape[-2:]))
    for at in places(batch):
        x, _, r, s = solve_one(a_all[at], b_all[at], cond=cut, lapack_driver=kind)
        solution[at] = x
        if rank.shape == batch:
            rank[at] = r
        if singular.shape[:-1] == batch and singular.size:
            singular[at] = s
        if residuals.shape[:-1] == batch and residuals.size:
            rest = b_all[at] - a_all[at] @ x
            residuals[at] = (rest * rest.conj()).real.sum(0)


def geqrf(outs: Any, self: Any) -> None:
    a, tau = np_view(outs[0]), np_view(outs[1])
    x = np_view(self)
    if x.size == 0:
        return
    (geqrf,) = lapack(("geqrf",), x)
    for at in places(x.shape[:-2]):
        a[at], tau[at] = geqrf(x[at])[:2]
