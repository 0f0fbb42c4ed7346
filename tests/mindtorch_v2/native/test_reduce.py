"""Native reductions, over every set of dimensions.

Invariant: expected values come from NumPy, or from PyTorch in the tests that take the `oracle` fixture; no tensor of
the library is involved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ._raw import CODES, F32, View, _native, array_of, random, reduce

# ---------------------------------------------------------------- reductions

REDUCE_SHAPES = [(5,), (4, 4), (3, 1, 7), (100, 200), (2, 3, 4, 5), (1000, 3), (3, 1000), (40, 33, 50), (140_000,),
                 (70_000, 2), (2, 70_000), (33, 40)]  # fmt: skip


def subsets(ndim: int) -> Iterator[tuple[int, ...]]:
    for count in range(ndim + 1):
        yield from itertools.combinations(range(ndim), count)


@pytest.mark.parametrize("shape", REDUCE_SHAPES)
@pytest.mark.parametrize(
    "name", ["float32", "float64", "int32", "int16", "int8", "uint8", "bool", "float16", "complex64"]
)
def test_reductions(shape: tuple[int, ...], name: str) -> None:
    values = random(shape, name)
    whole = name in ("int32", "int16", "int8", "uint8", "bool")
    sum_name = "int64" if whole else name
    wide = {"float16": "float64", "float32": "float64", "complex64": "complex128"}.get(name, sum_name)
    rtol, atol = (2e-3, 1e-2) if name == "float16" else (1e-6, 1e-3)
    for array in (values, np.asfortranarray(values)):
        a = View(array)
        for dims in subsets(len(shape)):
            total = reduce(_native.SUM, a, dims, sum_name, sum_name)
            expected = array.astype(wide).sum(axis=dims, keepdims=True)
            assert np.allclose(total, expected, rtol=rtol, atol=atol)
            if not whole:
                count = math.prod(shape[d] for d in dims)
                assert np.allclose(reduce(_native.MEAN, a, dims, name, name), expected / count, rtol=rtol, atol=atol)
            truth = array != 0
            assert np.array_equal(reduce(_native.ANY, a, dims, "bool", name), truth.any(axis=dims, keepdims=True))
            assert np.array_equal(reduce(_native.ALL, a, dims, "bool", name), truth.all(axis=dims, keepdims=True))
            if name == "complex64":
                continue
            assert np.array_equal(reduce(_native.AMAX, a, dims, name, name), array.max(axis=dims, keepdims=True))
            assert np.array_equal(reduce(_native.AMIN, a, dims, name, name), array.min(axis=dims, keepdims=True))
            if len(dims) == 1 or len(dims) == len(shape):
                axis: Any = dims[0] if len(dims) == 1 else None
                top = reduce(_native.ARGMAX, a, dims, "int64", name)
                assert np.array_equal(top, array.argmax(axis=axis, keepdims=True))
                bottom = reduce(_native.ARGMIN, a, dims, "int64", name)
                assert np.array_equal(bottom, array.argmin(axis=axis, keepdims=True))


def test_argmax_counts_reduced_dimensions_in_row_major_order() -> None:
    values = random((3, 4, 5))
    for array in (values, np.asfortranarray(values)):
        top = reduce(_native.ARGMAX, View(array), (0, 2), "int64", "float32")
        expected = values.transpose(1, 0, 2).reshape(4, 15).argmax(axis=1)
        assert np.array_equal(top.ravel(), expected)


@pytest.mark.parametrize("shape", [(6,), (6, 40), (2000, 6), (6, 2000)])
def test_nan_and_ties_in_extremes(shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, np.float32)
    for dim in range(len(shape)):
        top = reduce(_native.ARGMAX, View(values), (dim,), "int64", "float32")
        assert not top.any()  # the first of equals
    flat = values.reshape(-1)
    flat[2], flat[4] = math.inf, math.nan
    flat[5] = math.nan
    everything = tuple(range(len(shape)))
    for op in (_native.AMAX, _native.AMIN):
        assert math.isnan(reduce(op, View(values), everything, "float32", "float32").item())
    for op in (_native.ARGMAX, _native.ARGMIN):
        assert reduce(op, View(values), everything, "int64", "float32").item() == 4
    for dim in range(len(shape)):
        expected = values.max(axis=dim, keepdims=True)
        assert np.array_equal(
            reduce(_native.AMAX, View(values), (dim,), "float32", "float32"), expected, equal_nan=True
        )


def test_long_float_sums_are_accurate() -> None:
    values = np.full(3_000_000, 0.1, np.float32)
    exact = float(np.float32(0.1)) * values.size
    assert abs(float(reduce(_native.SUM, View(values), (0,), "float32", "float32")[0]) / exact - 1) < 1e-7
    columns = values.reshape(1_000_000, 3)
    assert np.allclose(reduce(_native.SUM, View(columns), (0,), "float32", "float32"), exact / 3, rtol=1e-7)
    half = View(np.full(4096, 0.1, np.float16))
    assert abs(float(reduce(_native.SUM, half, (0,), "float16", "float16")[0]) / 409.4 - 1) < 1e-3


def test_reduction_into_a_given_output() -> None:
    a = View(random((6, 7)))
    out = _native.Storage(8 * 20)
    result = _native.reduce(_native.SUM, *a.args(), out, 2, (0, 2), CODES["float64"], (6, 7), F32)
    assert result is out
    got = np.frombuffer(out, np.float64)[2:16:2]
    assert np.allclose(got, a.array.sum(axis=0, dtype=np.float64), rtol=1e-6)
    broadcast = View(random((5,)))
    strides = (broadcast.storage, 0, (0, 1), F32)
    result = _native.reduce(_native.SUM, *strides, None, 0, (0, 1), F32, (4, 5), F32, 5)
    assert np.allclose(array_of(result, np.float32, (5,)), 4 * broadcast.array, rtol=1e-6)
    result = _native.reduce(_native.SUM, *strides, None, 0, (1, 0), F32, (4, 5), F32, 4)
    assert np.allclose(array_of(result, np.float32, (4,)), broadcast.array.sum(), rtol=1e-5)
