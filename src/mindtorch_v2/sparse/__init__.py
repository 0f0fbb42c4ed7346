"""`torch.sparse`: products, sums and softmax of sparse tensors.

Invariant: Python over operators; what sparse tensors are is in `_sparse`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .._dispatch.binding import need_int, need_tensor
from .._overrides import overridable
from .._sparse import checks as _checks
from .._sparse import products as _products
from .._sparse import reduced as _reduced
from .._sparse import reductions as _reductions

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "spsolve",
    "sum",
]


@overridable
def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices of which one is sparse; the gradient of a sparse factor has its pattern.

    reduce: how the terms of a CSR matrix's product are put together: "sum", "mean", "amax" or "amin".
    """
    if reduce is not None:
        found: Any = _reduced.REDUCED.call((mat1, mat2, reduce))
        return found[0]
    return _products.sparse_mm(mat1, mat2)


@overridable
def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """beta * mat + alpha * (mat1 @ mat2) for a sparse `mat1`."""
    return _products.SPARSE_ADDMM.call((mat, mat1, mat2, *_factors(mat1, beta, alpha)))


def _factors(mat: Any, *factors: Any) -> list[Any]:
    """The defaults are floats, which integers take where they are whole."""
    whole = not mat.dtype.is_floating_point and not mat.dtype.is_complex
    return [int(f) if whole and isinstance(f, float) and f.is_integer() else f for f in factors]


@overridable
def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None) -> Any:
    """beta * input + alpha * (mat1 @ mat2) where the CSR tensor `input` has entries."""
    made = _products.SAMPLED_ADDMM.call((input, mat1, mat2, beta, alpha))
    return made if out is None else out.copy_(made)


@overridable
def spsolve(input: Any, other: Any, *, left: bool = True) -> Any:
    """The solution of a system with a sparse matrix, for which PyTorch has no kernel on the CPU either: it refuses."""
    return _reduced.SPSOLVE.call((input, other, left))


@overridable
def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of a COO tensor, whole or over dimensions; sparse if a sparse dimension stays."""
    return _reductions.sparse_sum(input, dim, dtype)


@overridable
def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Softmax of a COO tensor among specified entries."""
    return _softmax("_sparse_softmax", _reductions.SOFTMAX, input, dim, dtype)


@overridable
def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return _softmax("_sparse_log_softmax", _reductions.LOG_SOFTMAX, input, dim, dtype)


def _softmax(name: str, op: Any, input: Any, dim: Any, dtype: Any) -> Any:
    need_tensor(name, "input", 1, input)
    dim = need_int(name, "dim", 2, dim)
    return op.call((input if dtype is None else input.to(dtype), dim, False))


class check_sparse_tensor_invariants:
    """Whether constructors of sparse tensors check what they are given: a context, a decorator, and switches."""

    @staticmethod
    def is_enabled() -> bool:
        """Whether the checks are on."""
        return _checks.INVARIANTS.on

    @staticmethod
    def enable() -> None:
        """Switch the checks on."""
        _checks.INVARIANTS.on = True

    @staticmethod
    def disable() -> None:
        """Switch the checks off."""
        _checks.INVARIANTS.on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting."
            )
        self.saved_state = self.is_enabled()
        _checks.INVARIANTS.on = self.state

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.saved_state is not None
        _checks.INVARIANTS.on = self.saved_state
        self.saved_state = None

    def __call__(self, mth: Any) -> Any:
        def test_mth(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return test_mth


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix with the rows of `diagonals` on the diagonals that `offsets` names."""
    from .._sparse.diagonals import spdiags as made

    return made(diagonals, offsets, shape, layout)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """`gradcheck` for functions of sparse tensors: it sees their values, the function sees the tensors."""
    from .._sparse.gradchecks import as_sparse_gradcheck as made

    return made(gradcheck)


# The types that came before `sparse_coo_tensor`.
_TENSOR_TYPES = "BFloat16 Byte Char Double Float Half Int Long Short".split()


def __getattr__(name: str) -> Any:
    kind = name.removesuffix("Tensor")
    if kind == name or kind not in _TENSOR_TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import mindtorch_v2 as torch

    from .._legacy import tensor_type

    made = globals()[name] = tensor_type(name, getattr(torch, name).dtype, torch.sparse_coo)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *(f"{kind}Tensor" for kind in _TENSOR_TYPES)})
