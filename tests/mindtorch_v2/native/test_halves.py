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
            np.testing.assert_array_equal(given.clamp(min=low).double().numpy(), np.maximum(exact, low))
            np.testing.assert_array_equal(given.clamp(max=high).double().numpy(), np.minimum(exact, high))
    assert _native.cpu_level() in ("baseline", "avx2", "avx512")


@pytest.mark.parametrize("dtype", ("uint8", "int8", "int16", "int32", "int64"))
def test_clamp_of_integers_with_one_bound(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.concatenate([np.arange(100), [info.min, info.max]]).astype(dtype)
    given = torch.from_numpy(values)
    np.testing.assert_array_equal(given.clamp(min=30).numpy(), np.maximum(values, 30))
    np.testing.assert_array_equal(given.clamp(max=30).numpy(), np.minimum(values, 30))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_sin_and_cos_of_every_number(dtype: str) -> None:
    x = torch.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16)).view(getattr(torch, dtype))
    small = x[x.abs() <= 64]
    for name in ("sin", "cos"):
        # Small ones alone, and blocks with some that are large.
        for given in (small, x[::7]):
            exact = getattr(given.double(), name)()
            found = getattr(given, name)().double()
            step = torch.finfo(x.dtype).eps * exact.abs() + torch.finfo(x.dtype).smallest_normal * 2.0**-10
            fits = exact.isfinite()
            assert bool(((found - exact).abs() <= 0.51 * step)[fits].all()), name
            assert bool(found[~fits].isnan().all())
    zeros = torch.tensor([0.0, -0.0], dtype=x.dtype).sin()
    assert zeros.signbit().tolist() == [False, True]


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_one_value_beside_many(dtype: str) -> None:
    """A column, a row, a tensor of one element and a number give what float32 gives, rounded once."""
    seed = torch.Generator().manual_seed(1)
    x, column, row = (torch.randn(*s, generator=seed).to(getattr(torch, dtype)) for s in ((37, 70), (37, 1), (70,)))
    for other in (column, row, column[:1], column[3, 0]):
        for name in ("add", "sub", "mul", "div", "maximum", "minimum", "copysign"):
            f = getattr(torch, name)
            for a, b in ((x, other), (other, x), (x[:, ::2], other[..., ::2] if other.dim() else other)):
                assert torch.equal(f(a, b), f(a.float(), b.float()).to(x.dtype)), name


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("n", (1, 2, 3, 8, 17, 5000))
def test_an_expanded_value_beside_a_number(dtype: str, n: int) -> None:
    one = torch.tensor(3.0, dtype=getattr(torch, dtype)).expand(n)
    assert (one * 0.5).tolist() == (0.5 * one).tolist() == [1.5] * n
    assert (one / 2).tolist() == [1.5] * n and (6 / one).tolist() == [2.0] * n
    assert (one - 1).tolist() == [2.0] * n and (1 - one).tolist() == [-2.0] * n
    assert (one + one).tolist() == [6.0] * n and (one * one[:1]).tolist() == [9.0] * n


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


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("width", [1, 16, 33, 64, 100])
def test_bags_are_summed_in_float(mode: str, width: int) -> None:
    rng = np.random.default_rng(width)
    table = torch.from_numpy(rng.standard_normal((50, width)).astype(np.float32))
    index = torch.from_numpy(rng.integers(0, 50, 90))
    starts = torch.tensor([0, 0, 7, 40, 90])  # two bags are empty
    scale = torch.from_numpy(rng.standard_normal(90).astype(np.float32)) if mode == "sum" else None
    for half in (torch.float16, torch.bfloat16):
        small, by = table.to(half), None if scale is None else scale.to(half)
        wide = None if by is None else by.float()
        found = torch.nn.functional.embedding_bag(index, small, starts, mode=mode, padding_idx=3, per_sample_weights=by)
        exact = torch.nn.functional.embedding_bag(
            index, small.float(), starts, mode=mode, padding_idx=3, per_sample_weights=wide
        )
        step = 2.0**-7 if half is torch.bfloat16 else 2.0**-10
        np.testing.assert_allclose(found.float().numpy(), exact.numpy(), rtol=step, atol=1e-6)
