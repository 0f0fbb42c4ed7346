"""Groups of rows and whole results that become floats of 8 bits, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import CODES, In, Out, call, refused
from .test_kernels_microscaled import E4M3, E5M2, LEAST, code, largest, microscaled
from .test_kernels_quantized_norm import F, H, make, rms, wide

ENDS = np.array([10, 80, 80, 150], np.int32)
X = make(150, 12)


def groups(ends: Any = ENDS) -> Any:
    return [(g, a, b) for g, (a, b) in enumerate(zip([0, *ends[:-1]], ends))]


def blocks(dtype: Any, high: int, across: int, top: float) -> dict[str, np.ndarray]:
    y, scales = np.zeros(X.shape), np.zeros((150 // high + len(ENDS), -(-12 // across)))
    for g, first, last in groups():
        for i in range(first, last, high):
            for j in range(0, 12, across):
                part = wide(X)[i : min(i + high, last), j : j + across]
                scale = max(np.abs(part).max() / top, 0.001)
                y[i : min(i + high, last), j : j + across] = part / scale
                scales[first // high + g + (i - first) // high, j // across] = scale
    return {"yOut": y.astype(F).astype(dtype), "scaleOut": scales.astype(F)}


def columns(dtype: Any, algorithm: int = 0) -> tuple[np.ndarray, np.ndarray]:
    y = np.zeros(X.shape, dtype)
    scales = np.full((150 // 64 + len(ENDS), 12, 2), LEAST, F).astype(microscaled(X, 0, dtype)[1].dtype)
    for g, first, last in groups():
        if last > first:
            part, pairs = microscaled(X[first:last], 0, dtype, algorithm)
            y[first:last], scales[first // 64 + g : first // 64 + g + len(pairs)] = part, pairs
    return y, scales


BLOCK: dict[str, Any] = {
    "x": X,
    "groupList": ENDS,
    "minScale": 0.001,
    "roundModeOptional": "rint",
    "rowBlockSize": 16,
    "colBlockSize": 8,
    "groupListType": 0,
}
MX: dict[str, Any] = {"x": X, "groupIndex": ENDS, "roundMode": "rint", "blocksize": 32}
SCALES = np.array([2, 0.5, 1, 3], F)
COUNTS = np.diff(ENDS, prepend=0).astype(np.int32)


def scaled(x: np.ndarray, by: Any) -> np.ndarray:
    return np.asarray((wide(x) * by).astype(F).astype(E5M2))


ROW_SCALES = np.repeat(SCALES.astype(float), COUNTS)[:, None]
BOTH = microscaled(X, 1, E4M3), columns(E4M3)
CASES = [
    Direct("aclnnGroupedDynamicBlockQuant", {**BLOCK, "dstType": code(E4M3)}, blocks(E4M3, 16, 8, largest(E4M3))),
    Direct(
        "aclnnGroupedDynamicBlockQuantV2",
        {**BLOCK, "groupList": COUNTS, "groupListType": 1, "dstType": code(E5M2), "dstTypeMax": 64.0},
        blocks(E5M2, 16, 8, 64),
    ),
    Direct("aclnnGroupedDynamicMxQuant", {**MX, "dstType": code(E4M3)}, dict(zip(("y", "mxscale"), columns(E4M3)))),
    Direct(
        "aclnnGroupedDynamicMxQuantV2",
        {**MX, "dstType": code(E5M2), "scaleAlg": 1, "dstTypeMax": 0.0},
        dict(zip(("y", "mxscale"), columns(E5M2, 1))),
    ),
    Direct(
        "aclnnGroupedDynamicMxQuantWithDualAxis",
        {"x": X, "groupIndex": ENDS.astype(np.int64), "scaleAlg": 0, "dstDtype": code(E4M3), "maxDtypeValue": 0.0},
        {"y1Out": BOTH[0][0], "y1ScaleOut": BOTH[0][1], "y2Out": BOTH[1][0], "y2ScaleOut": BOTH[1][1]},
    ),
    Direct(
        "aclnnQuantMax",
        {"x": X, "scale": np.array([1.5], F), "roundMode": "rint", "dstType": code(E5M2)},
        {"y": scaled(X, 1.5), "amax": np.abs(X).max().reshape(1)},
    ),
    Direct(
        "aclnnGroupedQuantMax",
        {"x": X, "scale": SCALES, "groupList": ENDS.astype(np.int64), "roundMode": "rint", "dstType": code(E5M2)},
        {
            "y": scaled(X, ROW_SCALES),
            "amax": np.array([np.abs(X[a:b]).max() if b > a else 0 for _, a, b in groups()], H),
        },
    ),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


@each(CASES)
def test_refusals(case: Direct) -> None:
    check_refusals(case)


@pytest.mark.parametrize("ends", [[10, 5, 80, 150], [10, 80, 80, 151], [-1, 80, 80, 150]])
def test_groups_that_do_not_fit(ends: list[int]) -> None:
    outs = {"y": Out(X.shape, "float8_e4m3fn"), "mxscale": Out((6, 12, 2), "float8_e8m0fnu")}
    given = {**MX, "groupIndex": np.array(ends, np.int32), "dstType": code(E4M3)}
    assert refused("aclnnGroupedDynamicMxQuant", **given, **outs) == 507015


ROWS = make(4, 16)
GAMMA = make(16)
NORMED = rms(wide(ROWS), wide(GAMMA))
DYNAMIC = np.abs(NORMED).max(-1) / largest(E4M3)


def e4m3(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(x, -largest(E4M3), largest(E4M3)).astype(F).astype(E4M3))


def gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


GELU = gelu(wide(ROWS))
SMALL = "float8_e4m3fn"


def near(got: np.ndarray, want: np.ndarray) -> None:
    """Equal but for a unit where a scale's own rounding moves a number across a half."""
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=2**-3, atol=2**-9)
    assert (got.astype(float) == want.astype(float)).mean() > 0.9


