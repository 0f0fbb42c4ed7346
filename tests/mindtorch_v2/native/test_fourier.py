"""Fourier transforms of the native module against NumPy's in double: lengths, layouts, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has kernels of its own")
NATIVE: Any = None if IS_ORACLE else submodule("_native")
BOUND = {"complex64": 6e-7, "complex128": 1e-15}
PARTS = {"complex64": "float32", "complex128": "float64"}


def some(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def check(found: Any, expected: Any, dtype: str) -> None:
    assert found.shape == expected.shape
    size = float(np.abs(expected).max()) or 1.0
    assert float(np.abs(found.resolve_conj().numpy() - expected).max()) <= BOUND[dtype] * size * 4


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
@pytest.mark.parametrize(
    "n",
    [1 << k for k in range(16)]
    + [
        3,
        5,
        6,
        7,
        9,
        10,
        12,
        14,
        15,
        20,
        21,
        35,
        49,
        60,
        75,
        96,
        98,
        100,
        105,
        125,
        210,
        243,
        343,
        360,
        480,
        500,
        768,
        1000,
        1536,
        2000,
        2187,
        3000,
        4500,
        7000,
        10000,
        44100,
        11,
        13,
        22,
        33,
        101,
        127,
        255,
        499,
        510,
        1009,
        4099,
    ],
)
def test_lengths(dtype: str, n: int) -> None:
    for rows in (1, 3, 16, 37) if n <= 2048 else (2,):
        z = some(dtype, rows, n)
        x = z.real.copy()
        t, r = torch.tensor(z), torch.tensor(x)
        check(torch.fft.fft(t), np.fft.fft(z), dtype)
        check(torch.fft.ifft(t, norm="ortho"), np.fft.ifft(z, norm="ortho"), dtype)
        check(torch.fft.fft(r), np.fft.fft(x), dtype)
        check(torch.fft.rfft(r, norm="forward"), np.fft.rfft(x, norm="forward"), dtype)
        if n % 2 == 0:
            half = np.fft.rfft(x).astype(dtype)
            check(torch.fft.irfft(torch.tensor(half), n=n), x, dtype)


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
@pytest.mark.parametrize("dims", ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)))
def test_dimensions(dtype: str, dims: tuple[int, ...]) -> None:
    for shape in ((8, 16, 32), (4, 2, 8), (64, 4, 16), (6, 10, 14), (3, 25, 12)):
        z = some(dtype, *shape)
        t = torch.tensor(z)
        check(torch.fft.fftn(t, dim=dims), np.fft.fftn(z, axes=dims), dtype)
        check(torch.fft.ifftn(t, dim=dims), np.fft.ifftn(z, axes=dims), dtype)
        check(torch.fft.fftn(t.transpose(0, 2), dim=dims), np.fft.fftn(z.transpose(2, 1, 0), axes=dims), dtype)
        x = z.real.copy()
        check(torch.fft.rfftn(torch.tensor(x), dim=dims), np.fft.rfftn(x, axes=dims), dtype)
        half = np.fft.rfftn(x, axes=dims).astype(dtype)
        sizes = [shape[d] for d in dims]
        check(torch.fft.irfftn(torch.tensor(half), sizes, dim=dims), x, dtype)


def test_threads_do_not_change_results() -> None:
    z = torch.tensor(some("complex64", 300, 64))
    known = torch.get_num_threads()
    found = []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        found.append(torch.fft.fft(z))
    torch.set_num_threads(known)
    assert all(torch.equal(found[0], f) for f in found)


def test_operands_are_checked() -> None:
    x, y = NATIVE.Storage(64), NATIVE.Storage(64)
    f32 = 6
    NATIVE.fourier(0, f32, x, 0, y, 0, 1, 8, 1, True, 1.0)
    for args in (
        (0, f32, x, 0, y, 0, 1, 16, 1, True, 1.0),
        (0, f32, x, 8, y, 0, 1, 8, 1, True, 1.0),
        (0, f32, x, -1, y, 0, 1, 4, 1, True, 1.0),
        (0, f32, x, 0, y, 0, 1, 11, 1, True, 1.0),
        (1, f32, x, 0, y, 0, 1, 5, 1, True, 1.0),
        (0, f32, x, 0, y, 0, 1, 0, 1, True, 1.0),
        (0, f32, x, 0, y, 0, -1, 4, 1, True, 1.0),
        (0, f32, x, 0, y, 0, 1 << 40, 1 << 40, 1 << 40, True, 1.0),
        (1, f32, x, 0, y, 0, 1, 16, 1, True, 1.0),
        (1, f32, x, 0, y, 0, 1, 1, 1, True, 1.0),
        (2, f32, x, 0, y, 0, 1, 16, 1, False, 1.0),
        (3, f32, x, 0, y, 0, 1, 4, 2, True, 1.0),
        (4, f32, x, 0, y, 0, 1, 4, 1, True, 1.0),
        (0, 4, x, 0, y, 0, 1, 4, 1, True, 1.0),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            NATIVE.fourier(*args)
