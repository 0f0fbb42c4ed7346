"""Fourier transforms by the native module, one dimension after the other.

Invariant: what PyTorch rounds once is computed in double: small complex transforms of several dimensions and small ones
to real numbers, unless their lengths are powers of two; and small ones of lengths with a prime factor above 7, which
are convolutions. Odd lengths to real numbers are transformed by pocketfft through SciPy.
"""

from __future__ import annotations

import math
from typing import Any, Final

from .... import _native
from ...._dtype import complex64, complex128, float32, float64
from ...._dtype import dtype as DType
from ...._mypyc import i64
from ...._ops.composites.fft import BY_N, ROOT
from ...._ops.rules.base import wrap_dim
from ...._sizes import numel_of
from ...._tensor_base import TensorBase, alias, numel
from ..numpy_view import np_view
from .dense import deliver, dense_as, fresh, target

Ints = tuple[int, ...]
_fourier: Final[Any] = _native.fourier
# As in fourier.cpp.
_COMPLEX: Final = 0
_TO_HALF: Final = 1
_FROM_HALF: Final = 2
_TO_WHOLE: Final = 3
# Elements up to which the one rounding of double is worth its time.
_SMALL: Final = 16384


def _count(shape: Ints, dims: list[int]) -> int:
    count: i64 = 1
    for d in dims:
        count *= shape[d]
    return int(count)


def _scale(count: int, normalization: int) -> float:
    if normalization == ROOT:
        return 1 / math.sqrt(count)
    return 1 / count if normalization == BY_N else 1.0


def _scaled(value: Any, count: int, normalization: int) -> Any:
    if normalization == ROOT or normalization == BY_N:
        value *= _scale(count, normalization)
    return value


def _is_smooth(length: int) -> bool:
    n: i64 = length
    if n & (n - 1) == 0:
        return n > 0
    while n % 2 == 0:
        n = n // 2
    while n % 3 == 0:
        n = n // 3
    while n % 5 == 0:
        n = n // 5
    while n % 7 == 0:
        n = n // 7
    return n == 1


def _are_powers(shape: Ints, dims: list[int]) -> bool:
    for d in dims:
        n: i64 = shape[d]
        if n & (n - 1) != 0:
            return False
    return True


def _are_smooth(shape: Ints, dims: list[int]) -> bool:
    for d in dims:
        if not _is_smooth(shape[d]):
            return False
    return True


def _fits(t: TensorBase, dims: list[int]) -> bool:
    """Whether the native module knows such transforms."""
    dt = t._dtype
    return (dt is float32 or dt is float64 or dt is complex64 or dt is complex128) and len(dims) > 0


def _rounds_once(shape: Ints, dims: list[int]) -> bool:
    return not _are_powers(shape, dims) and numel_of(shape) <= _SMALL


def _in_double(shape: Ints, dims: list[int]) -> bool:
    """Whether a transform to complex numbers is worth its rounding in double."""
    return _rounds_once(shape, dims) and (len(dims) > 1 or not _are_smooth(shape, dims))


def _along(source: TensorBase, out: TensorBase, shape: Ints, d: int, mode: int, forward: bool, scale: float) -> None:
    """One dimension of row-major memory; `shape` is that of the longer side."""
    real = out._dtype if mode == _FROM_HALF else source._dtype
    code = real.code if not real.is_complex else real.to_real().code
    first: i64 = source._offset * (2 if source._dtype.is_complex else 1)
    second: i64 = out._offset * (2 if out._dtype.is_complex else 1)
    _fourier(
        mode, code, source._storage, int(first), out._storage, int(second),
        int(numel_of(shape[:d])), shape[d], int(numel_of(shape[d + 1:])), forward, scale)


def _pass_all(source: TensorBase, out: TensorBase, dims: list[int], forward: bool, scale: float) -> None:
    """Complex transforms along each dimension, the last one first; the scale goes with the last pass."""
    left: i64 = len(dims)
    while left > 0:
        left -= 1
        _along(source, out, source._shape, dims[left], _COMPLEX, forward, scale if left == 0 else 1.0)
        source = out


def _dims(shape: Ints, dim: Ints) -> list[int]:
    return [wrap_dim(d, len(shape)) for d in dim]


def _exchanged(t: TensorBase, a: int, b: int) -> TensorBase:
    """The same memory with two dimensions in each other's place."""
    shape, stride = list(t._shape), list(t._stride)
    shape[a], shape[b] = shape[b], shape[a]
    stride[a], stride[b] = stride[b], stride[a]
    return alias(t, tuple(shape), tuple(stride), t._offset)


