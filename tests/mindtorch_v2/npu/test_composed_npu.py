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
    for name, given in (
        ("fft", x),
        ("ifft", x),
        ("rfft", x),
        ("fft", t.complex(x, x.flip(0))),
        ("ifft", t.complex(x, x.flip(0))),
    ):
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


INF, NAN = float("inf"), float("nan")
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    3e38,
    1e-38,
    1e-45,
    -1e-45,
    65504.0,
    6e-8,
    *(float(word) for word in ("inf", "-inf", "nan")),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_neighbours_and_exponents_of_every_kind_of_number(dtype: str) -> None:
    t = _oracle.load()
    x = t.tensor(SPECIAL, dtype=t.float64).to(getattr(t, dtype))
    a, b = x.reshape(-1, 1), x.reshape(1, -1)
    moved = torch.nextafter(_rows.arguments(a), _rows.arguments(b))
    _oracle.assert_same(_rows.results(moved, dtype), t.nextafter(a, b), where=dtype, rtol=0, atol=0)
    found = torch.frexp(_rows.arguments(x))
    _oracle.assert_same(_rows.results(tuple(found), dtype), tuple(t.frexp(x)), where=dtype, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_modified_bessel_functions_far_and_near(name: str) -> None:
    t = _oracle.load()
    x = t.cat([t.linspace(-80, 80, 641), t.tensor([0.0, 1e-20, 1e-5, 0.999, 1.001, 49.9, 50.1, 1000.0, 1e6])])
    if name[-1] != "e":
        x = x[x.abs() < 85]
    exact = getattr(t.special, name)(x.double())
    actual = _oracle.to_oracle(_rows.results(getattr(torch.special, name)(_rows.arguments(x)), name)).double()
    error = ((actual - exact).abs() / exact.abs().clamp_min(1e-30))[exact != 0]
    # exp(x) alone is that far off in float32 where x is large.
    assert error.max() < (1e-5 if name[-1] != "e" else 2e-6), float(error.max())
    assert (actual[exact == 0] == 0).all()


TAILS = {
    "erfcx": [-5.0, -1.0, 0.0, 1e-10, 0.5, 4.0, 9.99, 10.01, 100.0, 1e20, float("inf")],
    "log_ndtr": [-1e10, -100.0, -38.0, -5.0, -1.0001, -0.9999, 0.0, 3.0, 9.0, 40.0],
    "ndtri": [0.0, 1e-38, 1e-10, 0.001, 0.0242, 0.0243, 0.3, 0.5, 0.7, 0.999, 1.0, -0.1, 1.1],
    "modified_bessel_k0": [0.0, 1e-30, 1e-3, 0.0099, 0.0101, 0.5, 2.0, 30.0, 80.0, -1.0],
    "modified_bessel_k1": [0.0, 1e-30, 1e-3, 0.0099, 0.0101, 0.5, 2.0, 30.0, 80.0, -1.0],
    "scaled_modified_bessel_k0": [1e-30, 0.0099, 0.0101, 2.0, 80.0, 1000.0],
    "scaled_modified_bessel_k1": [1e-30, 0.0099, 0.0101, 2.0, 80.0, 1000.0],
    "spherical_bessel_j0": [0.0, 1e-20, 0.4, -3.0, 1000.0, float("inf")],
}


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_bessel_functions(name: str) -> None:
    t = _oracle.load()
    special = t.tensor([0.0, 1e-20, 1e-3, 49.9, 50.1, 1000.0, float("inf"), float("nan"), -1.0, -70.0])
    x = t.cat([t.linspace(0.01, 90, 500), special])
    exact = getattr(t.special, name)(x.double()).float()
    actual = _rows.results(getattr(torch.special, name)(_rows.arguments(x)), name)
    # PyTorch's own approximations are that far off between 5 and 6.
    _oracle.assert_same(actual, exact, where=name, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TAILS)
def test_sums_of_terms_near_and_far(name: str) -> None:
    t = _oracle.load()
    x = t.tensor(TAILS[name])
    actual = _rows.results(getattr(torch.special, name)(_rows.arguments(x)), name)
    exact = getattr(t.special, name)(x.double()).float()
    _oracle.assert_same(actual, exact, where=name, rtol=1e-6, atol=1e-37)


def test_polynomials_by_number_and_by_tensor() -> None:
    t = _oracle.load()
    x, degrees = t.linspace(-1.5, 1.5, 13), t.tensor([[0.0], [1.0], [2.0], [7.0], [-1.0], [3.9]])
    for name in (
        "chebyshev_polynomial_t",
        "chebyshev_polynomial_w",
        "hermite_polynomial_he",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
        "shifted_chebyshev_polynomial_u",
    ):
        for n in (5, degrees):
            exact = getattr(t.special, name)(x.double(), n if isinstance(n, int) else n.double()).float()
            actual = getattr(torch.special, name)(_rows.arguments(x), n if isinstance(n, int) else _rows.arguments(n))
            _oracle.assert_same(_rows.results(actual, name), exact, where=name, rtol=1e-5, atol=1e-5)


def test_zeta() -> None:
    t = _oracle.load()
    x, q = t.tensor([[2.0], [1.5], [30.0], [1.0], [0.5], [3.0]]), t.tensor([1.0, 0.1, 100.0, -0.5, -2.0, 5.0])
    actual = torch.special.zeta(_rows.arguments(x), _rows.arguments(q))
    _oracle.assert_same(
        _rows.results(actual, "zeta"),
        t.special.zeta(x.double(), q.double()).float(),
        where="zeta",
        rtol=1e-6,
        atol=1e-37,
    )


@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (3, 6, 4), (3, 4, 6), (0, 3, 3), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_lu_factorizations(shape: tuple[int, ...], dtype: str) -> None:
    t = _oracle.load()
    A = t.randn(shape, dtype=getattr(t, dtype), generator=t.Generator().manual_seed(5))
    LU, pivots = torch.linalg.lu_factor(_rows.arguments(A))
    want = t.linalg.lu_factor(A)
    _oracle.assert_same(_rows.results(LU, "LU"), want[0], where="LU", rtol=1e-4, atol=1e-5)
    _oracle.assert_same(_rows.results(pivots, "pivots"), want[1], where="pivots")
    P, L, U = torch.linalg.lu(_rows.arguments(A))
    _oracle.assert_same(_rows.results(P @ L @ U, "product"), A, where="product", stride=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5)])
