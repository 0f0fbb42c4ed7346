"""`torch._refs.fft`: references of Fourier transforms."""

from __future__ import annotations

import mindtorch_v2 as torch

from ._names import finder

_NAMES = """
    fft fft2 fftn hfft hfft2 hfftn rfft rfft2 rfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn
    fftshift ifftshift
    """

__getattr__ = finder("_refs.fft", _NAMES, lambda: torch.fft)
__all__ = _NAMES.split()  # noqa: PLE0605
