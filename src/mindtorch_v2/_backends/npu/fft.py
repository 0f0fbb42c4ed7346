"""NPU lines of Fourier transforms: there are none."""
from __future__ import annotations

from .lines import missing

for _name in ("_fft_c2c", "_fft_r2c", "_fft_c2r"):
    missing(_name, "the vendor's neural network library has no Fourier transform")
