"""`torch._numpy.linalg`: linear algebra by NumPy's names.

Invariant: whole numbers and half precision are computed in a dtype that decompositions have; a failed one is NumPy's
`LinAlgError`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ._dtypes import default_dtypes, promote
from ._normalizations import ArrayLike, OutArray, SequenceOfArrays, normalizer
from ._util import cast_if_needed


class LinAlgError(Exception):
    """A decomposition that has no result."""


def linalg_errors(func: Callable[..., Any]) -> Any:
    """A function whose failed decompositions are `LinAlgError`."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except torch._C._LinAlgError as error:
            raise LinAlgError(*error.args) from None

    return wrapped


def _floating(a: torch.Tensor) -> Any:
    if a.dtype is torch.float16:
        return a.to(torch.float32)
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return a
    return a.to(default_dtypes().float_dtype)


def _both(a: torch.Tensor, b: torch.Tensor) -> tuple[Any, Any]:
    wanted = promote(a.dtype, b.dtype)
    if not (wanted.is_floating_point or wanted.is_complex):
        wanted = default_dtypes().float_dtype
    return cast_if_needed(a, wanted), cast_if_needed(b, wanted)


# -- products and powers ----------------------------------------------------------------------------------------------
@normalizer
@linalg_errors
def matrix_power(a: ArrayLike, n: Any) -> Any:
    """A matrix times itself."""
    return torch.linalg.matrix_power(_floating(a), n)


@normalizer
@linalg_errors
def multi_dot(inputs: SequenceOfArrays, *, out: OutArray | None = None) -> Any:
    """The product of several matrices, in the order that costs least."""
    wanted = inputs[0].dtype
    for t in inputs:
        wanted = promote(wanted, t.dtype)
    return torch.linalg.multi_dot([cast_if_needed(t, wanted) for t in inputs])


# -- equations --------------------------------------------------------------------------------------------------------
@normalizer
@linalg_errors
def solve(a: ArrayLike, b: ArrayLike) -> Any:
    """The x of `a x = b`."""
    return torch.linalg.solve(*_both(a, b))


@normalizer
@linalg_errors
def lstsq(a: ArrayLike, b: ArrayLike, rcond: Any = None) -> Any:
    """The x for which `a x` is nearest to b."""
    a, b = _both(a, b)
    # Only this driver looks at `rcond`.
    return torch.linalg.lstsq(a, b, rcond=None if rcond is None or rcond == -1 else rcond, driver="gelsd")


@normalizer
@linalg_errors
def inv(a: ArrayLike) -> Any:
    """The inverse."""
    return torch.linalg.inv(_floating(a))


@normalizer
@linalg_errors
def pinv(a: ArrayLike, rcond: Any = 1e-15, hermitian: Any = False) -> Any:
    """The pseudoinverse."""
    return torch.linalg.pinv(_floating(a), rtol=rcond, hermitian=hermitian)


@normalizer
@linalg_errors
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Any:
    """The x of `tensordot(a, x) = b`."""
    return torch.linalg.tensorsolve(*_both(a, b), dims=axes)


@normalizer
@linalg_errors
def tensorinv(a: ArrayLike, ind: Any = 2) -> Any:
    """The inverse with respect to `tensordot`."""
    return torch.linalg.tensorinv(_floating(a), ind=ind)


# -- determinants, norms, ranks ---------------------------------------------------------------------------------------
@normalizer
@linalg_errors
def det(a: ArrayLike) -> Any:
    """The determinant."""
    return torch.linalg.det(_floating(a))


@normalizer
@linalg_errors
def slogdet(a: ArrayLike) -> Any:
    """Sign and logarithm of the determinant."""
    return torch.linalg.slogdet(_floating(a))


@normalizer
@linalg_errors
def cond(x: ArrayLike, p: Any = None) -> Any:
    """The condition number."""
    x = _floating(x)
    if x.numel() == 0 and math.prod(x.shape[-2:]) == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    result = torch.linalg.cond(x, p=p)
    # A matrix that holds no NaN has no NaN for a condition, but infinity.
    return torch.where(torch.isnan(result), float("inf"), result)


@normalizer
@linalg_errors
def matrix_rank(a: ArrayLike, tol: Any = None, hermitian: Any = False) -> Any:
    """How many singular values are not zero."""
    a = _floating(a)
    if a.dim() < 2:
        return int((a != 0).any())
    if tol is None:
        rtol = a.shape[-2:].numel() and max(a.shape[-2:]) * torch.finfo(a.dtype).eps
        return torch.linalg.matrix_rank(a, atol=0.0, rtol=rtol, hermitian=hermitian)
    from ._ndarray import ndarray

    bound = tol.tensor if isinstance(tol, ndarray) else tol
    return torch.linalg.matrix_rank(a, atol=bound, rtol=0, hermitian=hermitian)


@normalizer
@linalg_errors
def norm(x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """The norm of vectors or matrices."""
    return torch.linalg.norm(_floating(x), ord=ord, dim=axis, keepdim=keepdims)


# -- decompositions ---------------------------------------------------------------------------------------------------
@normalizer
@linalg_errors
def cholesky(a: ArrayLike) -> Any:
    """Cholesky's decomposition."""
    return torch.linalg.cholesky(_floating(a))


@normalizer
@linalg_errors
def qr(a: ArrayLike, mode: Any = "reduced") -> Any:
    """The decomposition into an orthogonal and a triangular matrix."""
    result = torch.linalg.qr(_floating(a), mode=mode)
    # NumPy gives the triangular one alone.
    return result.R if mode == "r" else result


@normalizer
@linalg_errors
def svd(a: ArrayLike, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """The singular value decomposition."""
    a = _floating(a)
    return torch.linalg.svd(a, full_matrices=full_matrices) if compute_uv else torch.linalg.svdvals(a)


def _real_where_possible(*tensors: torch.Tensor) -> tuple[Any, ...]:
    if all(t.is_complex() and bool((t.imag == 0).all()) for t in tensors):
        return tuple(t.real for t in tensors)
    return tensors


@normalizer
@linalg_errors
def eig(a: ArrayLike) -> Any:
    """Eigenvalues and eigenvectors."""
    a = _floating(a)
    values, vectors = torch.linalg.eig(a)
    return _real_where_possible(values, vectors) if not a.is_complex() else (values, vectors)


@normalizer
@linalg_errors
def eigh(a: ArrayLike, UPLO: Any = "L") -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return torch.linalg.eigh(_floating(a), UPLO=UPLO)


@normalizer
@linalg_errors
def eigvals(a: ArrayLike) -> Any:
    """Eigenvalues."""
    a = _floating(a)
    values = torch.linalg.eigvals(a)
    return _real_where_possible(values)[0] if not a.is_complex() else values


@normalizer
@linalg_errors
def eigvalsh(a: ArrayLike, UPLO: Any = "L") -> Any:
    """Eigenvalues of a Hermitian matrix."""
    return torch.linalg.eigvalsh(_floating(a), UPLO=UPLO)


__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "tensorinv",
    "tensorsolve",
]
