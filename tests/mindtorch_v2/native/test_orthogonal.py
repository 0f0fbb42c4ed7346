"""Orthogonal factors, spectra, parts of factors and cross products of small matrices: as PyTorch's, signs included."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has kernels of its own")
NATIVE: Any = None if IS_ORACLE else submodule("_native")
SHAPES = ((1, 1), (4, 4), (3, 5), (5, 3), (2, 3, 6, 4), (32, 32), (40, 33), (2, 70, 70), (33, 150), (101, 65))
# Both libraries round, in another order, and the condition of the matrices is in the hundreds: two builds of ours are
# 2.5e-5 apart.
BOUND = {"float32": 5e-5, "float64": 1e-12}


def pair(dtype: str, *shape: int) -> tuple[Any, Any]:
    """The same numbers here and there."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=getattr(torch, dtype))
    there = _oracle.load()
    return x, there.from_numpy(x.numpy().copy())


def close(found: Any, expected: Any, dtype: str) -> None:
    assert tuple(found.shape) == tuple(expected.shape)
    far = abs(found.numpy() - expected.numpy()).max(initial=0)
    assert far <= BOUND[dtype] * max(1.0, abs(expected.numpy()).max(initial=0))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("shape", SHAPES)
def test_as_pytorch(dtype: str, shape: tuple[int, ...]) -> None:
    x, y = pair(dtype, *shape)
    there = _oracle.load()
    for mode in ("reduced", "complete", "r"):
        for ours, theirs in zip(torch.linalg.qr(x, mode), there.linalg.qr(y, mode)):
            close(ours, theirs, dtype)
    for ours, theirs in ((x, y), (x.mT, y.mT)):
        close(torch.linalg.svdvals(ours), there.linalg.svdvals(theirs), dtype)
        for a, b in zip(torch.linalg.lu(ours), there.linalg.lu(theirs)):
            close(a, b, dtype)
    if shape[-1] == shape[-2]:
        for half in ("L", "U"):
            close(torch.linalg.eigvalsh(x, half), there.linalg.eigvalsh(y, half), dtype)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_of_less_than_full_rank(dtype: str) -> None:
    there = _oracle.load()
    x = torch.zeros(4, 3, dtype=getattr(torch, dtype))
    x[0, 1] = x[2, 1] = 2.0
    for one in (x, torch.zeros_like(x), x * 1e-30, x * 1e30):
        other = there.from_numpy(one.numpy().copy())
        for ours, theirs in zip(torch.linalg.qr(one), there.linalg.qr(other)):
            close(ours, theirs, dtype)
        close(torch.linalg.svdvals(one), there.linalg.svdvals(other), dtype)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_least_squares(dtype: str) -> None:
    there = _oracle.load()
    for a, b in (((4, 4), (4, 2)), ((3, 7, 5), (3, 7, 1)), ((2, 2, 6, 6), (2, 2, 6, 3)), ((5, 3, 2), (5, 3, 4))):
        (x, y), (right, other) = pair(dtype, *a), pair(dtype, *b)
        ours, theirs = torch.linalg.lstsq(x, right), there.linalg.lstsq(y, other)
        for found, expected in zip(ours, theirs):
            close(found, expected, dtype)
    # Without full rank LAPACK is asked.
    flat = torch.ones(3, 4, 4, dtype=getattr(torch, dtype))
    assert torch.linalg.lstsq(flat, flat[:, :, :1]).rank.tolist() == [1, 1, 1]


def test_what_is_not_finite_is_not_served() -> None:
    x = torch.eye(3)
    x[1, 1] = float("nan")
    with pytest.raises(RuntimeError, match="non-finite"):
        torch.linalg.svdvals(x)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int64", "complex64"))
def test_cross(dtype: str) -> None:
    there = _oracle.load()
    for shape, other, dim in (((3,), (3,), 0), ((4, 3), (1, 3), -1), ((3, 5), (3, 5), 0), ((2, 3, 4), (2, 3, 1), 1)):
        a, b = (torch.randn(s).mul(9).to(getattr(torch, dtype)) for s in (shape, other))
        expected = there.linalg.cross(there.from_numpy(a.numpy()), there.from_numpy(b.numpy()), dim=dim)
        close(torch.linalg.cross(a, b, dim=dim), expected, "float32")


