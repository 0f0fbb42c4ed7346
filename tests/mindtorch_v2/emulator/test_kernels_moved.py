"""Small floats that are only moved, padded, cast or set, on the chip whose documents list them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._chips import on_chip
from ._kernels import Out, Scalar, call, facts, refused

SMALL = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
VALUES = np.array([[0, 0.5, -1, 3], [2, -6, 1.5, 4]], np.float32)


def documented(name: str, parameter: str, dtype: str) -> bool:
    said = {"float8_e4m3fn": "FLOAT8_E4M3FN", "float8_e5m2": "FLOAT8_E5M2", "float4_e2m1fn": "FLOAT4_E2M1"}[dtype]
    return any(p["name"] == parameter and said in p["dtypes"].split() for p in facts()[name]["params"])


def same(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    assert got.dtype == np.dtype(getattr(ml_dtypes, dtype))
    np.testing.assert_array_equal(got.astype(np.float32), want)


def moves(x: np.ndarray, dtype: str) -> list[tuple[str, dict[str, Any], str, np.ndarray]]:
    wide = x.astype(np.float32)
    cube = wide.reshape(1, 2, 2, 2)
    return [
        ("aclnnPermute", {"self": x, "dims": [1, 0]}, "out", wide.T),
        ("aclnnRepeat", {"self": x, "repeats": [2, 3]}, "out", np.tile(wide, (2, 3))),
        ("aclnnCat", {"tensors": [x, x[:1]], "dim": 0}, "out", np.concatenate([wide, wide[:1]])),
        ("aclnnConstantPadNd", {"self": x, "pad": [1, 0, 0, 2], "value": Scalar(2.0, "float32")}, "out",
         np.pad(wide, ((0, 2), (1, 0)), constant_values=2)),
        ("aclnnReflectionPad1d", {"self": x, "padding": [1, 2]}, "out", np.pad(wide, ((0, 0), (1, 2)), "reflect")),
        ("aclnnReflectionPad3d", {"self": x.reshape(cube.shape), "padding": [1] * 6}, "out",
         np.pad(cube, ((0, 0), (1, 1), (1, 1), (1, 1)), "reflect")),
        ("aclnnReplicationPad2d", {"self": x.reshape(2, 2, 2), "padding": [1, 1, 0, 2]}, "out",
         np.pad(wide.reshape(2, 2, 2), ((0, 0), (0, 2), (1, 1)), "edge")),
    ]  # fmt: skip


def on_950() -> None:
    tried = set()
    for dtype in SMALL:
        x = VALUES.astype(getattr(ml_dtypes, dtype))
        for name, given, out, want in moves(x, dtype):
            if not documented(name, "tensors" if "tensors" in given else "self", dtype):
                continue
            tried.add((name, dtype))
            same(call(name, **given, **{out: Out(want.shape, dtype)}), want, dtype)
        same(call("aclnnCast", self=VALUES, dtype=dtype, out=Out(VALUES.shape, dtype)), VALUES, dtype)
        back = call("aclnnCast", self=x, dtype="float32", out=Out(VALUES.shape))
        np.testing.assert_array_equal(back, VALUES)
        same(call("aclnnInplaceZero", selfRef=x), np.zeros_like(VALUES), dtype)
    assert {name for name, _ in tried} == {name for name, *_ in moves(VALUES, "")} and len(tried) == 16


def test_small_floats_that_are_moved() -> None:
    on_chip("950", on_950)


@pytest.mark.parametrize("dtype", SMALL)
def test_other_chips_do_not_have_them(dtype: str) -> None:
    x = VALUES.astype(getattr(ml_dtypes, dtype))
    assert refused("aclnnPermute", self=x, dims=[1, 0], out=Out((4, 2), dtype)) == 161002


def test_nothing_is_kept_of_rows_without_columns() -> None:
    """A scale belongs to each row, whether there is something in it or not."""
    none = np.zeros((3, 0), np.float16)
    y, scale = call("aclnnDynamicQuant", x=none, yOut=Out((3, 0), "int8"), scaleOut=Out((3,)))
    assert y.shape == (3, 0)
    np.testing.assert_array_equal(scale, np.zeros(3))


def test_integers_of_four_bits_for_experts() -> None:
    rng = np.random.default_rng(3)
    x, experts = rng.uniform(-2, 2, (4, 6)).astype(np.float16), np.array([[1], [0], [2], [0]], np.int32)
    order = np.argsort(experts[:, 0], kind="stable")
    given: dict[str, Any] = {
        "x": x, "expertIdx": experts, "expertNum": 3, "expandedXOut": Out((4, 6), "int4"),
        "expandedRowIdxOut": Out((4,), "int32"),
    }  # fmt: skip
    got = call("aclnnMoeInitRoutingQuantV2", **given, quantMode=1, dynamicQuantScaleOutOptional=Out((4,)),
               activeNum=0, expertCapacity=0, dropPadMode=0, expertTokensCountOrCumsumFlag=0,
               expertTokensBeforeCapacityFlag=False)  # fmt: skip
    rows = x[order].astype(float)
    scale = np.abs(rows).max(1) / 7
    np.testing.assert_array_equal(got[0].astype(float), np.rint(rows / scale[:, None]))
    np.testing.assert_array_equal(got[1], np.argsort(order))
    np.testing.assert_allclose(got[2], scale, rtol=1e-6)


def test_integers_of_four_bits_in_words() -> None:
    """Eight in an INT32, the first in its lowest bits."""
    rng = np.random.default_rng(5)
    x, gamma = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((3, 16), (16,)))
    beta, scale, offset = np.zeros(16, np.float16), np.array([3], np.float16), np.array([1], np.int8)
    given: dict[str, Any] = {"x": x, "gamma": gamma, "beta": beta, "scale": scale, "offset": offset, "epsilon": 1e-5}
    wide = x.astype(float)
    rows = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * gamma.astype(float)
    want = np.clip(np.rint(rows * 3 + 1), -8, 7).astype(np.int64)
    np.testing.assert_array_equal(call("aclnnRmsNormQuant", **given, y=Out((3, 16), "int4")).astype(np.int64), want)
    words = call("aclnnRmsNormQuant", **given, y=Out((3, 2), "int32"))
    shifts = 4 * np.arange(8)
    np.testing.assert_array_equal(words.view(np.uint32)[..., None] >> shifts & 15, want.reshape(3, 2, 8) & 15)
    assert refused("aclnnRmsNormQuant", **given, y=Out((3, 16), "int32")) == 161002
