"""`torch._linalg_utils`: small matrix functions that PyTorch's iterative algorithms are written in."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from . import _removed
from ._tensor_base import TensorBase

matrix_rank, solve, lstsq, eig = _removed.matrix_rank, _removed.solve, _removed.lstsq, _removed.eig
_symeig = _removed.symeig


def is_sparse(A: Any) -> bool:
    """Whether a matrix is sparse, by coordinates."""
    if not isinstance(A, TensorBase):
        raise TypeError(f"expected Tensor but got {type(A)}")
    matrix: Any = A
    return str(matrix.layout) == "torch.sparse_coo"


def get_floating_dtype(A: Any) -> Any:
    """The dtype to compute in: that of a float matrix, else float32."""
    return A.dtype if A.dtype in (torch.float16, torch.float32, torch.float64) else torch.float32


def matmul(A: Any, B: Any) -> Any:
    """A B, where None is the identity."""
    return B if A is None else A @ B


def bform(X: Any, A: Any, Y: Any) -> Any:
    """The bilinear form of two matrices: X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Any, S: Any) -> Any:
    """The quadratic form S^T A S."""
    return bform(S, A, S)


def basis(A: Any) -> Any:
    """An orthogonal basis of the columns."""
    return torch.linalg.qr(A).Q


def symeig(A: Any, largest: bool | None = False) -> tuple[Any, Any]:
    """Eigenvalues and vectors of a symmetric matrix, the smallest first unless `largest`."""
    values, vectors = torch.linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
