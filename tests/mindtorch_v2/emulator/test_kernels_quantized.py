"""Small integers: to them, from them, products of them; and groups of rows with matrices of their own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, assert_same, call, refused

RNG = np.random.default_rng(3)
F, H = np.float32, np.float16
X = RNG.uniform(-3, 3, (4, 8)).astype(F)
HALF = X.astype(H)
SCALE = RNG.uniform(5, 20, 8).astype(F)
OFFSET = RNG.integers(-3, 4, 8).astype(F)
BYTES1, BYTES2 = (RNG.integers(-20, 21, s).astype(np.int8) for s in ((4, 8), (8, 6)))


def to_bytes(x: Any, low: int = -128, high: int = 127) -> np.ndarray:
    return np.clip(np.rint(np.asarray(x, np.float64)), low, high).astype(np.int8 if low < 0 else np.uint8)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def dynamic(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = np.abs(x).max(-1) / 127
    return to_bytes(x / scale[..., None]), scale.astype(F)


def rms(x: np.ndarray, gamma: np.ndarray, beta: Any = 0) -> np.ndarray:
    x = wide(x)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * wide(gamma) + beta


def packed(scale: np.ndarray, offset: Any = 0) -> np.ndarray:
    bits = scale.view(np.uint32).astype(np.uint64) & np.uint64(0xFFFFE000)
    return bits | np.uint64((int(offset) & 0x1FF) << 37) | np.uint64(1 << 46)


GAMMA = RNG.uniform(0.5, 1.5, 8).astype(H)
BETA = RNG.uniform(-0.5, 0.5, 8).astype(H)
NORMAL = rms(HALF, GAMMA)
SUM = (wide(HALF) * 2).astype(H)
NORMAL_SUM = rms(SUM, GAMMA)
SMOOTH = RNG.uniform(0.5, 2, 8).astype(H)
COARSE = np.full(8, 24, H)  # exact, so that rounding is the same on both sides
DYNAMIC, DYNAMIC_SCALE = dynamic(wide(HALF))
SMOOTHED, SMOOTHED_SCALE = dynamic(wide(HALF) * wide(SMOOTH))
RMS_DYNAMIC, RMS_DYNAMIC_SCALE = dynamic(NORMAL)
SUM_DYNAMIC, SUM_DYNAMIC_SCALE = dynamic(NORMAL_SUM)
LOW, HIGH = wide(HALF).min(-1), wide(HALF).max(-1)
SPREAD = (HIGH - LOW) / 255
SHIFT = 127 - HIGH / SPREAD
GATED = wide(HALF)[:, :4] / (1 + np.exp(-wide(HALF)[:, :4])) * wide(HALF)[:, 4:]
GATED_BYTES, GATED_SCALE = dynamic(GATED)
PER_TENSOR = np.clip(np.rint(wide(X) / 0.5) + 2, -4, 3)
CHANNEL_SCALE = RNG.uniform(0.3, 0.9, 8).astype(F)
CHANNEL_ZERO = RNG.integers(-2, 3, 8).astype(np.int32)
PER_CHANNEL = np.rint(wide(X) / CHANNEL_SCALE) + CHANNEL_ZERO
INT32 = RNG.integers(-500, 500, (4, 8)).astype(np.int32)
PRODUCT = BYTES1.astype(np.int64) @ BYTES2.astype(np.int64)
COLUMN = np.array([0.5, 0.25, 0.125, 1, 2, 0.5], F)
ROWS = np.array([0.5, 1, 2, 0.25], F)
BIAS = RNG.integers(-9, 10, 6).astype(np.int32)

QUANT: dict[str, Any] = {"x": X, "sqrtMode": False, "roundMode": "round", "dstType": 2}
CASES = [
    Direct("aclnnAscendQuant", {**QUANT, "scale": SCALE}, {"y": to_bytes(wide(X) * SCALE)}),
    Direct("aclnnAscendQuant", {**QUANT, "scale": SCALE, "offset": OFFSET, "roundMode": "floor"},
           {"y": to_bytes(np.floor(wide(X) * SCALE + OFFSET))}),
    Direct("aclnnAscendQuant", {**QUANT, "scale": np.array([3], F), "sqrtMode": True}, {"y": to_bytes(wide(X) * 9)}),
    Direct("aclnnAscendQuantV3", {**QUANT, "scale": SCALE[:4], "axis": -2},
           {"y": to_bytes(wide(X) * SCALE[:4, None])}),
    Direct("aclnnAscendAntiQuant", {"x": BYTES1, "scale": np.full(8, 0.5, F), "offset": OFFSET, "dstType": 1,
                                    "sqrtMode": False}, {"y": ((BYTES1 + OFFSET) * 0.5).astype(H)}),
    Direct("aclnnQuantize", {"x": X, "scales": np.array([0.1], F), "zeroPoints": np.array([3], np.int32),
                             "dtype": "int8", "axis": 1}, {"out": to_bytes(np.rint(wide(X) / F(0.1)) + 3)}),
    Direct("aclnnQuantize", {"x": X, "scales": CHANNEL_SCALE, "dtype": "uint8", "axis": 1},
           {"out": to_bytes(wide(X) / CHANNEL_SCALE, 0, 255)}),
    Direct("aclnnFakeQuantPerTensorAffineCachemask",
           {"self": X, "scale": np.array([0.5], F), "zeroPoint": np.array([2], np.int32), "fakeQuantEnabled": 1.0,
            "quantMin": -4, "quantMax": 3},
           {"out": ((PER_TENSOR - 2) * 0.5).astype(F), "mask": PER_TENSOR == np.rint(wide(X) / 0.5) + 2}),
    Direct("aclnnFakeQuantPerChannelAffineCachemask",
           {"self": X, "scale": CHANNEL_SCALE, "zeroPoint": CHANNEL_ZERO, "axis": 1, "quantMin": -3, "quantMax": 4},
           {"out": ((np.clip(PER_CHANNEL, -3, 4) - CHANNEL_ZERO) * CHANNEL_SCALE).astype(F),
            "mask": (PER_CHANNEL >= -3) & (PER_CHANNEL <= 4)}),
    Direct("aclnnGroupQuant", {"x": X, "scale": np.stack([SCALE, 2 * SCALE]), "groupIndex": np.array([1, 4]),
                               "offsetOptional": np.array([2], F), "dstType": 2},
           {"y": to_bytes(wide(X) * np.stack([SCALE, 2 * SCALE, 2 * SCALE, 2 * SCALE]) + 2)}),
    Direct("aclnnDynamicQuant", {"x": HALF}, {"yOut": DYNAMIC, "scaleOut": DYNAMIC_SCALE}),
    Direct("aclnnDynamicQuant", {"x": HALF, "smoothScalesOptional": SMOOTH},
           {"yOut": SMOOTHED, "scaleOut": SMOOTHED_SCALE}),
    Direct("aclnnDynamicQuantV2", {"x": HALF, "dstType": 2},
           {"yOut": to_bytes(wide(HALF) / SPREAD[:, None] + SHIFT[:, None]), "scaleOut": SPREAD.astype(F),
            "offsetOut": SHIFT.astype(F)}),
    Direct("aclnnDequantBias", {"x": INT32, "weightScale": SCALE, "activateScaleOptional": ROWS,
                                "biasOptional": np.arange(8, dtype=np.int32), "outputDtype": 1},
           {"out": ((INT32 + np.arange(8)) * wide(SCALE) * ROWS[:, None] / 1).astype(H)}),
    Direct("aclnnTransQuantParamV2", {"scale": SCALE}, {"out": packed(SCALE)}),
    Direct("aclnnTransQuantParamV2", {"scale": SCALE, "offset": np.array([-3], F)}, {"out": packed(SCALE, -3)}),
    Direct("aclnnTransQuantParamV3", {"scale": SCALE, "roundMode": 0}, {"out": packed(SCALE)}),
    Direct("aclnnRmsNormQuant", {"x": HALF, "gamma": GAMMA, "beta": BETA, "scale": np.array([20], H),
                                 "offset": np.array([3], np.int8), "epsilon": 1e-6},
           {"y": to_bytes(rms(HALF, GAMMA, wide(BETA)) * 20 + 3)}),
    Direct("aclnnRmsNormDynamicQuant", {"x": HALF, "gamma": GAMMA, "epsilon": 1e-6, "dstType": 2},
           {"yOut": RMS_DYNAMIC, "scaleOut": RMS_DYNAMIC_SCALE}),
    *(Direct(f"aclnnAddRmsNormQuant{version}", {"x1": HALF, "x2": HALF, "gamma": GAMMA, "scales1": COARSE, "axis": -1,
                                                "epsilon": 1e-6, "divMode": False},
             {"y1Out": to_bytes(NORMAL_SUM * 24), "xOut": SUM}) for version in ("", "V2")),
    Direct("aclnnAddRmsNormQuant", {"x1": HALF, "x2": HALF, "gamma": GAMMA, "scales1": 1 / COARSE, "axis": -1,
                                    "scales2Optional": COARSE / 2, "epsilon": 1e-6, "divMode": False},
           {"y1Out": to_bytes(NORMAL_SUM * wide(1 / COARSE)), "y2Out": to_bytes(NORMAL_SUM * 12), "xOut": SUM}),
    Direct("aclnnAddRmsNormDynamicQuant", {"x1": HALF, "x2": HALF, "gamma": GAMMA, "epsilon": 1e-6},
           {"y1Out": SUM_DYNAMIC, "xOut": SUM, "scale1Out": SUM_DYNAMIC_SCALE}),
    Direct("aclnnSwiGluQuant", {"x": HALF, "activateLeft": True, "quantModeOptional": "dynamic"},
           {"yOut": GATED_BYTES, "scaleOut": GATED_SCALE}),
    Direct("aclnnQuantMatmul", {"x1": BYTES1, "x2": BYTES2, "bias": BIAS, "deqScale": 0.5},
           {"out": ((PRODUCT + BIAS) * 0.5).astype(H)}),
    Direct("aclnnQuantMatmulV2", {"x1": BYTES1.T.copy(), "x2": BYTES2, "bias": BIAS, "deqScale": packed(COLUMN),
                                  "adjX1": True, "adjX2": False}, {"out": ((PRODUCT + BIAS) * COLUMN).astype(H)}),
    Direct("aclnnQuantMatmulV3", {"x1": BYTES1, "x2": BYTES2.T.copy(), "scale": packed(COLUMN), "bias": BIAS,
                                  "transposeX1": False, "transposeX2": True},
           {"out": ((PRODUCT + BIAS) * COLUMN).astype(H)}),
    Direct("aclnnQuantMatmulV3", {"x1": BYTES1, "x2": BYTES2, "scale": packed(COLUMN / 16),
                                  "offset": np.array([2], F), "transposeX1": False, "transposeX2": False},
           {"out": to_bytes(PRODUCT * wide(COLUMN) / 16 + 2)}),
    Direct("aclnnQuantMatmulV4", {"x1": BYTES1, "x2": BYTES2, "scale": COLUMN, "pertokenScaleOptional": ROWS,
                                  "transposeX1": False, "transposeX2": False},
           {"out": (PRODUCT * wide(COLUMN) * ROWS[:, None]).astype(H)}),
    Direct("aclnnQuantMatmulV5", {"x1": BYTES1, "x2": BYTES2, "x1Scale": ROWS, "x2Scale": COLUMN, "transposeX1": False,
                                  "transposeX2": False, "groupSize": 0},
           {"out": (PRODUCT * wide(COLUMN) * ROWS[:, None]).astype(H)}),
    *(Direct(f"aclnnWeightQuantBatchMatmul{version}",
             {"x": HALF, "weight": BYTES2, "antiquantScale": COLUMN.astype(H), "antiquantGroupSize": 0,
              **({"innerPrecise": 0} if version == "V3" else {}),
              "biasOptional": BIAS.astype(H)},
             {"y": (wide(HALF) @ (BYTES2 * wide(COLUMN)) + BIAS).astype(H)}) for version in ("V2", "V3")),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_results_that_do_not_fit() -> None:
    assert refused("aclnnAscendQuant", **{**QUANT, "dstType": 3}, scale=SCALE, y=Out((4, 2), "int32")) == 161002
    assert refused("aclnnAscendQuant", **{**QUANT, "dstType": 2}, scale=SCALE, y=Out((4, 1), "int32")) == 161002
    assert refused("aclnnAscendQuant", **{**QUANT, "roundMode": "up"}, scale=SCALE, y=Out((4, 8), "int8")) == 161002


def test_words_of_small_integers_lie_side_by_side() -> None:
    x = (np.arange(32) % 8).reshape(2, 16).astype(F)
    given = {**QUANT, "x": x, "scale": np.ones(16, F), "dstType": 3}
    assert refused("aclnnAscendQuant", **given, y=Out((2, 2), "int32", strides=(8, 2))) == 161002
    for strides in (None, (8, 1)):
        got = call("aclnnAscendQuant", **given, y=Out((2, 2), "int32", strides=strides))
        assert got.tolist() == [[0x76543210] * 2] * 2


def test_scales_of_groups() -> None:
    """Groups of the inner dimension have their own scale, and offset, for each column."""
    scales = np.stack([COLUMN, COLUMN / 2, COLUMN / 4])
    steps = np.repeat(wide(scales), 3, 0)[:8]
    start = np.arange(6, dtype=F)
    values = {"x1": BYTES1, "x1Scale": ROWS, "transposeX1": False, "transposeX2": False, "groupSize": 3,
              "yOffset": start, "out": Out((4, 6), "float16")}  # fmt: skip
    want = ((wide(BYTES1) @ (wide(BYTES2) * steps) + start) * wide(ROWS)[:, None]).astype(H)
    assert_same(call("aclnnQuantMatmulV5", **values, x2=BYTES2, x2Scale=scales), want)
    nibbles = RNG.integers(-8, 8, (8, 6)).astype(np.int8)
    shifts = RNG.integers(-3, 4, (3, 6)).astype(H)
    want = (
        (wide(BYTES1) @ ((nibbles - np.repeat(wide(shifts), 3, 0)[:8]) * steps) + start) * wide(ROWS)[:, None]
    ).astype(H)
    four = nibbles.astype(ml_dtypes.int4)
    assert_same(call("aclnnQuantMatmulV5", **values, x2=four, x2Scale=scales, x2Offset=shifts), want)
    for wrong in ({"groupSize": -3}, {"groupSize": 3 | 128 << 16}, {"groupSize": 2}, {"x2Offset": shifts[:2]},
                  {"groupSize": 0, "x2Scale": COLUMN, "x2Offset": shifts}):  # fmt: skip
        assert refused("aclnnQuantMatmulV5", **{**values, "x2": BYTES2, "x2Scale": scales, **wrong}) == 161002, wrong


# -- groups ----------------------------------------------------------------------------------------------------------
LEFT = RNG.uniform(-1, 1, (5, 3)).astype(F)
MATRICES = RNG.uniform(-1, 1, (2, 3, 4)).astype(F)
GROUPED = np.concatenate([LEFT[:2] @ MATRICES[0], LEFT[2:] @ MATRICES[1]])


def grouped(version: str, **values: Any) -> Any:
    settings: dict[str, Any] = {"splitItem": 2}
    if version:
        settings["groupType"] = 0
    if version in ("V4", "V5"):
        settings |= {"groupListType": 0, "actType": 0}
    out = "out" if version in ("V4", "V5") else "y"
    target = values.pop("target", [Out((5, 4))])
    return call(f"aclnnGroupedMatmul{version}", **{**settings, **values, out: target})


def test_groups_share_a_tensor() -> None:
    for version in ("", "V2", "V3", "V4", "V5"):
        ends = np.array([2, 5]) if version in ("V3", "V4", "V5") else [2, 5]
        got = grouped(version, x=[LEFT], weight=[MATRICES], groupListOptional=ends)
        np.testing.assert_allclose(got, GROUPED, rtol=1e-5, atol=1e-6)
        apart = grouped(version, x=[LEFT], weight=list(MATRICES), groupListOptional=ends)
        np.testing.assert_allclose(apart, GROUPED, rtol=1e-5, atol=1e-6)
    counts = grouped("V4", x=[LEFT], weight=[MATRICES], groupListOptional=np.array([2, 3]), groupListType=1)
    np.testing.assert_allclose(counts, GROUPED, rtol=1e-5, atol=1e-6)


def test_groups_of_their_own() -> None:
    parts = [LEFT[:2], LEFT[2:]]
    for version in ("", "V2", "V3", "V4", "V5"):
        outs = [Out((2, 4)), Out((3, 4))]
        extra = {"groupType": -1} if version else {}
        got = grouped(version, x=parts, weight=list(MATRICES), splitItem=0, target=outs, **extra)
        np.testing.assert_allclose(np.concatenate(got), GROUPED, rtol=1e-5, atol=1e-6)
    biased = grouped("", x=[LEFT], weight=[MATRICES], groupListOptional=[2, 5], biasOptional=list(np.ones((2, 4), F)))
    np.testing.assert_allclose(biased, GROUPED + 1, rtol=1e-5, atol=1e-6)
    silent = grouped("V4", x=[LEFT], weight=[MATRICES], groupListOptional=np.array([2, 5]), actType=1)
    np.testing.assert_allclose(silent, np.maximum(GROUPED, 0), rtol=1e-5, atol=1e-6)


def test_groups_of_bytes() -> None:
    weights = RNG.integers(-9, 10, (2, 8, 6)).astype(np.int8)
    scales = np.stack([COLUMN, 2 * COLUMN])
    whole = np.concatenate([BYTES1[:1].astype(int) @ weights[0], BYTES1[1:].astype(int) @ weights[1]])
    want = whole * scales[[0, 1, 1, 1]] * ROWS[:, None]
    got = grouped("V4", x=[BYTES1], weight=[weights], scaleOptional=[scales], perTokenScaleOptional=[ROWS],
                  groupListOptional=np.array([1, 4]), target=[Out((4, 6), "float16")])  # fmt: skip
    np.testing.assert_allclose(got.astype(F), want, rtol=2e-3, atol=1e-2)


def test_wrong_groups() -> None:
    base: dict[str, Any] = {"x": [LEFT], "weight": [MATRICES], "splitItem": 2, "y": [Out((5, 4))]}
    assert refused("aclnnGroupedMatmul", **base) == 161002  # no list of groups
    assert refused("aclnnGroupedMatmul", **{**base, "splitItem": 4}, groupListOptional=[2, 5]) == 161002
    assert refused("aclnnGroupedMatmul", **{**base, "y": [Out((5, 3))]}, groupListOptional=[2, 5]) == 161002
    assert refused("aclnnGroupedMatmul", **base, groupListOptional=[2, 9]) == 507015  # beyond the rows, on the device


def test_gradients_of_groups_are_added() -> None:
    x, w, y = HALF, RNG.uniform(-1, 1, (4, 6)).astype(H), np.ones((2, 8, 6), F)
    want = y + np.stack([wide(x[:1]).T @ wide(w[:1]), wide(x[1:]).T @ wide(w[1:])])
    options = {"transposeX": True, "transposeWeight": False, "groupType": 2}
    for version, groups, extra in (("", [1, 4], {}), ("V2", [1, 3], {"groupListType": 1})):
        got = call(
            f"aclnnGroupedMatmulAdd{version}", x=x, weight=w, groupList=np.array(groups), yRef=y, **options, **extra
        )
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
