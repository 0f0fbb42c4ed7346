"""Dense operands for kernels that read memory in one run: row-major, or channels last.

Invariant: an operand that is already dense in the wanted dtype and order is passed as it is, without a copy.
"""

from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dtype import dtype, float32
from ...._sizes import dense_bytes
from ...._strides import channels_last_strides, contiguous_strides, strides_match
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


def is_last(t: TensorBase) -> bool:
    """Whether it is a batch of images or volumes with channels last, and not row-major as well."""
    return not is_contiguous(t) and lies_last(t)


def lies_last(t: TensorBase) -> bool:
    n = len(t._shape)
    return 4 <= n <= 5 and strides_match(t._shape, t._stride, channels_last_strides(t._shape, n - 2))


def last_as(t: TensorBase, dt: dtype) -> TensorBase:
    """The images or volumes with channels last, in a dtype."""
    if t._dtype is dt and lies_last(t):
        return t
    out = fresh_last(t._shape, dt)
    _copy(
        out._storage, 0, out._stride, dt.code,
        t._storage, int(t._offset), t._stride, t._dtype.code,
        t._shape)
    return out


def fresh_last(shape: tuple[int, ...], dt: dtype) -> TensorBase:
    """Uninitialised memory for images or volumes with channels last."""
    stride = channels_last_strides(shape, len(shape) - 2)
    return make(_Storage(int(dense_bytes(shape, dt.itemsize))), 0, shape, stride, dt, CPU, CPU_KEY)


def target_last(out: TensorBase, dt: dtype) -> TensorBase:
    """Where a kernel may write with channels last in a dtype; `deliver` brings it to `out`."""
    return out if out._dtype is dt and lies_last(out) else fresh_last(out._shape, dt)


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
