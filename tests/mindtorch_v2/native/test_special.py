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


TURNS = np.concatenate([spread(-20, 20), spread(-1e6, 1e6), np.arange(-400, 400) * (math.pi / 2)])
SIZES = np.concatenate([spread(-3, 3), 10.0 ** spread(-37, 37), -(10.0 ** spread(-37, 37))])
# float32 functions that are worked out in double by short formulas: the error in units of the last place.
SINGLE: list[tuple[str, Callable[[Any], Any], Any, float]] = [
    ("sin", np.sin, TURNS, 0.65),
    ("cos", np.cos, TURNS, 0.65),
    ("tan", np.tan, TURNS, 0.55),
    ("atan", np.arctan, SIZES, 0.6),
    ("erfc", scipy_special.erfc, np.concatenate([spread(-6, 9.1), SIZES]), 0.6),
    ("lgamma", scipy_special.gammaln, np.concatenate([spread(0.01, 60), 10.0 ** spread(-30, 30)]), 0.6),
    ("lgamma", scipy_special.gammaln, spread(-2.4, -0.01), 0.75),
]


@pytest.mark.parametrize("case", SINGLE, ids=lambda c: str(c[0]))
def test_short_formulas(case: tuple[str, Callable[[Any], Any], Any, float]) -> None:
    name, exact, x, most = case
    given = x.astype(np.float32)
    with np.errstate(all="ignore"):
        want = exact(given.astype(np.float64))
        step = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    usual = (np.abs(want) > np.finfo(np.float32).tiny) & (np.abs(want) < np.finfo(np.float32).max)
    got = getattr(torch, name)(torch.from_numpy(given)).numpy()
    error = np.abs(got.astype(np.float64) - want)[usual] / step[usual]
    assert error.max() <= most, (given[usual][error.argmax()], error.max())
    # Every place in a row, and every length of one, gives the same number.
    for length in (1, 7, 17, 300):
        np.testing.assert_array_equal(
            getattr(torch, name)(torch.from_numpy(given[3 : 3 + length])).numpy(), got[3 : 3 + length]
        )


def test_ends_of_short_formulas() -> None:
    inf, tiny = math.inf, 1e-45
    given = torch.tensor([0.0, -0.0, tiny, -tiny])
    for name in ("sin", "tan", "atan"):
        np.testing.assert_array_equal(getattr(torch, name)(given).numpy().view(np.int32), given.numpy().view(np.int32))
    far = torch.tensor([inf, -inf, 3e38, -3e38])
    cases: list[tuple[str, Any]] = [
        ("atan", np.array([1, -1, 1, -1], np.float32) * np.float32(math.pi / 2)),
        ("erfc", [0, 2, 0, 2]),
        ("lgamma", [inf, inf, inf, inf]),
    ]
    for name, ends in cases:
        np.testing.assert_array_equal(getattr(torch, name)(far).numpy(), ends)
    for name in ("sin", "cos", "tan"):
        assert np.isnan(getattr(torch, name)(torch.tensor([inf, -inf, math.nan])).numpy()).all()
        assert np.isnan(getattr(torch, name)(torch.tensor([1.0, math.nan])).numpy()).tolist() == [False, True]
    for name in ("atan", "erfc", "lgamma"):
        for other in (-0.5, 0.5):
            got = np.isnan(getattr(torch, name)(torch.tensor([math.nan, other, -math.nan])).numpy())
            assert got.tolist() == [True, False, True]
    whole = torch.tensor([0.0, -0.0, -1.0, -2.0, -8388608.0, -1e30])
    assert torch.lgamma(whole).tolist() == [inf] * 6
    assert torch.lgamma(torch.tensor([1.0, 2.0])).tolist() == [0, 0]
    assert torch.lgamma(torch.tensor([1.0, 2.0, -0.5])).tolist()[:2] == [0, 0]


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


# -- functions of special.cpp ---------------------------------------------------------------------------------------
FAR = np.array([0.0, -0.0, np.nan, 1e-300, 1e-30, -1e-30])
TAILS = np.concatenate([spread(1e-6, 1 - 1e-6), 10.0 ** -np.linspace(1, 300, 500), [0.0, 1.0, -0.1, 1.1, np.nan]])
ONE: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("bessel_j0", scipy_special.j0, np.concatenate([spread(-40, 40), FAR])),
    ("bessel_j1", scipy_special.j1, np.concatenate([spread(-40, 40), FAR])),
    ("bessel_y0", scipy_special.y0, np.concatenate([spread(-1, 40), FAR])),
    ("bessel_y1", scipy_special.y1, np.concatenate([spread(-1, 40), FAR])),
    ("spherical_bessel_j0", lambda x: scipy_special.spherical_jn(0, x), np.concatenate([spread(-40, 40), FAR])),
    ("erfcx", scipy_special.erfcx, np.concatenate([spread(-5, 50), [-30.0, 1e12, np.inf], FAR])),
    ("log_ndtr", scipy_special.log_ndtr, np.concatenate([spread(-300, 5), FAR])),
    ("ndtri", scipy_special.ndtri, TAILS),
    ("entr", scipy_special.entr, np.concatenate([spread(-1, 50), FAR])),
]