def test_singular_values(dtype: str, shape: tuple[int, ...]) -> None:
    t = _oracle.load()
    A = t.randn(shape, dtype=getattr(t, dtype), generator=t.Generator().manual_seed(2))
    U, S, Vh = torch.linalg.svd(_rows.arguments(A), full_matrices=False)
    _oracle.assert_same(_rows.results(S, "values"), t.linalg.svdvals(A), where="values", rtol=1e-4, atol=1e-5)
    back = (U * S.unsqueeze(-2)) @ Vh
    _oracle.assert_same(_rows.results(back, "product"), A, where="product", stride=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("half", ["L", "U"])
def test_eigenvalues(dtype: str, half: str) -> None:
    """Opposite ones too, which a singular value decomposition alone would mix."""
    t = _oracle.load()
    Q = t.linalg.qr(t.randn(2, 5, 5, dtype=getattr(t, dtype), generator=t.Generator().manual_seed(1)))[0]
    values = t.tensor([[-3.0, -1.0, 0.0, 1.0, 3.0], [2.0, 2.0, 2.5, 7.0, 100.0]])
    A = Q @ t.diag_embed(values).to(Q.dtype) @ Q.mH
    other = A.triu() if half == "U" else A.tril()  # the rest is not looked at
    L, V = torch.linalg.eigh(_rows.arguments(other), UPLO=half)
    _oracle.assert_same(_rows.results(L, "values"), values, where="values", rtol=1e-4, atol=2e-5)
    back = V @ torch.diag_embed(L).to(V.dtype) @ V.mH
    _oracle.assert_same(_rows.results(back, "product"), A, where="product", stride=False, rtol=1e-4, atol=1e-4)
    assert torch.linalg.eigvalsh(_rows.arguments(other), UPLO=half).device.type == "npu"


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (4, 4), (1, 1), (0, 3)])
def test_reflections(dtype: str, shape: tuple[int, ...]) -> None:
    t = _oracle.load()
    A = t.randn(shape, dtype=getattr(t, dtype), generator=t.Generator().manual_seed(8))
    if shape == (4, 4):
        A[1:, 0] = 0  # nothing to reflect
    want, got = t.geqrf(A), torch.geqrf(_rows.arguments(A))
    for mine, theirs in zip(got, want):
        _oracle.assert_same(_rows.results(mine, "geqrf"), theirs, where="geqrf", rtol=1e-4, atol=1e-5)


