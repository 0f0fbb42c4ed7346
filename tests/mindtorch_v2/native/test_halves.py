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
