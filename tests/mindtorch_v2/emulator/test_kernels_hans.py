"""Floats compressed and back, bit by bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._kernels import Out, call, refused

DTYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
ROWS, COLUMNS = 8, 64
COUNT = ROWS * COLUMNS


def numbers(dtype: np.dtype) -> np.ndarray:
    x = np.random.default_rng(3).standard_normal((ROWS, COLUMNS)).astype(dtype)
    x[0, :6] = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(np.float32).tiny]
    return x


def bits(x: np.ndarray) -> np.ndarray:
    return x.view({2: np.uint16, 4: np.uint32}[x.dtype.itemsize])


def exponents(x: np.ndarray) -> np.ndarray:
    """How often each value of the eight bits behind the sign occurs."""
    found = bits(x).astype(np.int64) >> (8 * x.dtype.itemsize - 9) & 255
    return np.bincount(found.reshape(-1), minlength=256)


def outputs(dtype: np.dtype, fixed: int = COUNT, var: int = COUNT) -> dict[str, Any]:
    size = dtype.itemsize
    room = {"mantissaOut": COUNT * (size - 1) // size, "fixedOut": fixed // size, "varOut": var // size}
    return {name: Out((n,), dtype.name) for name, n in room.items()}


@pytest.mark.parametrize("reshuff", [False, True])
@pytest.mark.parametrize("fixed", [32, COUNT])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_there_and_back(dtype: np.dtype, fixed: int, reshuff: bool) -> None:
    x = numbers(dtype)
    pdf, mantissa, first, second = call("aclnnHansEncode", inputTensor=x, pdfRef=np.zeros((1, 256), np.int32),
                                        statistic=True, reshuff=reshuff, **outputs(dtype, fixed))  # fmt: skip
    np.testing.assert_array_equal(pdf[0], exponents(x))
    assert bool(second.view(np.uint8).any()) == (fixed == 32)
    back = call("aclnnHansDecode", mantissa=mantissa, fixed=first, var=second, pdf=pdf, reshuff=reshuff,
                out=Out((ROWS, COLUMNS), dtype.name))  # fmt: skip
    np.testing.assert_array_equal(bits(back), bits(x))


def test_given_counts_stay_and_are_used() -> None:
    x, counts = numbers(DTYPES[0]), np.arange(256, dtype=np.int32).reshape(1, 256)
    got = call(
        "aclnnHansEncode", inputTensor=x, pdfRef=counts, statistic=False, reshuff=False, **outputs(x.dtype, 2048)
    )
    np.testing.assert_array_equal(got[0], counts)
    values = {"mantissa": got[1], "fixed": got[2], "var": got[3], "reshuff": False}
    back = call("aclnnHansDecode", **values, pdf=counts, out=Out((ROWS, COLUMNS)))
    np.testing.assert_array_equal(bits(back), bits(x))
    assert refused("aclnnHansDecode", **values, pdf=-counts, out=Out((ROWS, COLUMNS))) == 507015


def test_refusals() -> None:
    given: dict[str, Any] = {"inputTensor": numbers(DTYPES[0]), "pdfRef": np.zeros((1, 256), np.int32),
                             "statistic": True, "reshuff": False}  # fmt: skip
    outs = outputs(DTYPES[0])
    assert refused("aclnnHansEncode", **{**given, "inputTensor": None}, **outs) == 161001
    assert refused("aclnnHansEncode", **{**given, "inputTensor": np.zeros(COUNT, np.int32)}, **outs) == 161002
    assert refused("aclnnHansEncode", **{**given, "pdfRef": np.zeros(255, np.int32)}, **outs) == 161002
    assert refused("aclnnHansEncode", **given, **{**outs, "mantissaOut": Out((8,))}) == 161002
    assert refused("aclnnHansEncode", **given, **outputs(DTYPES[0], 8, 8)) == 507015  # no room
    zeros = np.zeros(COUNT, np.float32)
    short = {"mantissa": zeros, "fixed": zeros[:4], "var": zeros[:4], "pdf": given["pdfRef"], "reshuff": False}
    assert refused("aclnnHansDecode", **short, out=Out((ROWS, COLUMNS))) == 507015
