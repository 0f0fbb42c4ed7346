"""float16 and float32 into each other, all of them, and clamp between numbers.

Invariant: every float16 and the floats around each of them are converted as NumPy converts them, at every length.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def check_halves() -> None:
    with np.errstate(over="ignore"):
        floats = HALVES.astype(np.float32)
        np.testing.assert_array_equal(torch.from_numpy(HALVES.copy()).float().numpy(), floats)
        # On both sides of every float16, and half way to the next one.
        finite = floats[np.isfinite(floats)]
        middle = (finite + np.nextafter(HALVES[np.isfinite(floats)], np.float16(np.inf)).astype(np.float32)) / 2
        for step in (-np.inf, np.inf):
            for values in (np.nextafter(finite, np.float32(step)), np.nextafter(middle, np.float32(step)), middle):
                got = torch.from_numpy(values.copy()).half().numpy()
                np.testing.assert_array_equal(got, values.astype(np.float16))
    for n in range(20):
        given = torch.from_numpy(floats[16000 : 16000 + n].copy())
        np.testing.assert_array_equal(given.half().float().numpy(), given.numpy())


def test_halves() -> None:
    check_halves()


def test_halves_with_baseline_instructions() -> None:
    run = "from tests.mindtorch_v2.native.test_halves import check_halves; check_halves()"
    subprocess.run([sys.executable, "-c", run], check=True, env={**os.environ, "MINDTORCH_CPU": "baseline"})


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_clamp_between_numbers(name: str) -> None:
    dtype = getattr(torch, name)
    values = np.random.default_rng(0).standard_normal((7, 150))
    values[0, :3] = np.nan, np.inf, -np.inf
    for given in (torch.from_numpy(values).to(dtype), torch.from_numpy(values).to(dtype).t()[::3]):
        exact = given.double().numpy()
        for low, high in ((-0.5, 0.25), (0.5, -0.5), (float("nan"), 1.0), (0.0, float("nan")), (-1.0, float("inf"))):
            want = np.minimum(np.maximum(exact, low), high)
            np.testing.assert_array_equal(given.clamp(low, high).double().numpy(), want)
    assert _native.cpu_level() in ("baseline", "avx2", "avx512")


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("shape", ((1,), (15,), (17,), (1000, 37), (33, 16), (40, 1031), (2, 3000), (16, 5, 7)))
def test_sums(dtype: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    step = torch.finfo(x.dtype).eps
    holes = x.clone()
    holes.view(-1)[::3] = float("nan")
    for dims in (None, 0, -1):
        known, size = x.double(), x.double().abs()
        exact, bound = (known.sum(), size.sum()) if dims is None else (known.sum(dims), size.sum(dims))
        found = x.sum() if dims is None else x.sum(dims)
        assert found.dtype is x.dtype
        assert ((found.double() - exact).abs() <= exact.abs() * step + bound * 1e-6).all()
        left = holes.nansum() if dims is None else holes.nansum(dims)
        numbers = holes.double().nan_to_num(0)
        exact = numbers.sum() if dims is None else numbers.sum(dims)
        assert ((left.double() - exact).abs() <= exact.abs() * step + bound * 1e-6).all()
