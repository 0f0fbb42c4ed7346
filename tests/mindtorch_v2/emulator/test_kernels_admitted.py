"""What documents admit besides the usual: fewer dimensions, one number for all, windows, results nobody asked for.

Invariant: the numbers come from NumPy, written here a second time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, checked
from ._kernels import Out, assert_same, call, refused

RNG = np.random.default_rng(29)
F, H, I8, I32 = np.float32, np.float16, np.int8, np.int32


def make(*shape: int, dtype: Any = F) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def to_bytes(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(x), -128, 127).astype(I8)


# -- gated rows: a factor and a shift for all, for each group, for each column of each group -------------------------
GATE = make(5, 8)
GATED = wide(GATE)[:, :4] * wide(GATE)[:, 4:] / (1 + np.exp(-wide(GATE)[:, 4:]))
ENDS, GROUP_OF = np.array([2, 5], I32), np.array([0, 0, 1, 1, 1])
PLAIN: dict[str, Any] = {"x": GATE, "activateLeft": False, "quantModeOptional": "static"}


def static(factors: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Factors and shifts (groups or 1, columns or 1)."""
    which = GROUP_OF if len(factors) == 2 else np.zeros(5, int)
    return to_bytes(GATED * wide(factors)[which] + wide(shifts)[which])


def gated_cases() -> list[Direct]:
    cases = []
    for shape, groups in (((1,), 1), ((2,), 2), ((2, 4), 2), ((4,), 1)):
        factors, shifts = RNG.uniform(20, 40, shape).astype(F), make(*shape)
        group = {"groupIndexOptional": ENDS} if groups == 2 else {}
        want = static(factors.reshape(groups, -1), shifts.reshape(groups, -1))
        scales = {"smoothScalesOptional": factors, "offsetsOptional": shifts, **group}
        for name, more in (("aclnnSwiGluQuant", {}), ("aclnnSwiGluQuantV2", {"groupListType": 0, "dstType": 2})):
            unasked = {"scaleOut": np.zeros(5, F)}
            cases.append(Direct(name, {**PLAIN, **scales, **more, **unasked}, {"yOut": want, **unasked}))
    return cases


# -- rows with a scale each --------------------------------------------------------------------------------------------
HALF, SMOOTH = make(5, 6, dtype=H), RNG.uniform(0.5, 2, (2, 6)).astype(H)


def rows_scaled(smooth: np.ndarray) -> dict[str, np.ndarray]:
    """Between the smallest and the largest of a row."""
    x = wide(HALF) * wide(smooth)
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    scale = (high - low) / 255
    offset = 127 - high / scale
    return {
        "yOut": to_bytes(x / scale + offset),
        "scaleOut": scale[:, 0].astype(F),
        "offsetOut": offset[:, 0].astype(F),
    }


