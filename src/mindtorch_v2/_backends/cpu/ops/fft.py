"""CPU lines of Fourier transforms: lengths without a prime factor above 7 by the native module, one dimension after the
other. Other lengths, and odd ones of real numbers, by pocketfft through SciPy, in the precision of the input; complex
transforms of several dimensions, and those to real numbers, are computed in double there, so all of it rounds once:
small ones always, unless their lengths are powers of two."""
from __future__ import annotations

import math
from typing import Any

from .... import _native
from ...._ops.fft import BY_N, ROOT
from ...._ops.rules.base import wrap_dim
from ...._tensor_base import TensorBase, numel
from ..kernels.dense import deliver, dense, fresh, target
from ..lines import cpu, into
from ..numpy_view import np_view

Ints = tuple[int, ...]
_COMPLEX, _TO_HALF, _FROM_HALF, _TO_WHOLE = range(4)


def _scale(count: int, normalization: int) -> float:
    return 1 / math.sqrt(count) if normalization == ROOT else 1 / count if normalization == BY_N else 1.0


def _scaled(value: Any, count: int, normalization: int) -> Any:
    if normalization in (ROOT, BY_N):
        value *= _scale(count, normalization)
    return value


def _count(shape: Ints, dim: Ints) -> int:
    return math.prod(shape[d] for d in dim)


# -- lengths of small factors -----------------------------------------------------------------------------------------
def _is_smooth(n: int) -> bool:
    for prime in (2, 3, 5, 7):
        while n > 1 and n % prime == 0:
            n //= prime
    return n == 1


_SMALL = 16384  # elements up to which the one rounding of double is worth its time


def _fits(t: TensorBase, shape: Ints, dim: Ints, rounds_once: bool) -> bool:
    if t._dtype.name not in ("float32", "float64", "complex64", "complex128") or not dim:
        return False
    if all(shape[d] & (shape[d] - 1) == 0 for d in dim):
        return True
    return (not rounds_once or math.prod(shape) > _SMALL) and all(_is_smooth(shape[d]) for d in dim)


def _along(source: TensorBase, out: TensorBase, shape: Ints, d: int, mode: int, forward: bool, scale: float) -> None:
    """One dimension of row-major memory; `shape` is that of the longer side."""
    real = out._dtype if mode == _FROM_HALF else source._dtype
    parts = real.code if not real.is_complex else real.to_real().code
    offsets = [int(t._offset) * (2 if t._dtype.is_complex else 1) for t in (source, out)]
    _native.fourier(mode, parts, source._storage, offsets[0], out._storage, offsets[1],
                    math.prod(shape[:d]), shape[d], math.prod(shape[d + 1:]), forward, scale)


def _pass_all(source: TensorBase, out: TensorBase, dims: list[int], forward: bool, scale: float) -> None:
    """Complex transforms along each dimension, the last one first; the scale goes with the last pass."""
    for i, d in enumerate(reversed(dims)):
        _along(source, out, source._shape, d, _COMPLEX, forward, scale if i == len(dims) - 1 else 1.0)
        source = out


def _dims(shape: Ints, dim: Ints) -> list[int]:
    return [wrap_dim(d, len(shape)) for d in dim]


def _c2c(out: Any, self: Any, dim: Ints, normalization: int, forward: bool) -> None:
    if numel(out) == 0:
        return
    count = _count(self._shape, dim)
    if _fits(self, self._shape, dim, len(dim) > 1):
        result = target(out, out._dtype)
        _pass_all(dense(self), result, _dims(self._shape, dim), forward, _scale(count, normalization))
        deliver(out, result)
        return
    from scipy import fft

    # Several passes round once, in double.
    given = np_view(self) if len(dim) == 1 else np_view(self).astype("complex128", copy=False)
    value = fft.fftn(given, axes=dim) if forward else fft.ifftn(given, axes=dim, norm="forward")
    np_view(out)[...] = _scaled(value, count, normalization)


def _r2c(out: Any, self: Any, dim: Ints, normalization: int, onesided: bool) -> None:
    if numel(out) == 0:
        return
    shape, count = self._shape, _count(self._shape, dim)
    last = wrap_dim(dim[-1], len(shape))
    # The dimension of reals is the innermost one; others follow.
    if _fits(self, shape, dim, False) and last == len(shape) - 1 and shape[last] % 2 == 0:
        result, scale = target(out, out._dtype), _scale(count, normalization)
        rest = _dims(shape, dim[:-1])
        _along(dense(self), result, shape, last, _TO_HALF if onesided else _TO_WHOLE, True, 1.0 if rest else scale)
        _pass_all(result, result, rest, True, scale)
        deliver(out, result)
        return
    from scipy import fft

    value = fft.rfftn(np_view(self), axes=dim) if onesided else fft.fftn(np_view(self), axes=dim)
    np_view(out)[...] = _scaled(value, count, normalization)


def _c2r(out: Any, self: Any, dim: Ints, normalization: int, last_dim_size: int) -> None:
    if numel(out) == 0:
        return
    shape, count = out._shape, _count(out._shape, dim)
    last = wrap_dim(dim[-1], len(shape))
    if _fits(self, shape, dim, True) and last == len(shape) - 1 and shape[last] % 2 == 0:
        rest, given = _dims(shape, dim[:-1]), self.narrow(last, 0, shape[last] // 2 + 1)
        source = dense(given)
        if rest:
            between = fresh(source._shape, source._dtype)
            _pass_all(source, between, rest, False, 1.0)
            source = between
        result = target(out, out._dtype)
        _along(source, result, shape, last, _FROM_HALF, False, _scale(count, normalization))
        deliver(out, result)
        return
    from scipy import fft

    value = np_view(self).astype("complex128", copy=False)
    if len(dim) > 1:
        value = fft.ifftn(value, axes=dim[:-1], norm="forward")
    value = fft.irfft(value, last_dim_size, axis=dim[-1], norm="forward")
    np_view(out)[...] = _scaled(value, count, normalization)


cpu("_fft_c2c", into(_c2c))
cpu("_fft_r2c", into(_r2c))
cpu("_fft_c2r", into(_c2r, calls_ops=True))