@pytest.mark.parametrize("case", ONE, ids=lambda c: str(c[0]))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_operand(case: tuple[str, Callable[[Any], Any], Any], dtype: str) -> None:
    name, exact, x = case
    given = x.astype(dtype)
    with np.errstate(all="ignore"):
        expected = exact(given.astype("float64")).astype(dtype)
    # Near a zero of a Bessel function only the distance from it is known.
    relative, absolute = (2e-6, 2e-7) if dtype == "float32" else (4e-14, 1e-14)
    for laid in (torch.from_numpy(given), torch.from_numpy(np.repeat(given, 2))[::2]):
        np.testing.assert_allclose(getattr(torch.special, name)(laid).numpy(), expected, relative, absolute)
    assert getattr(torch.special, name)(torch.empty(0, 3)).shape == (0, 3)


def test_zeta_and_polygamma() -> None:
    s, q = np.meshgrid(np.linspace(1.01, 40, 60), 10.0 ** np.linspace(-3, 6, 80))
    got = torch.special.zeta(torch.from_numpy(s), torch.from_numpy(q)).numpy()
    np.testing.assert_allclose(got, scipy_special.zeta(s, q), 2e-13)
    whole, below = torch.tensor([2.0, 3.0, 4.0, 2.0, 2.5]).double(), torch.tensor([-3.5, -0.25, -4503599.5, -3, -0.5])
    given = torch.special.zeta(whole, below.double()).tolist()
    assert abs(given[0] - (math.pi**2 / 2 + sum((k + 0.5) ** -2 for k in range(4)))) < 1e-12
    assert given[3] == math.inf and math.isnan(given[4])
    x = np.concatenate([spread(0.1, 30), [-0.5, -1.5]])
    for n in (0, 2, 3, 7):
        got = torch.polygamma(n, torch.from_numpy(x)).numpy()
        expected = scipy_special.digamma(x) if n == 0 else (-1) ** (n + 1) * math.factorial(n) * torch.special.zeta(
            n + 1.0, torch.from_numpy(x)).numpy()  # fmt: skip
        np.testing.assert_allclose(got, expected, 1e-12, 1e-14)


def test_polynomials_of_every_degree() -> None:
    x, n = np.meshgrid(np.linspace(-1, 1, 41), [-3, 0, 1, 2, 5, 60, 16384, 20000, 10**6, 2**62])
    angle = np.arccos(x)
    got = torch.special.chebyshev_polynomial_t(torch.from_numpy(x), torch.from_numpy(n)).numpy()
    expected = np.where(n < 0, 0.0, np.cos(n * angle))
    np.testing.assert_allclose(got[n <= 20000], expected[n <= 20000], 0, 1e-9)
    assert np.abs(got).max() <= 1 + 1e-9
    for name, exact in (("hermite_polynomial_h", scipy_special.eval_hermite),
                        ("hermite_polynomial_he", scipy_special.eval_hermitenorm),
                        ("laguerre_polynomial_l", scipy_special.eval_laguerre),
                        ("legendre_polynomial_p", scipy_special.eval_legendre)):  # fmt: skip
        near = (n >= 0) & (n <= 60)
        got = getattr(torch.special, name)(torch.from_numpy(x[near]), torch.from_numpy(n[near])).numpy()
        np.testing.assert_allclose(got, exact(n[near], x[near]), 1e-9, 1e-9)
    shifted = torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.25, 1.0]), 7.0).tolist()
    assert shifted == pytest.approx(torch.special.chebyshev_polynomial_u(torch.tensor([-0.5, 1.0]), 7.0).tolist())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mantissas_and_exponents(dtype: str) -> None:
    given = np.array([[0.0, -0.0, 1.0, -3.5], [6e4, 6e-8, np.inf, np.nan]]).astype(dtype)
    for x in (torch.from_numpy(given), torch.from_numpy(given).t()):
        mantissa, exponent = torch.frexp(x)
        expected = np.frexp(x.numpy())
        np.testing.assert_array_equal(mantissa.numpy(), expected[0])
        finite = np.isfinite(x.numpy())
        np.testing.assert_array_equal(exponent.numpy()[finite], expected[1][finite])
        back = torch.ldexp(mantissa, exponent)
        np.testing.assert_array_equal(back.numpy()[finite], x.numpy()[finite])


def test_an_out_that_is_an_input_is_written_last() -> None:
    """Kernels that read after they write go straight to an `out=` of its own memory only."""
    x = torch.arange(6.0).reshape(2, 3)
    expected = x.flip(0)
    index = torch.tensor([1, 0])
    assert torch.equal(torch.index_select(x, 0, index, out=torch.empty(2, 3)), expected)
    values, places = torch.empty(2, 3), torch.empty(2, 3, dtype=torch.int64)
    torch.cummax(x, 1, out=(values, places))
    assert torch.equal(values, x) and places.tolist() == [[0, 1, 2], [0, 1, 2]]
    both = torch.stack([x, x])
    torch.cummax(both[0], 1, out=(both[1], places))
    assert torch.equal(both[1], x)
