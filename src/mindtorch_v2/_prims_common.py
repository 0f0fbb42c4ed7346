"""`torch._prims_common`: a few questions about shapes and dtypes that other code asks here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import mindtorch_v2 as torch

ShapeType: TypeAlias = Any
StrideType: TypeAlias = Any
DimsType: TypeAlias = Any
DimsSequenceType: TypeAlias = Any
DeviceLikeType: TypeAlias = Any
TensorLike = torch.Tensor
TensorLikeType: TypeAlias = torch.Tensor
NumberType: TypeAlias = Any
Number = (bool, int, float, complex)


def is_float_dtype(dtype: Any) -> bool:
    """Whether a dtype is floating point."""
    return bool(dtype.is_floating_point)


def is_complex_dtype(dtype: Any) -> bool:
    return bool(dtype.is_complex)


def is_boolean_dtype(dtype: Any) -> bool:
    return bool(dtype == torch.bool)


def is_integer_dtype(dtype: Any) -> bool:
    """Whether a dtype is an integer; truth values are none."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def corresponding_real_dtype(dtype: Any) -> Any:
    return dtype.to_real()


def corresponding_complex_dtype(dtype: Any) -> Any:
    return dtype.to_complex()


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Dimensions counted from the front: one, or several."""
    if isinstance(indices, Sequence):
        return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)
    return canonicalize_dim(rank, indices, wrap_scalar)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; with `row_major=False` its last two dimensions are exchanged."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if not row_major and len(strides) > 1:
        strides[-1], strides[-2] = max(shape[-2], 1), 1
    return tuple(strides)
