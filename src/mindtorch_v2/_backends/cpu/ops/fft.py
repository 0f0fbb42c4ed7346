"""CPU lines of Fourier transforms."""
from __future__ import annotations

from ..kernels.fft import c2c, c2r, r2c
from ..lines import cpu, into

cpu("_fft_c2c", into(c2c))
cpu("_fft_r2c", into(r2c))
cpu("_fft_c2r", into(c2r))
