"""CPU lines of Fourier transforms: pocketfft through SciPy, in the precision of the input; complex
ones of several dimensions, and those to real numbers, in double, so that all passes round once."""
from __future__ import annotations

import math
from typing import Any

from ...._ops.fft import BY_N, ROOT
from ..lines import cpu, into
from ..numpy_view import np_view


def _scaled(value: Any, count: int, normalization: int) -> Any:
    if normalization == ROOT:
        value *= 1 / math.sqrt(count)
    elif normalization == BY_N:
        value *= 1 / count
    return value


def _count(shape: tuple[int, ...], dim: tuple[int, ...]) -> int:
    return math.prod(shape[d] for d in dim)


def _c2c(out: Any, self: Any, dim: tuple[int, ...], normalization: int, forward: bool) -> None:
    from scipy import fft

    if out.numel() == 0:
        return
    # Several passes round once, in double.
    given = np_view(self) if len(dim) == 1 else np_view(self).astype("complex128", copy=False)
    value = fft.fftn(given, axes=dim) if forward else fft.ifftn(given, axes=dim, norm="forward")
    np_view(out)[...] = _scaled(value, _count(self._shape, dim), normalization)


def _r2c(out: Any, self: Any, dim: tuple[int, ...], normalization: int, onesided: bool) -> None:
    from scipy import fft

    if out.numel() == 0:
        return
    value = fft.rfftn(np_view(self), axes=dim) if onesided else fft.fftn(np_view(self), axes=dim)
    np_view(out)[...] = _scaled(value, _count(self._shape, dim), normalization)


def _c2r(out: Any, self: Any, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> None:
    from scipy import fft

    if out.numel() == 0:
        return
    value = np_view(self).astype("complex128", copy=False)
    if len(dim) > 1:
        value = fft.ifftn(value, axes=dim[:-1], norm="forward")
    value = fft.irfft(value, last_dim_size, axis=dim[-1], norm="forward")
    np_view(out)[...] = _scaled(value, _count(out._shape, dim), normalization)


cpu("_fft_c2c", into(_c2c))
cpu("_fft_r2c", into(_r2c))
cpu("_fft_c2r", into(_c2r))
