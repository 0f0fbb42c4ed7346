"""Places, counts and distinct values of small rows: the native loops against what they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has kernels of its own")
NATIVE: Any = None if IS_ORACLE else submodule("_native")
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "float16", "bfloat16")


def some(dtype: str, *shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 6, shape, generator=generator).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_places(dtype: str) -> None:
    rows, values = some(dtype, 2, 9).sort()[0], some(dtype, 2, 5, seed=1)
    for right in (False, True):
        found = torch.searchsorted(rows, values, right=right)
        for i in range(2):
            known = rows[i].tolist()
            for j, v in enumerate(values[i].tolist()):
                assert found[i, j] == sum(k <= v if right else k < v for k in known)
    assert torch.searchsorted(rows[0], values, out_int32=True).dtype is torch.int32


def test_places_of_nan() -> None:
    rows = torch.tensor([1.0, 2.0, float("nan")])
    assert torch.searchsorted(rows, torch.tensor([float("nan"), 3.0])).tolist() == [3, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_medians(dtype: str) -> None:
    for x in (some(dtype, 3, 8), some(dtype, 8, 3).t(), some(dtype, 2, 3, 7)):
        assert x.median() == sorted(x.flatten().tolist())[(x.numel() - 1) // 2]
        values, places = x.median(-1)
        expected = x.sort(-1)[0]
        middle = (x.shape[-1] - 1) // 2
        assert values.tolist() == expected[..., middle].tolist()
        assert x.gather(-1, places.unsqueeze(-1)).squeeze(-1).tolist() == values.tolist()
    assert torch.tensor(3, dtype=getattr(torch, dtype)).median(0)[1] == 0


def test_medians_with_nan() -> None:
    nan = float("nan")
    x = torch.tensor([[3.0, nan, 1.0, nan], [2.0, 1.0, 4.0, 3.0], [nan, nan, nan, nan]])
    values, places = x.median(1)
    assert values[1] == 2.0 and values.isnan().tolist() == [True, False, True]
    assert places.tolist() == [1, 0, 0]
    assert x.nanmedian(1)[0][:2].tolist() == [1.0, 2.0]
    assert x.median().isnan() and x.nanmedian() == 2.0


@pytest.mark.parametrize("dtype", (*DTYPES, "bool"))
def test_distinct_values(dtype: str) -> None:
    for x in (some(dtype, 3, 5), some(dtype, 5, 3).t(), some(dtype, 0), some(dtype, 5000)):
        values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
        listed = x.flatten().tolist()
        assert values.tolist() == sorted(set(listed))
        assert values.dtype is x.dtype and inverse.shape == x.shape
        assert [values.tolist()[i] for i in inverse.flatten().tolist()] == listed
        assert counts.tolist() == [listed.count(v) for v in values.tolist()]


@pytest.mark.parametrize("dtype", (*DTYPES, "bool"))
def test_equal(dtype: str) -> None:
    x, y = some(dtype, 100, 100), some(dtype, 100, 100)
    assert torch.equal(x, y) and torch.equal(x.t(), y.t())
    y[99, 99] = y[99, 99] == 0
    assert not torch.equal(x, y) and not torch.equal(x, y[:99]) and not torch.equal(x.t(), y.t())


def test_equal_with_nan_and_zeros() -> None:
    assert not torch.equal(torch.tensor([float("nan")]), torch.tensor([float("nan")]))
    assert torch.equal(torch.tensor([0.0]), torch.tensor([-0.0]))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
def test_counts(dtype: str) -> None:
    x = some(dtype, 50)
    for given in (x, x[::3]):
        expected = [given.tolist().count(i) for i in range(max(given.tolist()) + 1)]
        assert given.bincount().tolist() == expected
        assert given.bincount(minlength=9).tolist() == expected + [0] * (9 - len(expected))
    if dtype != "uint8":
        with pytest.raises(RuntimeError, match="non-negative"):
            (x - 3).bincount()


@pytest.mark.parametrize("dtype", DTYPES)
def test_filled_places(dtype: str) -> None:
    for x in (some(dtype, 4, 5), some(dtype, 5, 4).t()):
        for index in ([1, 3], [-1, 0], [2, 2]):
            for value in (7, 2.0):
                rows = x.tolist()
                for i in index:
                    rows[i] = [value] * 5
                at = torch.tensor(index)
                assert x.index_fill(0, at, value).tolist() == rows
                written = x.clone()
                assert written.index_fill_(0, at, value) is written
                assert written.tolist() == rows
        before = x.tolist()
        with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 1 with size 5"):
            x.index_fill_(-1, torch.tensor([0, 9]), 1)
        assert x.tolist() == before


def test_taken_places() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    at = torch.tensor([[0, -1], [5, 2]])
    assert x.take(at).tolist() == [[0.0, 11.0], [5.0, 2.0]]
    assert x.t().take(at).tolist() == [[0.0, 11.0], [9.0, 8.0]]
    with pytest.raises(IndexError, match="tried to access index 12 on a tensor of 12 elements"):
        x.take(torch.tensor([12]))


def test_operands_are_checked() -> None:
    x = NATIVE.Storage(64)
    for call in (
        lambda: NATIVE.unique(x, 0, (1,), 6, 17),
        lambda: NATIVE.unique(x, 0, (2,), 6, 4),
        lambda: NATIVE.unique(x, 0, (1,), 6, -1),
        lambda: NATIVE.bincount(x, 0, (1,), 4, 9, 0),
        lambda: NATIVE.bincount(x, 0, (1,), 4, 2, -1),
        lambda: NATIVE.equal(x, 0, (1,), 6, x, 8, (1,), 6, (9,)),
        lambda: NATIVE.median(x, 0, (4, 1), 6, (4, 4), x, 0, (1,), 6, x, 5, (1,), 4, False),
        lambda: NATIVE.median(x, 0, (0, 1), 6, (4, 0), x, 0, (1,), 6, x, 0, (1,), 4, False),
        lambda: NATIVE.searchsorted(x, 0, (4, 1), 6, (2, 4), x, 0, (2, 1), 6, (3, 2), x, 0, (2, 1), 4, False),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            call()
