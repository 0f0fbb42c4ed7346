"""Dense operands for kernels that read memory in one run.

Invariant: an operand that is already dense in the wanted dtype is passed as it is, without a copy.
"""

from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dtype import dtype, float32
from ...._sizes import dense_bytes
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, is_contiguous, make, numel

_copy: Final[Any] = _native.copy
_Storage: Final[Any] = _native.Storage


def wide_dtype(dt: dtype) -> dtype:
    """What a kernel computes in: two-byte floats are widened."""
    return float32 if dt.is_floating_point and dt.itemsize < 4 else dt


def dense(t: TensorBase) -> TensorBase:
    """The tensor row-major."""
    return t if is_contiguous(t) else dense_as(t, t._dtype)


def dense_as(t: TensorBase, dt: dtype) -> TensorBase:
    """The tensor row-major in a dtype."""
    if t._dtype is dt and is_contiguous(t):
        return t
    out = fresh(t._shape, dt)
    _copy(
        out._storage, 0, out._stride, dt.code,
        t._storage, int(t._offset), t._stride, t._dtype.code,
        t._shape)
    return out


def fresh(shape: tuple[int, ...], dt: dtype) -> TensorBase:
    """Uninitialised row-major memory."""
    return make(_Storage(int(dense_bytes(shape, dt.itemsize))), 0, shape, contiguous_strides(shape), dt, CPU, CPU_KEY)


def target(out: TensorBase, dt: dtype) -> TensorBase:
    """Where a kernel may write row-major in a dtype; `deliver` brings it to `out`."""
    return out if out._dtype is dt and is_contiguous(out) else fresh(out._shape, dt)


def deliver(out: TensorBase, written: TensorBase) -> None:
    if written is not out and numel(out) > 0:
        _copy(
            out._storage, int(out._offset), out._stride, out._dtype.code,
            written._storage, int(written._offset), written._stride, written._dtype.code,
            out._shape)


def operand(t: TensorBase) -> tuple[Any, int, int]:
    """storage, offset, code"""
    return t._storage, int(t._offset), t._dtype.code


def triple(values: tuple[int, ...], missing: int) -> tuple[int, ...]:
    """Depth, height, width; what a lower rank does not have is `missing`."""
    return (missing,) * (3 - len(values)) + tuple(values)