def test_a_singular_matrix_is_reported() -> None:
    A = torch.tensor([[1.0, 2.0], [2.0, 4.0]], device="npu")
    with pytest.raises(torch.linalg.LinAlgError, match="the input matrix is singular"):
        torch.linalg.solve(A, A)
    assert torch.linalg.lu_factor_ex(A).info.item() == 2


@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
def test_least_squares(driver: str | None) -> None:
    t = _oracle.load()
    A, b = (t.randn(2, 6, n, generator=t.Generator().manual_seed(n)) for n in (4, 3))
    want = t.linalg.lstsq(A, b, driver=driver)
    got = torch.linalg.lstsq(_rows.arguments(A), _rows.arguments(b), driver=driver)
    for mine, theirs in zip(got, want):
        _oracle.assert_same(_rows.results(mine, "lstsq"), theirs, where="lstsq", stride=False, rtol=1e-3, atol=1e-4)


def test_least_squares_without_full_rank() -> None:
    """The shortest solution; PyTorch then has no residuals, which no rule can know."""
    t = _oracle.load()
    A, b = (t.randn(6, n, generator=t.Generator().manual_seed(n)) for n in (4, 3))
    A[..., 3] = A[..., 2]
    want = t.linalg.lstsq(A, b, driver="gelsd")
    got = torch.linalg.lstsq(_rows.arguments(A), _rows.arguments(b), driver="gelsd")
    for mine, theirs in ((got.solution, want.solution), (got.rank, want.rank)):
        _oracle.assert_same(_rows.results(mine, "lstsq"), theirs, where="lstsq", stride=False, rtol=1e-3, atol=1e-4)