def test_one_block_of_small_floats() -> None:
    given = {
        "x": ROWS,
        "minScale": 0.0,
        "roundModeOptional": "rint",
        "rowBlockSize": 4,
        "colBlockSize": 16,
        "dstType": CODES[SMALL],
    }
    y, scale = call("aclnnDynamicBlockQuant", **given, yOut=Out((4, 16), SMALL), scaleOut=Out((1, 1)))
    top = np.abs(wide(ROWS)).max() / largest(E4M3)
    np.testing.assert_allclose(scale, top, rtol=1e-6)
    near(y, e4m3(wide(ROWS) / top))
    assert (
        refused("aclnnDynamicBlockQuant", **{**given, "dstType": 2}, yOut=Out((4, 16), SMALL), scaleOut=Out((1, 1)))
        == 161002
    )


def test_normed_small_floats() -> None:
    outs = {"y1Out": Out((4, 16), SMALL), "y2Out": Out((4, 16), SMALL), "xOut": Out((4, 16), "float16")}
    scales = {"scale1Out": Out((4,)), "scale2Out": Out((4,))}
    given: dict[str, Any] = {"x1": ROWS, "x2": ROWS * H(0), "gamma": GAMMA, "epsilon": 1e-5}
    y, _, _, scale, _ = call("aclnnAddRmsNormDynamicQuant", **given, **outs, **scales)
    np.testing.assert_allclose(scale, DYNAMIC, rtol=1e-5)
    near(y, e4m3(NORMED / DYNAMIC[:, None]))


def test_gelu_of_small_floats() -> None:
    given: dict[str, Any] = {
        "self": ROWS,
        "approximate": "tanh",
        "quantMode": "static",
        "roundMode": "rint",
        "dstType": CODES[SMALL],
        "inputScaleOptional": np.array([3], F),
    }
    near(call("aclnnGeluQuant", **given, y=Out((4, 16), SMALL), outScaleOptional=None), e4m3(GELU * 3))


def small(*shape: int) -> np.ndarray:
    return make(*shape, dtype=F).astype(E4M3)


SLOTS = np.array([7, -1, 14, 0], np.int32)
MOVES: dict[str, dict[str, Any]] = {
    "aclnnScatterPaKvCache": {
        "key": small(4, 2, 3), "value": small(4, 2, 3), "keyCacheRef": small(3, 5, 2, 3),
        "valueCacheRef": small(3, 5, 2, 3), "slotMapping": SLOTS, "cacheModeOptional": "Norm",
    },
    "aclnnScatterPaCache": {"key": small(4, 2, 3), "keyCacheRef": small(3, 5, 2, 3), "slotMapping": SLOTS,
                            "cacheMode": "Norm"},
    "aclnnGatherPaKvCache": {
        "keyCache": small(3, 5, 2, 3), "valueCache": small(3, 5, 2, 3), "keyRef": small(10, 2, 3),
        "valueRef": small(10, 2, 3), "blockTables": np.array([[2, 0], [1, 1]], np.int32),
        "seqLens": np.array([7, 3], np.int32), "cacheMode": "Norm", "isSeqLensCumsum": False,
    },
    "aclnnScatterNdUpdate": {"varRef": small(5, 3), "indices": np.array([[4], [1]]), "updates": small(2, 3)},
    "aclnnInplaceScatterUpdate": {"data": small(2, 6, 3), "indices": np.array([1, 3]), "updates": small(2, 2, 3),
                                  "axis": 1},
    "aclnnAsStrided": {"x": small(12), "size": [3, 2], "stride": [1, 4], "storageOffset": [2], "out": (3, 2)},
    "aclnnStridedSlice": {
        "self": small(4, 6), "begin": [0, 5], "end": [4, 1], "strides": [2, -2], "beginMask": 0, "endMask": 0,
        "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0, "out": (2, 2),
    },
}  # fmt: skip


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("name", MOVES)
def test_what_is_moved_stays_the_same(name: str, dtype: Any) -> None:
    """In eight bits as in sixteen."""

    def moved(kind: Any) -> list[np.ndarray]:
        values = {
            key: v.astype(F).astype(dtype).astype(kind) if isinstance(v, np.ndarray) and v.dtype == E4M3 else v
            for key, v in MOVES[name].items()
        }
        if "out" in values:
            values["out"] = Out(values["out"], np.dtype(kind).name)
        got = call(name, **values)
        return got if isinstance(got, list) else [got]

    for narrow, wider in zip(moved(dtype), moved(H)):
        np.testing.assert_array_equal(narrow.astype(F), wider.astype(F))


def test_convolution_of_small_floats() -> None:
    x, w = small(1, 2, 4, 4), small(3, 2, 2, 2)
    options: dict[str, Any] = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "transposed": False,
                               "outputPadding": [0, 0], "groups": 1, "cubeMathType": 0}  # fmt: skip
    form = "NCHW"
    got = call("aclnnConvolution", input=In(x, form), weight=In(w, form), **options,
               output=Out((1, 3, 3, 3), SMALL, format=form))  # fmt: skip
    wider = call("aclnnConvolution", input=In(x.astype(F), form), weight=In(w.astype(F), form), **options,
                 output=Out((1, 3, 3, 3), format=form))  # fmt: skip
    near(got, e4m3(wider))
