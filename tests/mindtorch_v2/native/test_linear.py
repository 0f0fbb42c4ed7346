"""Batches of small matrices, and larger ones in blocks: factors multiply to what was given, solutions solve, what is
not regular is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has kernels of its own")
NATIVE: Any = None if IS_ORACLE else submodule("_native")
SHAPES = ((1, 1), (3, 2, 2), (50, 4, 4), (2, 3, 5, 5), (9, 16, 16), (64, 64), (2, 65, 65), (96, 96), (2, 131, 131))
BOUND = {"float32": 1e-5, "float64": 1e-13}


def some(dtype: str, *shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=getattr(torch, dtype))


def check(found: Any, expected: Any, dtype: str) -> None:
    assert found.shape == expected.shape and found.dtype is expected.dtype
    assert float((found - expected).abs().max()) <= BOUND[dtype] * float(expected.abs().max().clamp(min=1))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("shape", SHAPES)
def test_matrices(dtype: str, shape: tuple[int, ...]) -> None:
    a = some(dtype, *shape)
    n = shape[-1]
    one = torch.eye(n, dtype=a.dtype)
    good = a @ a.mT / n + one
    for x in (good, good.mT.contiguous().mT):
        low = torch.linalg.cholesky(x)
        check(low @ low.mT, x, dtype)
        assert torch.equal(low, low.tril())
        high = torch.linalg.cholesky(x, upper=True)
        check(high.mT @ high, x, dtype)
    p, low, high = torch.linalg.lu(a)
    check(p @ low @ high, a, dtype)
    skew = good + (a.triu(1) - a.triu(1).mT) / n
    check(torch.linalg.inv(skew) @ skew, one.expand(shape), dtype)
    for columns in (1, 3, 4, 70):
        right = some(dtype, *shape[:-1], columns)
        check(skew @ torch.linalg.solve(skew, right), right, dtype)
        for upper, unit in ((False, False), (True, False), (False, True), (True, True)):
            half = skew.triu() if upper else skew.tril()
            if unit:
                half = half - torch.diag_embed(half.diagonal(dim1=-2, dim2=-1)) + one
            check(half @ torch.linalg.solve_triangular(skew, right, upper=upper, unitriangular=unit), right, dtype)
    right = some(dtype, *shape[:-1])
    check((skew @ torch.linalg.solve(skew, right).unsqueeze(-1)).squeeze(-1), right, dtype)
    sign, log = torch.linalg.slogdet(skew)
    check(sign * log.exp(), torch.linalg.det(skew), dtype)


def test_what_is_not_regular() -> None:
    singular = torch.stack([torch.eye(3), torch.ones(3, 3)])
    assert torch.linalg.det(singular).tolist() == [1.0, 0.0]
    assert torch.linalg.inv_ex(singular)[1].tolist() == [0, 2]
    assert torch.linalg.lu_factor_ex(singular)[2].tolist() == [0, 2]
    assert torch.linalg.cholesky_ex(torch.stack([torch.eye(3), -torch.eye(3)]))[1].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="singular"):
        torch.linalg.solve(singular, torch.ones(2, 3))
    wide = torch.stack([torch.eye(120), torch.eye(120)])
    wide[1, 100, 100] = 0
    assert torch.linalg.det(wide).tolist() == [1.0, 0.0]
    assert torch.linalg.lu_factor_ex(wide)[2].tolist() == [0, 101]
    assert torch.linalg.inv_ex(wide)[1].tolist() == [0, 101]
    assert torch.linalg.cholesky_ex(wide)[1].tolist() == [0, 101]
    wide[1, 3, 3] = float("nan")
    assert torch.linalg.slogdet(wide)[1].isnan().tolist() == [False, True]


def test_threads_do_not_change_results() -> None:
    known = torch.get_num_threads()
    for a in (some("float32", 700, 16, 16), some("float32", 300, 300)):
        found = []
        for count in (1, 2, 16):
            torch.set_num_threads(count)
            found.append(torch.linalg.inv(a))
        torch.set_num_threads(known)
        assert all(torch.equal(found[0], f) for f in found)


def test_operands_are_checked() -> None:
    x, y, z = (NATIVE.Storage(64) for _ in range(3))
    f32 = 6
    assert NATIVE.lu_small(0, 2, f32, x, 0, y, 0, z, 0)
    for call in (
        lambda: NATIVE.lu_small(1, 5, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_small(1, 4, f32, x, 1, y, 0, z, 0),
        lambda: NATIVE.lu_small(1, 4, f32, x, 0, y, 0, z, 13),
        lambda: NATIVE.lu_small(1, 0, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_small(-1, 2, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_small(1 << 62, 64, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_small(1, 65, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_small(1, 2, 4, x, 0, y, 0, z, 0),
        lambda: NATIVE.solve_small(1, 2, f32, x, 0, None, 0, y, 0, 3, None, 0, None, 0),
        lambda: NATIVE.solve_small(1, 2, f32, x, 0, y, 0, z, 0, 9, None, 0, None, 0),
        lambda: NATIVE.solve_small(1, 2, f32, x, 0, y, 0, z, 0, -1, None, 0, None, 0),
        lambda: NATIVE.det_small(4, 2, f32, x, 0, y, 13, None, 0),
        lambda: NATIVE.cholesky_small(1, 4, f32, x, -1, y, 0),
        lambda: NATIVE.triangular_small(1, 4, f32, x, 0, y, 0, 5, True, False),
        lambda: NATIVE.lu_blocked(1, 5, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_blocked(1 << 40, 1 << 30, f32, x, 0, y, 0, z, 0),
        lambda: NATIVE.lu_blocked(1, 4, f32, x, 0, y, 0, z, 13),
        lambda: NATIVE.solve_blocked(1, 2, f32, x, 0, None, 0, y, 0, 3, None, 0, None, 0),
        lambda: NATIVE.solve_blocked(1, 2, f32, x, 0, y, 0, z, 0, 9, None, 0, None, 0),
        lambda: NATIVE.det_blocked(4, 2, f32, x, 0, y, 13, None, 0),
        lambda: NATIVE.cholesky_blocked(1, 4, 4, x, 0, y, 0),
        lambda: NATIVE.triangular_blocked(1, 4, f32, x, 0, y, 0, -5, True, False),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            call()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_determinants_of_nan(dtype: str) -> None:
    """LAPACK finds no pivot beside NaN; that does not make a matrix singular, and nothing warns."""
    nan = float("nan")
    oracle = _oracle.load()
    matrices = [[[nan, 1], [1, 2]], [[0, 1], [nan, 2]], [[0, 0], [nan, 2]], [[nan, nan], [nan, nan]], [[0, 0], [0, 0]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = [torch.linalg.det(torch.tensor(m, dtype=getattr(torch, dtype))).item() for m in matrices]
        signs = [torch.linalg.slogdet(torch.tensor(m, dtype=getattr(torch, dtype))) for m in matrices]
    theirs = [oracle.linalg.det(oracle.tensor(m, dtype=getattr(oracle, dtype))).item() for m in matrices]
    expected = [oracle.linalg.slogdet(oracle.tensor(m, dtype=getattr(oracle, dtype))) for m in matrices]
    numpy.testing.assert_equal(ours, theirs)
    numpy.testing.assert_equal([abs(s.item()) for s, _ in signs], [abs(s.item()) for s, _ in expected])
    numpy.testing.assert_equal([v.item() for _, v in signs], [v.item() for _, v in expected])
