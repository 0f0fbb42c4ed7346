"""Error functions, logarithms and the like against mathematics with many digits.

Invariant: errors stay within a few units of the last place, wherever the formulas change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

scipy_special = pytest.importorskip("scipy.special")


def spread(low: float, high: float) -> Any:
    return np.concatenate([np.linspace(low, high, 4001), np.random.default_rng(2).uniform(low, high, 2000)])


CASES: list[tuple[str, Callable[[Any], Any], Any, float]] = [
    ("erf", scipy_special.erf, spread(-6, 6), 2),
    ("erfc", np.vectorize(math.erfc), spread(-6, 26), 4),
    ("erfinv", scipy_special.erfinv, spread(-0.999999, 0.999999), 6),
    ("exp2", np.exp2, spread(-1070, 1023), 2),
    ("log2", np.log2, np.exp2(spread(-300, 300)), 2),
    ("log10", np.log10, np.exp2(spread(-300, 300)), 2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c[0]))
def test_values(case: tuple[str, Callable[[Any], Any], Any, float]) -> None:
    name, exact, x, most = case
    for dtype in (np.float64, np.float32):
        with np.errstate(all="ignore"):
            given = x.astype(dtype)
            given = given[np.isfinite(given) & (given != 0)]
            want = exact(given.astype(np.float64))
            rounded = want.astype(dtype)
            step = np.spacing(np.abs(rounded)).astype(np.float64)
        got = getattr(torch, name)(torch.from_numpy(given)).numpy()
        usual = np.isfinite(rounded) & (np.abs(rounded) > np.finfo(dtype).tiny)
        error = np.abs(got.astype(np.float64) - want)[usual] / step[usual]
        assert error.max() <= most, (name, dtype, given[usual][error.argmax()], error.max())


def test_ends() -> None:
    inf, nan = math.inf, math.nan
    for dtype in (torch.float32, torch.float64):

        def at(name: str, *values: float, dtype: Any = dtype) -> list[float]:
            found: list[float] = getattr(torch, name)(torch.tensor(values, dtype=dtype)).tolist()
            return found

        assert at("erf", inf, -inf, 0.0) == [1, -1, 0] and math.isnan(at("erf", nan)[0])
        assert at("erfc", inf, -inf, 0.0, 100.0) == [0, 2, 1, 0] and math.isnan(at("erfc", nan)[0])
        assert at("erfinv", 1.0, -1.0, 0.0) == [inf, -inf, 0]
        assert all(math.isnan(v) for v in at("erfinv", 1.5, -2.0, nan, inf))
        assert at("exp2", inf, -inf, 0.0, 2000.0, -2000.0) == [inf, 0, 1, inf, 0]
        for name in ("log2", "log10"):
            assert at(name, inf, 0.0, 1.0) == [inf, -inf, 0] and all(math.isnan(v) for v in at(name, -1.0, -inf, nan))
        assert math.copysign(1, at("erf", -0.0)[0]) == -1 and math.copysign(1, at("erfinv", -0.0)[0]) == -1


def test_two_operands() -> None:
    inf, nan = math.inf, math.nan
    for dtype in (torch.float32, torch.float64):
        a = torch.tensor([inf, -inf, inf, 0.0, 1.0, nan, -inf], dtype=dtype)
        b = torch.tensor([inf, -inf, -inf, 0.0, nan, 1.0, 3.0], dtype=dtype)
        for name, base in (("logaddexp", math.log(2)), ("logaddexp2", 1.0)):
            got = getattr(torch, name)(a, b).tolist()
            assert got[:3] == [inf, -inf, inf] and got[6] == 3.0 and abs(got[3] - base) < 1e-6
            assert math.isnan(got[4]) and math.isnan(got[5])
        kind = np.float32 if dtype is torch.float32 else np.float64
        values = np.array([0.0, -0.0, 1.0, -1.0, inf, -inf, 1e-310, 5e-324, 3.5], kind)
        one, two = (v.ravel().copy() for v in np.meshgrid(values, values))
        np.testing.assert_array_equal(torch.nextafter(torch.from_numpy(one), torch.from_numpy(two)).numpy(),
                                      np.nextafter(one, two))  # fmt: skip


def test_remainders_and_lengths_of_doubles() -> None:
    rng = np.random.default_rng(5)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.5, 5e-324, 1.7e308, 1e150, 2.0**50, 2.0**53])
    scale = 10.0 ** rng.integers(-300, 300, 3000)
    for a, b in (
        (rng.standard_normal(3000) * 1e6, rng.standard_normal(3000)),
        (rng.integers(-99, 99, 3000) * 0.1, rng.integers(-99, 99, 3000) * 0.1),
        (rng.standard_normal(3000) * scale, rng.standard_normal(3000) * scale[::-1]),
        (np.repeat(ends, 12), np.tile(ends, 12)),
    ):
        x, y = torch.tensor(a), torch.tensor(b)
        with np.errstate(all="ignore"):
            known, found = np.fmod(a, b), torch.fmod(x, y).numpy()
            np.testing.assert_array_equal(found, known)
            np.testing.assert_array_equal(np.signbit(found)[known == 0], np.signbit(known)[known == 0])
            length = np.hypot(a, b)
            np.testing.assert_allclose(torch.hypot(x, y).numpy(), length, rtol=3e-16, atol=5e-324)