def test_operands_are_checked() -> None:
    x, y, z = (NATIVE.Storage(64) for _ in range(3))
    f32 = 6
    assert NATIVE.qr_small(0, 2, 2, f32, x, 0, 2, y, 0, z, 0)
    for call in (
        lambda: NATIVE.qr_small(1, 5, 4, f32, x, 0, 4, y, 0, z, 0),
        lambda: NATIVE.qr_small(1, 4, 4, f32, x, 1, 4, y, 0, z, 0),
        lambda: NATIVE.qr_small(1, 4, 4, f32, x, 0, 4, y, 1, z, 0),
        lambda: NATIVE.qr_small(1, 4, 4, f32, x, 0, 4, y, 0, z, 1),
        lambda: NATIVE.qr_small(1, 4, 4, f32, x, 0, 5, None, 0, z, 0),
        lambda: NATIVE.qr_small(1, 4, 4, f32, x, 0, 3, None, 0, z, 0),
        lambda: NATIVE.qr_small(1, 33, 1, f32, x, 0, 1, None, 0, z, 0),
        lambda: NATIVE.qr_small(1, 0, 1, f32, x, 0, 1, None, 0, z, 0),
        lambda: NATIVE.qr_small(-1, 2, 2, f32, x, 0, 2, None, 0, z, 0),
        lambda: NATIVE.qr_small(1 << 62, 4, 4, f32, x, 0, 4, None, 0, z, 0),
        lambda: NATIVE.qr_small(1, 2, 2, 4, x, 0, 2, None, 0, z, 0),
        lambda: NATIVE.qr_blocked(1, 4, 4, f32, x, 1, 4, y, 0, z, 0),
        lambda: NATIVE.qr_blocked(1, 4, 4, f32, x, 0, 4, y, 1, z, 0),
        lambda: NATIVE.qr_blocked(1, 4, 4, f32, x, 0, 4, y, 0, z, 1),
        lambda: NATIVE.qr_blocked(1, 4, 4, f32, x, 0, 3, None, 0, z, 0),
        lambda: NATIVE.qr_blocked(1, 4, 4, 4, x, 0, 4, None, 0, z, 0),
        lambda: NATIVE.qr_blocked(1 << 62, 4, 4, f32, x, 0, 4, None, 0, z, 0),
        lambda: NATIVE.lstsq_small(1, 4, 4, f32, x, 1, y, 0, z, 0, 1, 1e4),
        lambda: NATIVE.lstsq_small(1, 4, 4, f32, x, 0, y, 0, z, 0, 5, 1e4),
        lambda: NATIVE.lstsq_small(1, 2, 4, f32, x, 0, y, 0, z, 0, 1, 1e4),
        lambda: NATIVE.spectrum_small(1, 4, 5, f32, x, 0, y, 0, False),
        lambda: NATIVE.spectrum_small(1, 4, 4, f32, x, 0, y, 13, False),
        lambda: NATIVE.spectrum_small(1, 2, 4, f32, x, 0, y, 0, True),
        lambda: NATIVE.unpack_lu(1, 4, 4, f32, x, 0, y, 13, None, 0, z, 0, z, 0),
        lambda: NATIVE.unpack_lu(1, 4, 4, f32, x, 0, y, 0, z, 1, z, 0, z, 0),
        lambda: NATIVE.unpack_lu(1, 4, 4, f32, x, 0, y, 0, None, 0, z, 1, z, 0),
        lambda: NATIVE.unpack_lu(1, 4, 4, f32, x, 0, y, 0, None, 0, z, 0, z, 1),
        lambda: NATIVE.cross3(x, 0, (3, 1), f32, y, 0, (3, 1), f32, z, 0, (3, 1), f32, (6, 3)),
        lambda: NATIVE.cross3(x, 0, (2, 1), f32, y, 0, (2, 1), f32, z, 0, (2, 1), f32, (2, 2)),
        lambda: NATIVE.cross3(x, 0, (), f32, y, 0, (), f32, z, 0, (), f32, ()),
        lambda: NATIVE.cross3(x, 0, (1,), 4, y, 0, (1,), 4, z, 0, (1,), 4, (3,)),
    ):
        with pytest.raises((ValueError, RuntimeError, OverflowError)):
            call()
    # Pivots outside of the rows.
    memoryview(y).cast("B")[:4] = (9).to_bytes(4, "little")
    assert not NATIVE.unpack_lu(1, 2, 2, f32, x, 0, y, 0, z, 0, x, 4, x, 8)