def _cut(t: TensorBase, d: int, size: int) -> TensorBase:
    """The first of a dimension."""
    if t._shape[d] == size:
        return t
    return alias(t, t._shape[:d] + (size,) + t._shape[d + 1:], t._stride, t._offset)


def c2c(out: TensorBase, t: TensorBase, dim: Ints, normalization: int, forward: bool) -> None:
    if numel(out) == 0:
        return
    shape = t._shape
    dims = _dims(shape, dim)
    count = _count(shape, dims)
    if _fits(t, dims):
        wide = complex128 if _in_double(shape, dims) else t._dtype
        result = target(out, wide)
        _pass_all(dense_as(t, wide), result, dims, forward, _scale(count, normalization))
        deliver(out, result)
        return
    from scipy import fft

    # Several passes round once, in double.
    given = np_view(t) if len(dim) == 1 else np_view(t).astype("complex128", copy=False)
    value = fft.fftn(given, axes=dim) if forward else fft.ifftn(given, axes=dim, norm="forward")
    np_view(out)[...] = _scaled(value, count, normalization)


def r2c(out: TensorBase, t: TensorBase, dim: Ints, normalization: int, onesided: bool) -> None:
    if numel(out) == 0:
        return
    shape = t._shape
    dims = _dims(shape, dim)
    count = _count(shape, dims)
    last = dims[-1]
    if _fits(t, dims):
        scale = _scale(count, normalization)
        if shape[last] % 2:
            _odd_r2c(out, t, dims, scale)
            return
        # The dimension of reals is the innermost one; others follow.
        inner = len(shape) - 1
        if last != inner:
            t, out = _exchanged(t, last, inner), _exchanged(out, last, inner)
        rest = [last if d == inner else d for d in dims[:-1]]
        once = _rounds_once(shape, dims) and not _are_smooth(shape, dims)
        source = dense_as(t, float64 if once else t._dtype)
        result = target(out, complex128 if once else out._dtype)
        mode = _TO_HALF if onesided else _TO_WHOLE
        _along(source, result, t._shape, inner, mode, True, 1.0 if rest else scale)
        _pass_all(result, result, rest, True, scale)
        deliver(out, result)
        return
    from scipy import fft

    value = fft.rfftn(np_view(t), axes=dim) if onesided else fft.fftn(np_view(t), axes=dim)
    np_view(out)[...] = _scaled(value, count, normalization)


def _odd_r2c(out: TensorBase, t: TensorBase, dims: list[int], scale: float) -> None:
    """An odd number of reals, as complex numbers; of the result, what is asked for."""
    wide = complex128 if _rounds_once(t._shape, dims) and not _are_smooth(t._shape, dims) else out._dtype
    source = dense_as(t, wide)
    result = fresh(t._shape, wide)
    _pass_all(source, result, dims, True, scale)
    deliver(out, _cut(result, dims[-1], out._shape[dims[-1]]))


def c2r(out: TensorBase, t: TensorBase, dim: Ints, normalization: int, last_dim_size: int) -> None:
    if numel(out) == 0:
        return
    shape = out._shape
    dims = _dims(shape, dim)
    count = _count(shape, dims)
    last = dims[-1]
    if _fits(t, dims) and last_dim_size % 2 == 0:
        once = _rounds_once(shape, dims)
        wide: DType = complex128 if once else t._dtype
        inner = len(shape) - 1
        if last != inner:
            t, out = _exchanged(t, last, inner), _exchanged(out, last, inner)
        source = dense_as(_cut(t, inner, last_dim_size // 2 + 1), wide)
        rest = [last if d == inner else d for d in dims[:-1]]
        if rest:
            between = fresh(source._shape, wide)
            _pass_all(source, between, rest, False, 1.0)
            source = between
        result = target(out, float64 if once else out._dtype)
        _along(source, result, out._shape, inner, _FROM_HALF, False, _scale(count, normalization))
        deliver(out, result)
        return
    from scipy import fft

    value = np_view(t).astype("complex128", copy=False)
    if len(dim) > 1:
        value = fft.ifftn(value, axes=dim[:-1], norm="forward")
    value = fft.irfft(value, last_dim_size, axis=dim[-1], norm="forward")
    np_view(out)[...] = _scaled(value, count, normalization)
