"""`torch._numpy.fft`: Fourier transforms by NumPy's names.

Invariant: what is not double precision is computed and given back in double precision, as NumPy does.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtypes import default_dtypes
from ._normalizations import ArrayLike, normalizer


def _wide(a: torch.Tensor) -> Any:
    wanted = default_dtypes().complex_dtype if a.dtype.is_complex else default_dtypes().float_dtype
    return a.to(wanted)


def _line(name: str) -> Any:
    operator = getattr(torch.fft, name)

    @normalizer
    def function(a: ArrayLike, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        return operator(_wide(a), n, dim=axis, norm=norm)

    return _named(function, name)


def _plane(name: str) -> Any:
    operator = getattr(torch.fft, name)

    @normalizer
    def function(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return operator(_wide(a), s, dim=axes, norm=norm)

    return _named(function, name)


def _space(name: str) -> Any:
    operator = getattr(torch.fft, name)

    @normalizer
    def function(a: ArrayLike, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return operator(_wide(a), s, dim=axes, norm=norm)

    return _named(function, name)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{name}`."
    return function


fft = _line("fft")
ifft = _line("ifft")
rfft = _line("rfft")
irfft = _line("irfft")
hfft = _line("hfft")
ihfft = _line("ihfft")
fft2 = _plane("fft2")
ifft2 = _plane("ifft2")
rfft2 = _plane("rfft2")
irfft2 = _plane("irfft2")
fftn = _space("fftn")
ifftn = _space("ifftn")
rfftn = _space("rfftn")
irfftn = _space("irfftn")


@normalizer
def fftfreq(n: Any, d: Any = 1.0) -> Any:
    """The frequencies of a transform."""
    return torch.fft.fftfreq(n, d)


@normalizer
def rfftfreq(n: Any, d: Any = 1.0) -> Any:
    """The frequencies of a transform of real numbers."""
    return torch.fft.rfftfreq(n, d)


@normalizer
def fftshift(x: ArrayLike, axes: Any = None) -> Any:
    """Frequency zero moved to the middle."""
    return torch.fft.fftshift(x, axes)


@normalizer
def ifftshift(x: ArrayLike, axes: Any = None) -> Any:
    """Frequency zero moved back to the front."""
    return torch.fft.ifftshift(x, axes)


__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
