"""Operators that the vendor does not have, composed on the device: sizes and values that samples do not reach.

Invariant: nothing is computed on the host.
"""
from __future__ import annotations

from typing import Any

import pytest

from .. import _npu, _oracle
from .._subject import subject as torch
from . import _rows

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 97, 128, 134, 210, 1000, 4096])
def test_fourier_transforms_of_any_size(n: int) -> None:
    """Factors, products of factors, primes, and twice a prime that is too large to be split."""
    t = _oracle.load()
    x = t.randn(3, n, generator=t.Generator().manual_seed(n))
    for name, given in (("fft", x), ("ifft", x), ("rfft", x), ("fft", t.complex(x, x.flip(0))),
                        ("ifft", t.complex(x, x.flip(0)))):
        exact = getattr(t.fft, name)(given.to(t.complex128 if given.is_complex() else t.float64))
        actual = _oracle.to_oracle(_rows.results(getattr(torch.fft, name)(_rows.arguments(given)), name))
        assert actual.dtype == t.complex64
        error = (actual.to(t.complex128) - exact).abs().max() / exact.abs().max()
        assert error < 2e-6, (name, n, float(error))
    back = torch.fft.irfft(torch.fft.rfft(_rows.arguments(x)), n=n)
    _oracle.assert_same(_rows.results(back, "irfft"), x, where="irfft", rtol=1e-4, atol=1e-5)


@_npu.emulator_only
def test_a_fourier_transform_reads_nothing(emulator: Any) -> None:
    x = torch.ones(4, 70, device="npu")
    torch.npu.synchronize()
    before = emulator.bytes_to_host()
    torch.fft.irfft2(torch.fft.rfft2(x))
    torch.npu.synchronize()
    assert emulator.bytes_to_host() == before
