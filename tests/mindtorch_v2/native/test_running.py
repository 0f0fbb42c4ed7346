"""The largest and smallest so far; functions of float64 against wider numbers.

Invariant: of equal elements the last takes the place, of NaN every one; results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch


def expected(x: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    values = (np.maximum if largest else np.minimum).accumulate(x, axis=dim)
    where = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
    taken = (x == values) | (x != x)
    return values, np.maximum.accumulate(np.where(taken, where, 0), axis=dim)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "float16"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (40, 600), (3, 17, 9)], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_running_extremes(largest: bool, shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    if dtype.startswith("float"):
        x.reshape(-1)[x.size // 2] = np.nan
    before = torch.get_num_threads()
    try:
        for dim in range(x.ndim):
            want = expected(x, dim, largest)
            for n in (1, 2, 5):
                torch.set_num_threads(n)
                for t in (torch.from_numpy(x), torch.from_numpy(x.copy(order="F"))):
                    got = (torch.cummax if largest else torch.cummin)(t, dim)
                    for a, b in zip(got, want):
                        np.testing.assert_array_equal(a.numpy(), b)
    finally:
        torch.set_num_threads(before)


def test_running_extremes_of_nothing() -> None:
    assert torch.zeros(0, 3).cummax(0).values.shape == (0, 3)
    assert torch.tensor(3.0).cummin(0).indices.item() == 0


# The most that a result may be off, in units of its last place.
MOST = {"sin": 1.0, "cos": 1.0, "expm1": 2.0, "log1p": 1.5, "sinh": 3.0, "cosh": 3.0}


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long double is no wider than double here")
@pytest.mark.parametrize("name", MOST)
def test_float64_functions(name: str) -> None:
    rng = np.random.default_rng(0)
    sizes = (1e-300, 1e-20, 1e-3, 0.1, 1, 30, 300, 3e5)
    special = [0.0, -0.0, 709.0, -1.0, 1e6, 5e-324, 1e22, np.inf, -np.inf, np.nan]
    x = np.concatenate([*(rng.standard_normal(5000) * s for s in sizes), special, np.arange(1, 5000) * np.pi / 2])
    got = getattr(torch, name)(torch.from_numpy(x)).numpy()
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.longdouble))
        want = exact.astype(np.float64)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(want[finite]))
    off = np.abs(got[finite] - exact[finite]) / np.spacing(np.maximum(np.abs(want[finite]), 1e-300))
    assert off.max() <= MOST[name]


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000])
def test_extremes_of_float64(name: str, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((4, n))
    x[2, n // 2] = np.nan
    np.testing.assert_array_equal(getattr(torch, name)(torch.from_numpy(x), 1).numpy(), getattr(np, name)(x, 1))
    np.testing.assert_array_equal(getattr(torch, name)(torch.from_numpy(x[:2])).numpy(), getattr(np, name)(x[:2]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 700), (5, 257), (9, 31), (4, 1), (2, 3, 300)], ids=str)
def test_running_sums_of_two_byte_floats(shape: tuple[int, ...], dtype: str) -> None:
    kind = getattr(torch, dtype)
    x = torch.from_numpy(np.random.default_rng(1).uniform(-1, 1.01, shape).astype(np.float32)).to(kind)
    wide = x.float().numpy()
    for name, join in (("cumsum", np.add), ("cumprod", np.multiply)):
        want = torch.from_numpy(join.accumulate(wide, axis=-1, dtype=np.float32)).to(kind).float().numpy()
        for given in (x, torch.stack([x, x], -1)[..., 0], torch.cat([x, x], -1)[..., : shape[-1]]):
            np.testing.assert_array_equal(getattr(given, name)(-1).float().numpy(), want)
        target = x.clone()
        getattr(target, name + "_")(-1)
        np.testing.assert_array_equal(target.float().numpy(), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float32", "float64"])
def test_extremes_of_long_rows(dtype: str) -> None:
    for n in (31, 33, 511, 1025, 5000, 70_001):
        for at in (0, n // 2, n - 2, n - 1):
            x = np.full(n, 5, dtype)
            x[at] = 9
            x[n - 1 - at] = 2
            given = torch.from_numpy(x)
            assert (given.max().item(), given.min().item()) == (x.max(), x.min())
            assert [v.item() for v in torch.aminmax(given)] == [x.min(), x.max()]
            if x.dtype.kind == "f":
                x[at] = np.nan
                assert np.isnan([given.max().item(), given.min().item()]).all()
