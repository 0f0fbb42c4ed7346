"""Places, counts and distinct values of small rows: the native loops against what they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
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


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_by_rank(dtype: str) -> None:
    generator = torch.Generator().manual_seed(3)
    for shape, scale in (((3, 5), 3), ((2, 9, 4), 100), ((70, 3), 1), ((2, 3000), 1000)):
        x = (torch.randn(shape, generator=generator, dtype=torch.float64) * scale).to(getattr(torch, dtype))
        for dim in range(len(shape)):
            n = shape[dim]
            order, places = x.sort(dim=dim, stable=True)
            for k in {1, 2, n // 3 + 1, n}:
                values, indices = x.kthvalue(k, dim)
                assert values.equal(order.select(dim, k - 1)) and indices.equal(places.select(dim, k - 1))
            assert x.median(dim, keepdim=True)[0].equal(order.narrow(dim, (n - 1) // 2, 1))
            for k in {1, n // 2, n}:
                for largest in (False, True):
                    top, where = x.topk(k, dim, largest=largest)
                    ranked, found = x.sort(dim=dim, descending=largest, stable=True)
                    assert top.equal(ranked.narrow(dim, 0, k)) and where.equal(found.narrow(dim, 0, k))


@pytest.mark.parametrize(
    "name, args, said",
    [("median", (), "median_cpu"), ("median", (0,), "median_out"), ("kthvalue", (1,), "kthvalue_cpu")],
)
def test_dtypes_without_ranks(name: str, args: tuple[int, ...], said: str) -> None:
    for dtype, known in ((torch.bool, "Bool"), (torch.complex64, "ComplexFloat"), (torch.uint16, "UInt16")):
        x = torch.ones(4).to(dtype)
        with pytest.raises(NotImplementedError, match=f"\"{said}\" not implemented for '{known}'"):
            getattr(x, name)(*args)


def test_ranks_of_close_and_of_many_elements() -> None:
    x = 1 + torch.arange(200, dtype=torch.float64).flip(0) * 2.0**-52
    assert x.kthvalue(18)[1] == 182 and x.median() == x[100]
    x = (torch.arange(100_000) * 7919) % 100_003 - 50_000
    for dtype in (torch.int64, torch.float32, torch.float64):
        assert x.to(dtype).kthvalue(777)[0] == x.sort()[0][776]


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_commonest_of_two_byte_floats(dtype: str) -> None:
    x = some(dtype, 4, 30)
    for dim in (0, 1):
        values, places = x.mode(dim)
        wide = x.float().mode(dim)
        assert values.float().equal(wide[0]) and values.dtype is x.dtype and places.equal(wide[1])


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
def test_runs(dtype: str) -> None:
    for x in (some(dtype, 3, 50), some(dtype, 5, 3).t(), some(dtype, 0), some(dtype, 5000)):
        values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True)
        listed = x.flatten().tolist()
        runs = [v for i, v in enumerate(listed) if i == 0 or listed[i - 1] != v]
        assert values.tolist() == runs == x.unique_consecutive().tolist()
        assert values.dtype is x.dtype and inverse.shape == x.shape
        assert [runs[i] for i in inverse.flatten().tolist()] == listed
        assert sum(counts.tolist()) == len(listed) and len(counts) == len(runs)
        for k, start in enumerate((counts.cumsum(0) - counts).tolist()):
            assert set(listed[start : start + int(counts[k])]) == {runs[k]}


@pytest.mark.parametrize("dtype", ("int64", "int32", "uint8"))
def test_distinct_values_far_apart(dtype: str) -> None:
    most = torch.iinfo(getattr(torch, dtype)).max
    x = torch.tensor([most, 0, most, most - 1, 5] * 20, dtype=getattr(torch, dtype))
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [0, 5, most - 1, most] and counts.tolist() == [20, 20, 20, 40]
    assert values[inverse].tolist() == x.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_membership(dtype: str) -> None:
    x = torch.cat([some(dtype, 1000), some(dtype, 1000) * 20])
    for tests in (some(dtype, 2, seed=3), some(dtype, 60, seed=4) * 3, some(dtype, 0), torch.arange(100).to(x.dtype)):
        expected = [v in tests.tolist() for v in x.tolist()]
        assert torch.isin(x, tests).tolist() == expected
        assert torch.isin(x, tests, invert=True).tolist() == [not e for e in expected]


def test_membership_of_nan_and_extremes() -> None:
    nan = float("nan")
    tests = torch.tensor([nan, 1.0] + [float(i) for i in range(50, 90)])
    assert torch.isin(torch.tensor([nan, 1.0, -0.0] * 5), tests).tolist() == [False, True, False] * 5
    assert torch.isin(torch.tensor([-0.0]), torch.tensor([0.0])).tolist() == [True]
    far = torch.tensor([-(2**63), 2**63 - 1, 0])
    assert torch.isin(torch.tensor([2**63 - 1, 1, -(2**63)]), far).tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", DTYPES)
def test_commonest(dtype: str) -> None:
    for x in (some(dtype, 40, 7), some(dtype, 7, 40).t(), some(dtype, 6, 300) * 20):
        values, places = x.mode(1)
        for row, value, place in zip(x.tolist(), values.tolist(), places.tolist()):
            most = max(row.count(v) for v in row)
            assert value == min(v for v in row if row.count(v) == most)
            assert place == max(i for i, v in enumerate(row) if v == value)


def test_commonest_with_nan() -> None:
    nan = float("nan")
    values, places = torch.tensor([[nan, nan, 2.0, 1.0], [nan] * 4, [nan, 3.0, nan, 3.0]]).mode(1)
    assert values[::2].tolist() == [1.0, 3.0] and values[1].isnan() and places.tolist() == [3, 0, 3]


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_bins(dtype: str) -> None:
    x = torch.tensor([0.0, 1.0, 0.999, 0.5, -1.0, 2.0, float("nan"), 0.25] * 200, dtype=getattr(torch, dtype))
    assert x.histc(4, 0, 1).tolist() == [200.0, 200.0, 200.0, 400.0]
    assert x[:6].histc(3).tolist() == [1.0, 3.0, 2.0]
    huge = torch.finfo(x.dtype).max
    assert torch.tensor([-huge, huge], dtype=x.dtype).histc(2, -1, 1).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", ("float32", "int64", "uint8"))
def test_many_places(dtype: str) -> None:
    values = torch.cat([some(dtype, 200) * 17, some(dtype, 203, seed=2) * 13])
    for n in (0, 1, 2, 3, 64, 101):
        row = (some(dtype, n, seed=n) * 19).sort()[0]
        known = row.tolist()
        for right in (False, True):
            expected = [sum(k <= v if right else k < v for k in known) for v in values.tolist()]
            assert torch.searchsorted(row, values, right=right).tolist() == expected


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
        lambda: NATIVE.unique(x, 0, (1,), 6, 17, True, True, 99),
        lambda: NATIVE.unique(x, 0, (2,), 6, 4, True, True, 99),
        lambda: NATIVE.unique(x, 0, (1,), 6, -1, True, True, 99),
        lambda: NATIVE.unique_consecutive(x, 0, (1,), 6, 17, True, True),
        lambda: NATIVE.isin(x, 0, (1,), 6, 16, x, 0, (1,), 6, 17, x, 0, (1,), 11, False),
        lambda: NATIVE.isin(x, 0, (1,), 6, 16, x, 0, (1,), 6, 16, x, 60, (1,), 11, False),
        lambda: NATIVE.histc(x, 0, (1,), 6, 17, x, 0, (1,), 6, 4, 0.0, 1.0),
        lambda: NATIVE.histc(x, 0, (1,), 6, 16, x, 0, (1,), 6, 17, 0.0, 1.0),
        lambda: NATIVE.histc(x, 0, (1,), 6, 16, x, 0, (1,), 6, 4, 1.0, 1.0),
        lambda: NATIVE.mode(x, 0, (4, 1), 6, (4, 4), x, 0, (1,), 6, x, 5, (1,), 4),
        lambda: NATIVE.mode(x, 0, (0, 1), 6, (4, 0), x, 0, (1,), 6, x, 0, (1,), 4),
        lambda: NATIVE.bincount(x, 0, (1,), 4, 9, 0),
        lambda: NATIVE.bincount(x, 0, (1,), 4, 2, -1),
        lambda: NATIVE.equal(x, 0, (1,), 6, x, 8, (1,), 6, (9,)),
        lambda: NATIVE.kth(x, 0, (4, 1), 6, x, 0, (1, 0), 6, x, 5, (1, 0), 4, (4, 4), 1, 0, 0),
        lambda: NATIVE.kth(x, 0, (0, 1), 6, x, 0, (1, 0), 6, x, 0, (1, 0), 4, (4, 0), 1, 0, 1),
        lambda: NATIVE.kth(x, 0, (1, 1), 6, x, 0, (1, 0), 6, x, 0, (1, 0), 4, (1, 2), 1, 2, 0),
        lambda: NATIVE.kth(x, 0, (1, 1), 6, x, 0, (1, 0), 6, x, 0, (1, 0), 4, (1, 2), 1, 0, 3),
        lambda: NATIVE.kth(x, 0, (1, 1), 6, x, 0, (1, 0), 4, x, 0, (1, 0), 4, (1, 2), 1, 0, 0),
        lambda: NATIVE.searchsorted(x, 0, (4, 1), 6, (2, 4), x, 0, (2, 1), 6, (3, 2), x, 0, (2, 1), 4, False),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            call()


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "int16", "uint8"])
def test_runs_of_equal_neighbours(dtype: str) -> None:
    """Lengths around those of vectors; each NaN is a run, and the zeros are one."""
    rng = np.random.default_rng(2)
    for n in (0, 1, 2, 8, 9, 16, 17, 18, 33, 100, 4097):
        for kinds in (1, 2, 100):
            given = rng.integers(0, kinds, n).astype(dtype)
            if dtype.startswith("float") and n > 8:
                given[:2], given[n // 2 : n // 2 + 3] = (-0.0, 0.0), np.nan
            begins = np.flatnonzero(np.concatenate([[True] * min(n, 1), given[1:] != given[:-1]]))
            want = given[begins], np.diff(np.append(begins, n))
            (alone, (values, counts)) = (
                torch.unique_consecutive(torch.from_numpy(given)),
                torch.unique_consecutive(torch.from_numpy(given), return_counts=True),
            )
            np.testing.assert_array_equal(alone.numpy(), want[0])
            np.testing.assert_array_equal(values.numpy(), want[0])
            np.testing.assert_array_equal(counts.numpy(), want[1])
