"""Modes of quantization that later versions added: columns, words of four bits, blocks of routed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, assert_same, call, refused
from .test_kernels_microscaled import BF, E4M3, E5M2, code, largest, microscaled
from .test_kernels_quantized_norm import F, H, dynamic, make, wide
from .test_kernels_row_blocks import in_blocks
from .test_kernels_weights import in_words

RNG = np.random.default_rng(71)


def beside(got: np.ndarray, want: np.ndarray) -> None:
    """Equal, but where a quotient is beside the middle of two numbers."""
    steps = np.abs(got.view(np.uint8).astype(int) - want.view(np.uint8))
    assert steps.max() <= 1 and (steps > 0).mean() < 0.03


# -- a scale for each column -------------------------------------------------------------------------------------------
COLUMNS = make(2, 5, 8)


def by_column(dtype: str, symmetric: bool, **more: Any) -> dict[str, Any]:
    return {
        "x": COLUMNS, "dstType": code(dtype) if dtype != "int8" else 2, "isSymmetrical": symmetric,
        "quantMode": "perchannel", "yOut": Out(COLUMNS.shape, dtype), "scaleOut": Out((2, 8)),
        "offsetOut": None if symmetric else Out((2, 8)), **more,
    }  # fmt: skip


def test_columns() -> None:
    y, scale = dynamic(wide(COLUMNS).swapaxes(1, 2))
    for version, more in (("V3", {}), ("V4", {"dstTypeMax": 0.0})):
        name = f"aclnnDynamicQuant{version}"
        got = call(name, **by_column("int8", True), **more)
        assert_same(got[0], np.ascontiguousarray(y.swapaxes(1, 2)))
        assert_same(got[1], scale)
        high, low = wide(COLUMNS).max(1), wide(COLUMNS).min(1)
        step = (high - low) / 255
        got = call(name, **by_column("int8", False), **more)
        assert_same(got[1], step.astype(F))
        assert_same(got[2], (127 - high / step).astype(F), 8)
        back = (got[0] - wide(got[2])[:, None]) * wide(got[1])[:, None]
        assert (np.abs(back - wide(COLUMNS)) <= step[:, None] * 0.51).all()
        assert refused(name, **{**by_column("int8", True), "scaleOut": Out((2, 5))}, **more) == 161002
        grouped = {"smoothScalesOptional": make(1, 8), "groupIndexOptional": np.array([2], np.int32)}
        assert refused(name, **by_column("int8", True), **grouped, **more) == 161002


def test_the_largest_number_may_be_stated() -> None:
    given = by_column("float8_e4m3fn", True, quantMode="pertoken", scaleOut=Out((2, 5)))
    got = call("aclnnDynamicQuantV4", **given, dstTypeMax=104.0)
    scale = np.abs(wide(COLUMNS)).max(-1) / 104
    assert_same(got[1], scale.astype(F))
    beside(got[0], (wide(COLUMNS) / scale[..., None]).astype(F).astype(E4M3))
    assert refused("aclnnDynamicQuantV4", **given, dstTypeMax=-1.0) == 161002
    assert refused("aclnnDynamicQuantV4", **by_column("int8", True), dstTypeMax=100.0) == 161002


# -- eight integers of four bits in a word -----------------------------------------------------------------------------
def test_normed_rows_in_words() -> None:
    x, gamma = make(3, 16), make(16)
    normed = wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-6) * wide(gamma)
    want = np.clip(np.rint(normed * 3), -8, 7)
    given = {"x": x, "gamma": gamma, "scale": np.array([3], H), "epsilon": 1e-6, "divMode": False, "outputRstd": False}
    got = call("aclnnRmsNormQuantV3", **given, y=Out((3, 2), "int32"), rstd=Out((3, 1)))[0]
    assert_same(got, in_words(want.astype(np.int8)))
    assert refused("aclnnRmsNormQuantV3", **given, y=Out((3, 16), "int32"), rstd=Out((3, 1))) == 161002
    scale = np.abs(normed).max(-1) / 7
    outs = {"y1Out": Out((3, 2), "int32"), "y2Out": Out((3, 2), "int32"), "xOut": Out((3, 16), "float16"),
            "scale1Out": Out((3,)), "scale2Out": Out((3,))}  # fmt: skip
    got = call("aclnnAddRmsNormDynamicQuantV2", x1=x, x2=np.zeros_like(x), gamma=gamma, epsilon=1e-6,
               outputMask=[True, False], **outs)  # fmt: skip
    assert_same(got[3], scale.astype(F))
    assert_same(got[0], in_words(np.rint(normed / scale[:, None]).astype(np.int8)))


def test_a_mode_that_is_not_named_is_static() -> None:
    x = make(3, 16)
    half = wide(x)[:, :8] / (1 + np.exp(-wide(x)[:, :8])) * wide(x)[:, 8:]
    scales = np.full((1, 8), 20, F)
    given = {"x": x, "smoothScalesOptional": scales, "activateLeft": True, "yOut": Out((3, 8), "int8")}
    want = np.clip(np.rint(half * 20), -128, 127).astype(np.int8)
    for name, more in (("aclnnSwiGluQuant", {}), ("aclnnSwiGluQuantV2", {"groupListType": 0, "dstType": 2})):
        got = call(name, **given, **more, scaleOut=Out((3,)))
        assert_same(got[0], want)


# -- routed rows in blocks ---------------------------------------------------------------------------------------------
TOKENS = make(4, 160, dtype=BF)
EXPERTS = np.array([[2, 0], [1, 2], [0, 1], [2, 1]], np.int32)
ORDER = np.argsort(EXPERTS.reshape(-1), kind="stable")
ROWS = wide(TOKENS)[ORDER // 2]
THIRD: dict[str, Any] = {
    "x": TOKENS, "expertIdx": EXPERTS, "activeNum": 8, "expertCapacity": 0, "expertNum": 3, "dropPadMode": 0,
    "expertTokensNumType": 1, "expertTokensNumFlag": False, "rowIdxType": 0,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_routed_rows_with_powers_of_two(dtype: Any) -> None:
    y, scales = microscaled(ROWS, -1, dtype)
    name = np.dtype(dtype).name
    outs = {"expandedXOut": Out((8, 160), name), "expandedRowIdxOut": Out((8,), "int32"),
            "expandedScaleOut": Out(scales.shape, "float8_e8m0fnu")}  # fmt: skip
    mode = 2 if dtype is E5M2 else 3
    got = call("aclnnMoeInitRoutingV3", **THIRD, **outs, quantMode=mode)
    assert_same(got[0], y)
    assert_same(got[-1], scales)
    assert refused("aclnnMoeInitRoutingV3", **THIRD, **outs, quantMode=8) == 161002
    short = {**outs, "expandedScaleOut": Out((8, 2, 2), "float8_e8m0fnu")}
    assert refused("aclnnMoeInitRoutingV3", **THIRD, **short, quantMode=mode) == 161002
    permuted: dict[str, Any] = {"permuteTokensOut": Out((8, 160), name), "sortedIndicesOut": Out((8,), "int32"),
                "expandedScaleOut": Out(scales.shape, "float8_e8m0fnu")}  # fmt: skip
    given = {"tokens": TOKENS, "indices": EXPERTS, "numOutTokens": 8, "paddedMode": False}
    got = call("aclnnMoeTokenPermuteV2", **given, **permuted, quantMode=mode)
    assert_same(got[0], y)
    assert_same(got[2], scales)
    assert (
        refused("aclnnMoeTokenPermuteV2", **given, **{**permuted, "expandedScaleOut": None}, quantMode=mode) == 161002
    )
    permuted |= {"permuteTokensOut": Out((8, 160), "bfloat16"), "expandedScaleOut": None}
    assert_same(call("aclnnMoeTokenPermuteV2", **given, **permuted, quantMode=-1)[0], TOKENS[ORDER // 2])


def test_routed_rows_with_a_scale_each() -> None:
    scale = np.abs(ROWS).max(-1) / largest(E4M3)
    got = call(
        "aclnnMoeInitRoutingV3", **THIRD, quantMode=1, expandedXOut=Out((8, 160), "float8_e4m3fn"),
        expandedRowIdxOut=Out((8,), "int32"), expandedScaleOut=Out((8,)),
    )  # fmt: skip
    assert_same(got[-1], scale.astype(F))
    beside(got[0], (ROWS / scale[:, None]).astype(F).astype(E4M3))


def test_scales_in_blocks_go_along() -> None:
    y, scales = microscaled(wide(TOKENS), -1, E4M3)
    got = call(
        "aclnnMoeInitRoutingV3", **{**THIRD, "x": y}, quantMode=-1, scaleOptional=scales,
        expandedXOut=Out((8, 160), "float8_e4m3fn"), expandedRowIdxOut=Out((8,), "int32"),
        expandedScaleOut=Out((8, *scales.shape[1:]), "float8_e8m0fnu"),
    )  # fmt: skip
    assert_same(got[0], y[ORDER // 2])
    assert_same(got[-1], scales[ORDER // 2])


def test_routed_rows_in_tiles() -> None:
    y, scales = in_blocks(ROWS, 128, E4M3)
    got = call(
        "aclnnMoeInitRoutingV3", **THIRD, quantMode=4, expandedXOut=Out((8, 160), "float8_e4m3fn"),
        expandedRowIdxOut=Out((8,), "int32"), expandedScaleOut=Out((8, 2)),
    )  # fmt: skip
    assert_same(got[-1], scales)
    beside(got[0], y)