def test_histograms() -> None:
    t = _oracle.load()
    x = t.randn(200, generator=t.Generator().manual_seed(3))
    x[0] = float("nan")
    edges, weight = t.tensor([-1.0, -0.2, 0.0, 0.7, 2.0]), t.rand(200, generator=t.Generator().manual_seed(4))
    x[1], x[2] = 2.0, -1.0
    for options in ({}, {"weight": weight}, {"density": True}):
        moved = {k: _rows.arguments(v) for k, v in options.items()}
        want = t.histogram(x, edges, **options)
        got = torch.histogram(_rows.arguments(x), _rows.arguments(edges), **moved)
        _oracle.assert_same(
            _rows.results(tuple(got), "histogram"), tuple(want), where="histogram", rtol=1e-5, atol=1e-5
        )
        want = t.histogram(x[1:], 7, **{k: v[1:] if isinstance(v, t.Tensor) else v for k, v in options.items()})
        got = torch.histogram(
            _rows.arguments(x[1:].clone()),
            7,
            **{k: v[1:] if isinstance(v, torch.Tensor) else v for k, v in moved.items()},
        )
        _oracle.assert_same(
            _rows.results(tuple(got), "histogram"), tuple(want), where="histogram", rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("n", [21, 30, 170, 171, 2**31 - 1])
def test_polygamma_of_orders_whose_factorial_is_large(n: int) -> None:
    x = torch.tensor([0.5, 1.0, 2.0])
    _oracle.assert_same(
        torch.polygamma(n, x.to("npu")).cpu(), _oracle.to_oracle(torch.polygamma(n, x)), where="polygamma", rtol=1e-4
    )


CONVOLUTIONS = [
    (rank, across, how)
    for rank in (1, 2, 3)
    for across in (False, True)
    for how in (
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2, "groups": 2},
        {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
    )
]


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int64"])
@pytest.mark.parametrize(("rank", "across", "how"), CONVOLUTIONS)
def test_convolutions_without_the_matrix_unit(rank: int, across: bool, how: dict[str, int], dtype: str) -> None:
    t = _oracle.load()
    seed = t.Generator().manual_seed(rank)

    def numbers(*shape: int) -> Any:
        made = t.randint(-5, 5, shape, generator=seed).to(getattr(t, dtype))
        return made if dtype == "int64" else (made * (1j if dtype == "complex64" else 1) + 0.5).requires_grad_()

    groups = how.get("groups", 1)
    inner = (4, 6 // groups) if across else (6, 4 // groups)
    given = numbers(2, 4, *(7, 6, 5)[:rank]), numbers(*inner, *(3, 2, 2)[:rank]), numbers(6)
    options = {**how, "output_padding": 1} if across and "stride" in how else how
    name = f"conv{'_transpose' if across else ''}{rank}d"
    mine = _rows.arguments(given)
    expected = getattr(t.nn.functional, name)(*given, **options)
    actual = getattr(torch.nn.functional, name)(*mine, **options)
    _oracle.assert_same(_rows.results(actual, name), expected, where=name)
    if dtype != "int64":
        weight = t.ones_like(expected) * 0.5
        wanted = t.autograd.grad(expected, given, weight)
        got = torch.autograd.grad(actual, mine, _rows.arguments(weight))
        _oracle.assert_same(_rows.results(list(got), name), list(wanted), where=name, stride=False, rtol=1e-5)


_A = (0.0, 1e-8, 0.1, 0.9, 1.0, 3.0, 15.0, 29.0, 31.0, 100.0, 201.0, 1e4, 1e9, INF, NAN, -1.0)
_X = (0.0, 1e-20, 0.01, 0.9, 1.4, 1.6, 4.0, 15.0, 29.0, 33.0, 60.0, 100.0, 260.0, 9.9e3, 1.01e4, 1e9, INF, NAN, -2.0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions_near_and_far(name: str, dtype: str) -> None:
    t = _oracle.load()
    a, x = (t.tensor(values, dtype=getattr(t, dtype)) for values in (_A, _X))
    mine = getattr(torch, name)(_rows.arguments(a.unsqueeze(1)), _rows.arguments(x))
    expected = getattr(t, name)(a.double().unsqueeze(1), x.double()).to(a.dtype)
    _oracle.assert_same(_rows.results(mine, name), expected, where=name)


def test_airys_function_near_and_far() -> None:
    """Closer than PyTorch's own, which is two millionths off near -2.1."""
    special = pytest.importorskip("scipy.special")
    t = _oracle.load()
    x = t.cat([t.linspace(-60, 110, 1701, dtype=t.float64), t.tensor([0.0], dtype=t.float64)])
    found = _oracle.to_oracle(_rows.results(torch.special.airy_ai(_rows.arguments(x)), "airy_ai"))
    exact = t.from_numpy(special.airy(x.numpy())[0])
    assert float((found - exact).abs().max()) < 1e-11
    edges = _rows.arguments(t.tensor([INF, -INF, NAN, 200.0]))
    assert [str(v) for v in torch.special.airy_ai(edges).tolist()] == ["nan", "nan", "nan", "0.0"]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("how", [{"size": (5, 7)}, {"size": (3, 2)}, {"size": (4, 9)}, {"scale_factor": 1.7}])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_images_of_bytes(mode: str, how: dict[str, Any], last: bool) -> None:
    """In fixed point, to the last bit as PyTorch has them."""
    t = _oracle.load()
    x = t.randint(0, 256, (2, 3, 4, 4), dtype=t.uint8, generator=t.Generator().manual_seed(1))
    x = x.contiguous(memory_format=t.channels_last) if last else x
    for smooth in (False, True) if mode != "nearest" else (False,):
        expected = t.nn.functional.interpolate(x, mode=mode, antialias=smooth, **how)
        actual = torch.nn.functional.interpolate(_rows.arguments(x), mode=mode, antialias=smooth, **how)
        _oracle.assert_same(_rows.results(actual, mode), expected, where=mode)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_sequences_of_whole_numbers_between_fractions(dtype: str) -> None:
    t = _oracle.load()
    for name, given in (
        *(("arange", given) for given in ((3.1,), (0, 3.1), (1.0, 5.000001, 2.0), (1.9, 7.2, 1.5), (5,))),
        *((name, given) for name in ("linspace", "logspace") for given in ((4.3, 0, 7), (2, 1.2, 3), (0.9, 1.9, 1))),
    ):
        mine = getattr(torch, name)(*given, dtype=getattr(torch, dtype), device="npu")
        expected = getattr(t, name)(*given, dtype=getattr(t, dtype))
        _oracle.assert_same(_rows.results(mine, name), expected, where=f"{name} {given}")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_powers(dtype: str) -> None:
    t = _oracle.load()
    expected = t.logspace(1 + 1j, 2 - 0.5j, 9, dtype=getattr(t, dtype))
    actual = torch.logspace(1 + 1j, 2 - 0.5j, 9, dtype=getattr(torch, dtype), device="npu")
    tolerance = 1e-5 if dtype == "complex64" else 1e-12  # PyTorch computes each in its own precision
    _oracle.assert_same(_rows.results(actual, "logspace"), expected, where="logspace", rtol=tolerance, atol=0.0)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_factors_of_dtypes_that_the_vendor_does_not_factor(dtype: str) -> None:
    t = _oracle.load()
    x = t.randn(2, 4, 4, dtype=getattr(t, dtype), generator=t.Generator().manual_seed(1))
    hermitian = x @ x.mH + t.eye(4)
    for name, given in (("inv", x), ("cholesky", hermitian)):
        expected = getattr(t.linalg, name)(given)
        actual = _rows.results(getattr(torch.linalg, name)(_rows.arguments(given)), name)
        _oracle.assert_same(actual, expected, where=name, rtol=1e-4, atol=1e-5)
        refused = given * 0 if name == "inv" else -given
        with pytest.raises(torch.linalg.LinAlgError, match=f"linalg.{name}: .*could not be completed"):
            getattr(torch.linalg, name)(_rows.arguments(refused))


def test_ranks_of_float64() -> None:
    t = _oracle.load()
    x = t.tensor([[3.0, NAN, 1.0, 1.0, 2.0], [5.0, 4.0, -INF, 0.0, 1e300]], dtype=t.float64)
    mine = _rows.arguments(x)
    for call in (
        lambda lib, x: lib.median(x),
        lambda lib, x: lib.nanmedian(x),
        lambda lib, x: lib.median(x, 1)[0],
        lambda lib, x: lib.kthvalue(x, 2, 1, True)[0],
        lambda lib, x: lib.histc(x.nan_to_num(0, 9, -9).clamp(-9, 9), 4),
    ):
        _oracle.assert_same(_rows.results(call(torch, mine), ""), call(t, x))