CASES = [
    *gated_cases(),
    Direct("aclnnDynamicQuantV2", {"x": HALF, "smoothScalesOptional": SMOOTH[0], "dstType": 2}, rows_scaled(SMOOTH[0])),
    Direct("aclnnDynamicQuantV2", {"x": HALF, "smoothScalesOptional": SMOOTH, "groupIndexOptional": ENDS, "dstType": 2},
           rows_scaled(SMOOTH[GROUP_OF])),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_factors_that_do_not_fit() -> None:
    given: dict[str, Any] = {**PLAIN, "smoothScalesOptional": make(3, 4), "groupIndexOptional": ENDS,
                             "yOut": Out((5, 4), "int8"), "scaleOut": Out((5,))}  # fmt: skip
    assert refused("aclnnSwiGluQuant", **given) == 161002
    assert (
        refused("aclnnSwiGluQuant", **{**given, "smoothScalesOptional": None, "offsetsOptional": make(2, 4)}) == 161002
    )
    whole: dict[str, Any] = {
        "x": np.ones((5, 8), I32), "weightScaleOptional": make(3, 8), "quantScaleOptional": make(3, 4),
        "groupIndexOptional": np.array([1, 2, 2]), "activateLeft": True, "quantModeOptional": "dynamic",
        "yOut": Out((5, 4), "int8"), "scaleOut": Out((5,)),
    }  # fmt: skip
    call("aclnnDequantSwigluQuant", **whole)
    for short in (
        {"biasOptional": make(2, 8)},
        {"quantOffsetOptional": make(2, 4)},
        {"weightScaleOptional": make(2, 8)},
    ):
        assert refused("aclnnDequantSwigluQuant", **{**whole, **short}) == 161002, short


# -- the last keys of each head in a row of their own ------------------------------------------------------------------
KEY, CACHE = make(2, 4, 3, 5), make(6, 4, 1, 5)
WINDOWS: dict[str, Any] = {
    "slotMapping": np.array([[0, 5, 9], [12, 17, 20]], I32),
    "compressLensOptional": np.array([[2, 4, 3], [1, 3, 0]], I32),
    "seqLensOptional": np.array([4, 3], I32),
}  # fmt: skip


def with_windows(cache: np.ndarray, key: np.ndarray) -> np.ndarray:
    flat = cache.reshape(-1, 5).copy()
    for b, length in enumerate(WINDOWS["seqLensOptional"]):
        for h in range(3):
            n, slot = WINDOWS["compressLensOptional"][b, h], WINDOWS["slotMapping"][b, h]
            flat[slot : slot + n] = key[b, length - n : length, h]
    return flat.reshape(cache.shape)


def test_windows_of_keys_in_pages() -> None:
    given = {"key": KEY, "keyCacheRef": CACHE, **WINDOWS}
    assert_same(call("aclnnScatterPaCache", **given, cacheMode="Norm"), with_windows(CACHE, KEY))
    both = {**given, **{k: v.reshape(-1) for k, v in WINDOWS.items()}, "value": -KEY, "valueCacheRef": -CACHE}
    got = call("aclnnScatterPaKvCache", **both, scatterModeOptional="Alibi")
    for g, want in zip(got, (with_windows(CACHE, KEY), -with_windows(CACHE, KEY))):
        assert_same(g, want)
    assert refused("aclnnScatterPaKvCache", **both, scatterModeOptional="Omni") == 161002


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("seqLensOptional", [4, 5], 507015),
        ("seqLensOptional", [4, -1], 507015),
        ("seqLensOptional", [4], 161002),
        ("compressLensOptional", [[2, 4, 3], [1, 4, 0]], 507015),
        ("compressLensOptional", [[2, 4, 3], [1, -1, 0]], 507015),
        ("compressLensOptional", [[2, 4, 3]], 161002),
        ("slotMapping", [[0, 5, 9], [12, 22, 20]], 507015),
        ("slotMapping", [[0, 5, 9], [12, 2**31 - 1, 20]], 507015),
        ("slotMapping", [0, 5], 161002),
    ],
)
def test_windows_that_are_not_there(name: str, value: Any, code: int) -> None:
    given = {"key": KEY, "keyCacheRef": CACHE, "cacheMode": "Norm", **WINDOWS}
    assert refused("aclnnScatterPaCache", **{**given, name: np.array(value, I32)}) == code


def test_a_sum_that_nobody_asked_for() -> None:
    """Attention's last result may be of one element where its flag is false, and not where it is true."""
    q = make(1, 2, 3, 16, dtype=H)
    given: dict[str, Any] = {
        "query": q, "key": [q], "value": [q], "numHeads": 2, "scaleValue": 0.25, "preTokens": 65535,
        "nextTokens": 65535, "inputLayout": "BNSD", "numKeyValueHeads": 2, "sparseMode": 0, "innerPrecise": 1,
        "blockSize": 0, "antiquantMode": 0, "attentionOut": Out(q.shape, "float16"), "softmaxLse": Out((1,)),
    }  # fmt: skip
    scores = np.exp(wide(q) @ wide(q).swapaxes(-1, -2) * 0.25)
    want = scores / scores.sum(-1, keepdims=True) @ wide(q)
    got = call("aclnnFusedInferAttentionScore", **given, softmaxLseFlag=False)[0]
    assert_same(got, want.astype(H))
    assert refused("aclnnFusedInferAttentionScore", **given, softmaxLseFlag=True) == 161002
