"""Numbers of 8 and 4 bits with a power of two for each block, and what precedes latent attention, against NumPy."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import CODES, Out, call, library_folder, refused
from .test_kernels_gated_quant import paired
from .test_kernels_quantized_norm import F, H, make, wide
from .test_kernels_weights import in_words, nz

RNG = np.random.default_rng(37)
BF, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E2M1, E8M0 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
LEAST = 2.0**-127


def largest(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).max)


FOURS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # the sizes of a number of four bits


def on_fours(x: np.ndarray, mode: str) -> np.ndarray:
    """The number of four bits that is not above x, or nearest to it, halves away from zero."""
    if mode == "rint":
        return x
    every = np.unique(np.concatenate([-FOURS, FOURS]))
    if mode == "floor":
        return np.asarray(every[np.maximum(np.searchsorted(every, x, "right") - 1, 0)])
    middles = (FOURS[1:] + FOURS[:-1]) / 2
    return np.asarray(np.copysign(FOURS[np.searchsorted(middles, np.abs(x), "right")], x))


def microscaled(
    x: np.ndarray, axis: int, dtype: Any, algorithm: int = 0, mode: str = "rint"
) -> tuple[np.ndarray, np.ndarray]:
    """y and the scales in pairs, by blocks of 32 along an axis."""
    moved = np.moveaxis(np.asarray(x, float), axis, -1)
    length = moved.shape[-1]
    count = -(-length // 32)
    padded = np.zeros((*moved.shape[:-1], count * 32))
    padded[..., :length] = moved
    top = np.abs(padded.reshape(*moved.shape[:-1], count, 32)).max(-1)
    with np.errstate(divide="ignore"):
        if algorithm == 0:
            power = np.floor(np.log2(top)) - np.floor(np.log2(largest(dtype)))
        else:
            power = np.ceil(np.log2(top / largest(dtype)))
    scale = np.where(top > 0, 2.0**power, LEAST)
    places = on_fours(moved / np.repeat(scale, 32, -1)[..., :length], mode)
    y = np.clip(places, -largest(dtype), largest(dtype)).astype(F).astype(dtype)
    pairs = np.full((*moved.shape[:-1], -(-count // 2) * 2), LEAST)
    pairs[..., :count] = scale
    pairs = np.moveaxis(pairs.reshape(*moved.shape[:-1], -1, 2), -2, axis if axis >= 0 else axis - 1)
    return np.moveaxis(y, -1, axis), np.ascontiguousarray(pairs).astype(F).astype(E8M0)


def code(dtype: Any) -> int:
    return CODES[np.dtype(dtype).name]


X = make(5, 70)
X[2, :32] = 0
WIDE = make(3, 40, 96, dtype=BF)
GAMMA, BETA = make(70, dtype=F), make(70, dtype=F)


def normed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rstd = 1 / np.sqrt((x**2).mean(-1) + 1e-6)
    return x * rstd[:, None] * wide(GAMMA) + wide(BETA), rstd.astype(F)[:, None]


def swiglu(x: np.ndarray) -> np.ndarray:
    a, b = np.split(np.asarray(x, float), 2, -1)
    return a / (1 + np.exp(-a)) * b


def swiglu_grad(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    a, b = np.split(np.asarray(x, float), 2, -1)
    s = 1 / (1 + np.exp(-a))
    return np.concatenate([g * b * (s + a * s * (1 - s)), g * a * s], -1)


def squares(x: np.ndarray, dtype: Any) -> dict[str, np.ndarray]:
    x = np.asarray(x, float)
    scale = np.zeros_like(x)
    for b in range(x.shape[0]):
        for i in range(0, x.shape[1], 32):
            for j in range(0, x.shape[2], 32):
                part = np.abs(x[b, i : i + 32, j : j + 32]).max()
                power = np.floor(np.log2(part)) - np.floor(np.log2(largest(dtype)))
                scale[b, i : i + 32, j : j + 32] = 2.0**power
    by_row, by_column = scale[:, :, ::32], scale[:, ::32, :]
    rows = np.full((*by_row.shape[:2], -(-by_row.shape[2] // 2) * 2), LEAST)
    rows[..., : by_row.shape[2]] = by_row
    columns = np.full((x.shape[0], -(-by_column.shape[1] // 2) * 2, x.shape[2]), LEAST)
    columns[:, : by_column.shape[1]] = by_column
    columns = columns.reshape(x.shape[0], -1, 2, x.shape[2]).transpose(0, 1, 3, 2)
    y = np.clip(x / scale, -largest(dtype), largest(dtype)).astype(F).astype(dtype)
    scales = {"scale1Out": rows.reshape(*rows.shape[:2], -1, 2), "scale2Out": np.ascontiguousarray(columns)}
    return {"yOut": y, **{name: s.astype(F).astype(E8M0) for name, s in scales.items()}}


def pair(values: tuple[np.ndarray, np.ndarray], y: str = "yOut", scale: str = "mxscaleOut") -> dict[str, np.ndarray]:
    return {y: values[0], scale: values[1]}


def both(x: np.ndarray, dtype: Any) -> dict[str, np.ndarray]:
    return {
        **pair(microscaled(x, -1, dtype), "y1Out", "mxscale1Out"),
        **pair(microscaled(x, -2, dtype), "y2Out", "mxscale2Out"),
    }


ONE: dict[str, Any] = {"x": X, "axis": -1, "blocksize": 32, "scaleAlg": 0, "roundModeOptional": "rint"}
SUM = wide(X) + 0.5 * wide(X)[::-1]
NORM = {"gamma": GAMMA, "beta": BETA, "epsilon": 1e-6, "scaleAlg": 0, "roundMode": "rint", "outputRstd": True}
GATE_X, GATE_G = make(40, 128), make(40, 64)
GATE = {"activateLeft": True, "scaleAlg": 0, "maxDtypeValue": 0.0, "roundModeOptional": "rint"}
FLAT, P1, P2 = make(3, 4, 8), make(4, 4), make(8, 8)
TURNED = wide(P1) @ wide(FLAT) @ wide(P2)
STEP = (np.abs(TURNED).max((1, 2)) * 0.9 / 7).astype(F)
FOUR = np.clip(np.rint(TURNED / STEP[:, None, None]), -8, 7).astype(ml_dtypes.int4)
SMALL1, SMALL2 = make(4, 6, dtype=F).astype(E4M3), make(6, 5, dtype=F).astype(E4M3)
Y = make(4, 5, dtype=F)
BACK = microscaled(WIDE, 1, E5M2)

CASES = [
    Direct("aclnnDynamicMxQuant", {**ONE, "dstType": code(E4M3)}, pair(microscaled(X, -1, E4M3))),
    Direct("aclnnDynamicMxQuant", {**ONE, "dstType": code(E2M1)}, pair(microscaled(X, -1, E2M1))),
    Direct("aclnnDynamicMxQuant", {**ONE, "scaleAlg": 1, "dstType": code(E4M3)}, pair(microscaled(X, -1, E4M3, 1))),
    Direct(
        "aclnnDynamicMxQuantV2", {**ONE, "x": WIDE, "axis": 1, "dstType": code(E5M2), "dstTypeMax": 0.0}, pair(BACK)
    ),
    Direct(
        "aclnnDynamicMxQuantV3",
        {**ONE, "dstType": code(E5M2), "dstTypeMax": 0.0, "maxLowBound": 0.0},
        pair(microscaled(X, -1, E5M2)),
    ),
    Direct("aclnnDynamicMxQuantWithDualAxis", {"x": WIDE, "dstType": code(E4M3), "scaleAlg": 0}, both(WIDE, E4M3)),
    Direct(
        "aclnnDynamicMxQuantWithDualAxisV2",
        {"x": WIDE, "dstType": code(E4M3), "scaleAlg": 0, "dstTypeMax": 0.0},
        both(WIDE, E4M3),
    ),
    Direct(
        "aclnnDynamicBlockMxQuant",
        {"x": WIDE, "dstType": code(E4M3), "scaleAlg": 0, "dstTypeMax": 0.0},
        squares(WIDE, E4M3),
    ),
    Direct(
        "aclnnAntiMxQuant",
        {"x": BACK[0], "mxscale": BACK[1], "axis": 1, "dstType": 0},
        {
            "y": (
                BACK[0].astype(float)
                * np.repeat(BACK[1].astype(float).transpose(0, 1, 3, 2).reshape(3, 2, 96), 32, 1)[:, :40]
            ).astype(F)
        },
    ),
    Direct(
        "aclnnRmsNormDynamicMxQuant",
        {"x": X, **NORM, "dstType": code(E4M3)},
        {**pair(microscaled(normed(wide(X))[0], -1, E4M3)), "rstdOut": normed(wide(X))[1]},
        200,
    ),
    Direct(
        "aclnnAddRmsNormDynamicMxQuant",
        {"x1": X, "x2": (0.5 * X[::-1]).astype(H), **NORM, "dstType": code(E4M3)},
        {
            "yOut": microscaled(normed(SUM)[0], -1, E4M3)[0],
            "xOut": SUM.astype(H),
            "mxscaleOut": microscaled(normed(SUM)[0], -1, E4M3)[1],
            "rstdOut": normed(SUM)[1],
        },
        200,
    ),
    Direct(
        "aclnnSwigluMxQuant",
        {
            "x": GATE_X,
            **GATE,
            "activateDim": -1,
            "swigluMode": 0,
            "clampLimit": 7.0,
            "gluAlpha": 1.702,
            "gluBias": 1.0,
            "groupMode": 0,
            "axis": -1,
            "dstType": code(E4M3),
        },
        pair(microscaled(swiglu(GATE_X), -1, E4M3)),
    ),
    Direct(
        "aclnnSwigluMxQuant",
        {
            "x": GATE_X,
            **GATE,
            "activateDim": 1,
            "swigluMode": 1,
            "clampLimit": 0.75,
            "gluAlpha": 1.702,
            "gluBias": 1.0,
            "groupMode": 0,
            "axis": -1,
            "dstType": code(E4M3),
        },
        pair(microscaled(paired(wide(GATE_X), 0.75, 1.702, 1.0), -1, E4M3)),
    ),
    *(
        Direct(
            "aclnnDynamicMxQuant",
            {**ONE, "roundModeOptional": mode, "dstType": code(E2M1)},
            pair(microscaled(X, -1, E2M1, mode=mode)),
        )
        for mode in ("floor", "round")
    ),
    Direct("aclnnSwigluMxQuantWithDualAxis", {"x": GATE_X, **GATE, "dstType": code(E4M3)}, both(swiglu(GATE_X), E4M3)),
    Direct(
        "aclnnSwigluBackwardMxQuantWithDualAxis",
        {"x": GATE_X, "yGrad": GATE_G, **GATE, "dstDtype": code(E4M3)},
        both(swiglu_grad(GATE_X, wide(GATE_G)), E4M3),
    ),
    Direct(
        "aclnnFlatQuant",
        {"x": FLAT, "kroneckerP1": P1, "kroneckerP2": P2, "clipRatio": 0.9},
        {"out": FOUR, "quantScale": STEP},
    ),
    Direct(
        "aclnnFlatQuantV2",
        {"x": FLAT, "kroneckerP1": P1, "kroneckerP2": P2, "clipRatio": 0.9, "dstTypeMax": 0.0},
        {"out": FOUR, "quantScale": STEP},
    ),
    Direct(
        "aclnnFlatQuantV3",
        {"x": FLAT, "kroneckerP1": P1, "kroneckerP2": P2, "clipRatio": 0.9, "dstTypeMax": 0.0, "groupListType": 0},
        {"out": in_words(FOUR), "quantScale": STEP},
    ),
    Direct(
        "aclnnQuantBatchMatmulInplaceAdd",
        {
            "x1": SMALL1,
            "x2": SMALL2,
            "x1ScaleOptional": np.array([2], F),
            "x2Scale": np.array([0.5], F),
            "yRef": Y,
            "transposeX1": False,
            "transposeX2": False,
            "groupSize": 0,
        },
        {"yRef": (wide(Y) + SMALL1.astype(float) @ SMALL2.astype(float)).astype(F)},
    ),
]


@each(CASES)
def test_microscaled(case: Direct) -> None:
    check(case)


@each(CASES)
def test_microscaled_refused(case: Direct) -> None:
    check_refusals(case)


def test_attributes_refused() -> None:
    outs = {"yOut": Out((5, 70), "float8_e4m3fn"), "mxscaleOut": Out((5, 2, 2), "float8_e8m0fnu")}
    good = {**ONE, "dstType": code(E4M3), **outs}
    for wrong in ({"dstType": 2}, {"axis": 2}, {"scaleAlg": 7}, {"blocksize": 64}, {"roundModeOptional": "hybrid"}):
        assert refused("aclnnDynamicMxQuant", **{**good, **wrong}) == 161002, wrong


@pytest.mark.parametrize("most", (0.0, 6.0, 7.0, 9.5, 12.0))
@pytest.mark.parametrize("name", ("aclnnDynamicMxQuantV2", "aclnnDynamicMxQuantV3"))
def test_a_largest_number_that_is_stated(name: str, most: float) -> None:
    """The least power of two that brings a block within `most`; what is beyond 6 then is 6."""
    given: dict[str, Any] = {**ONE, "dstType": code(E2M1), "scaleAlg": 2, "dstTypeMax": most}
    if name.endswith("V3"):
        given["maxLowBound"] = 0.0
    want, scales = np.zeros(X.shape), np.full((*X.shape[:-1], 2, 2), LEAST)
    for row, first in product(range(len(X)), range(0, X.shape[-1], 32)):
        block = X[row, first : first + 32].astype(float)
        scale = LEAST  # that of a block of zeros
        while np.abs(block).max() / scale > (most or 6.0):
            scale *= 2
        want[row, first : first + 32] = np.clip(block / scale, -6, 6)
        scales[row, first // 64, first // 32 % 2] = scale
    outs = {"yOut": want.astype(F).astype(E2M1), "mxscaleOut": scales.astype(F).astype(E8M0)}
    check(Direct(name, given, outs))
    empty = {"yOut": Out(X.shape, "float4_e2m1fn"), "mxscaleOut": Out(scales.shape, "float8_e8m0fnu")}
    for wrong in ({"dstTypeMax": 5.0}, {"dstTypeMax": 12.5}, {"dstTypeMax": np.nan}, {"scaleAlg": 3}):
        assert refused(name, **{**given, **wrong}, **empty) == 161002, wrong
    for wrong in ({"scaleAlg": 1, "dstTypeMax": 7.0}, {"scaleAlg": 0, "dstTypeMax": 7.0}):
        assert refused(name, **{**given, **wrong}, **empty) == 161002, wrong
    eight = {"dstType": code(E4M3), "yOut": Out(X.shape, "float8_e4m3fn"), "mxscaleOut": empty["mxscaleOut"]}
    assert refused(name, **{**given, **eight}) == 161002


@pytest.mark.parametrize("dtype", [E4M3, E5M2, E2M1])
def test_every_number_of_a_type(dtype: Any) -> None:
    """Codes are read and written as ml_dtypes has them: products with a scale of one give them back."""
    codes = np.arange(16 if dtype is E2M1 else 256, dtype=np.uint8).view(dtype)
    codes = codes[np.isfinite(codes.astype(float))]
    x = np.resize(codes.astype(F), (4, 128))
    got = call(
        "aclnnAntiMxQuant",
        x=x.astype(dtype),
        mxscale=np.ones((4, 2, 2), F).astype(E8M0),
        axis=-1,
        dstType=0,
        y=Out((4, 128)),
    )
    np.testing.assert_array_equal(got, x)


TOKENS, IN, QUERY, HEADS, NOPE, ROPE, LATENT = 3, 32, 48, 2, 16, 8, 24


def rotated(x: np.ndarray, sin: np.ndarray, cos: np.ndarray) -> np.ndarray:
    apart = np.concatenate([x[..., 0::2], x[..., 1::2]], -1)
    first, second = np.split(apart, 2, -1)
    return apart * cos + np.concatenate([-second, first], -1) * sin


def rms(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * wide(gamma)


@pytest.mark.parametrize("name", [f"aclnnMlaProlog{v}" for v in ("", "V2", "V3", "V2WeightNz", "V3WeightNz")])
def test_what_precedes_latent_attention(name: str) -> None:
    def some(*shape: int) -> np.ndarray:
        return (RNG.standard_normal(shape) / 4).astype(BF)

    x, dq, uq = some(TOKENS, IN), some(IN, QUERY), some(QUERY, HEADS * (NOPE + ROPE))
    uk, dkv = some(HEADS, NOPE, LATENT), some(IN, LATENT + ROPE)
    gq, gk, sin, cos = some(QUERY), some(LATENT), some(TOKENS, ROPE), some(TOKENS, ROPE)
    kv, kr = some(2, 4, 1, LATENT), some(2, 4, 1, ROPE)
    slots = np.array([5, 0, 7])
    index = "cacheIndexOptional" if "V3" in name else "cacheIndex"
    modes = ("weightQuantMode", "kvCacheQuantMode", "queryQuantMode", "ckvkrRepoMode", "quantScaleRepoMode", "tileSize")
    more = {**dict.fromkeys(modes, 0), "qcQrScale": 1.0, "kcScale": 1.0} if "V3" in name else {}
    if name.endswith("V3"):
        more |= {"queryNormFlag": False, "kNopeClipAlpha": 1.0}
    private = nz if name.endswith(("Nz", "Prolog")) else np.asarray
    values = {
        "tokenX": x,
        "weightDq": private(dq),
        "weightUqQr": private(uq),
        "weightUk": uk,
        "weightDkvKr": private(dkv),
        "rmsnormGammaCq": gq,
        "rmsnormGammaCkv": gk,
        "ropeSin": sin,
        "ropeCos": cos,
        index: slots,
        "kvCacheRef": kv,
        "krCacheRef": kr,
        "rmsnormEpsilonCq": 1e-5,
        "rmsnormEpsilonCkv": 1e-5,
        "cacheModeOptional": "PA_BSND",
        **more,
        "queryOut": Out((TOKENS, HEADS, LATENT), "bfloat16"),
        "queryRopeOut": Out((TOKENS, HEADS, ROPE), "bfloat16"),
    }
    got = call(name, **values)
    heads = (rms(wide(x) @ wide(dq), gq) @ wide(uq)).reshape(TOKENS, HEADS, NOPE + ROPE)
    latent = wide(x) @ wide(dkv)
    want_kv, want_kr = wide(kv).reshape(8, LATENT).copy(), wide(kr).reshape(8, ROPE).copy()
    want_kv[slots] = rms(latent[:, :LATENT], gk)
    want_kr[slots] = rotated(latent[:, LATENT:], wide(sin), wide(cos))
    query = np.einsum("thd,hdl->thl", heads[..., :NOPE], wide(uk))
    turned = rotated(heads[..., NOPE:], wide(sin)[:, None], wide(cos)[:, None])
    for result, want in zip(got, (want_kv.reshape(kv.shape), want_kr.reshape(kr.shape), query, turned)):
        np.testing.assert_allclose(wide(result), want, rtol=2e-2, atol=2e-2)
    assert refused(name, **{**values, "cacheModeOptional": "PA_BNSD"}) == 161002
    assert refused(name, **{**values, index: np.array([5, 0, 8])}) == 507015
    assert refused(name, **{**values, "queryOut": Out((TOKENS, HEADS, LATENT + 1), "bfloat16")}) == 161002


@pytest.mark.parametrize("whole", (False, True))
@pytest.mark.parametrize("mode", ("PA_BSND", "PA_NZ"))
def test_what_precedes_latent_attention_in_bytes(whole: bool, mode: str) -> None:
    """INT8 in the query's second product or everywhere, into caches of INT8."""
    rope, latent = 32, 64

    def some(*shape: int) -> np.ndarray:
        return (RNG.standard_normal(shape) / 4).astype(BF)

    def small(*shape: int) -> np.ndarray:
        return RNG.integers(-100, 100, shape).astype(np.int8)

    def scales(n: int) -> np.ndarray:
        return RNG.uniform(0.5, 1.5, n).astype(np.float32)

    columns = HEADS * (NOPE + rope)
    first = small if whole else some
    x, dq, dkv = first(TOKENS, IN), first(IN, QUERY), first(IN, latent + rope)
    uq, uk = small(QUERY, columns), some(HEADS, NOPE, latent)
    gq, gk, sin, cos = some(QUERY), some(latent), some(TOKENS, rope), some(TOKENS, rope)
    kv, kr = small(2, 4, 1, latent), small(2, 4, 1, rope)
    by_token, by_query, by_latent = scales(TOKENS) / 900, scales(QUERY) / 9, scales(latent + rope) / 9
    by_column, smooth = scales(columns) / 300, scales(QUERY)
    kv_scale, kr_scale = scales(latent) * 90, np.array([60], np.float32)
    slots = np.array([5, 0, 7])
    values: dict[str, Any] = {
        "tokenX": x, "weightDq": dq, "weightUqQr": uq, "weightUk": uk, "weightDkvKr": dkv, "rmsnormGammaCq": gq,
        "rmsnormGammaCkv": gk, "ropeSin": sin, "ropeCos": cos, "cacheIndex": slots, "kvCacheRef": kv, "krCacheRef": kr,
        "dequantScaleWUqQrOptional": by_column[None], "smoothScalesCqOptional": smooth[None],
        "quantScaleCkvOptional": kv_scale[None], "quantScaleCkrOptional": kr_scale[None], "rmsnormEpsilonCq": 1e-5,
        "rmsnormEpsilonCkv": 1e-5, "cacheModeOptional": mode, "queryOut": Out((TOKENS, HEADS, latent), "bfloat16"),
        "queryRopeOut": Out((TOKENS, HEADS, rope), "bfloat16"),
    }  # fmt: skip
    down, both = wide(x) @ wide(dq), wide(x) @ wide(dkv)
    if whole:
        values |= {"dequantScaleXOptional": by_token[:, None], "dequantScaleWDqOptional": by_query[None],
                   "dequantScaleWDkvKrOptional": by_latent[None]}  # fmt: skip
        down, both = (y * wide(by_token)[:, None] * wide(by) for y, by in ((down, by_query), (both, by_latent)))
    down = rms(down, gq) * wide(smooth)
    step = np.abs(down).max(-1, keepdims=True) / 127
    heads = (np.rint(down / step) @ wide(uq) * step * wide(by_column)).reshape(TOKENS, HEADS, NOPE + rope)

    def held(cache: np.ndarray, rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
        out = cache.copy()
        run = 32 if mode == "PA_NZ" else cache.shape[3]
        pages = out.reshape(2, -1, 4, run)
        for slot, row in zip(slots, np.clip(np.rint(rows * wide(scale)), -128, 127)):
            pages[slot // 4, :, slot % 4] = row.reshape(-1, run)
        return out

    got = call("aclnnMlaPrologV2", **values)
    want_kv = held(kv, rms(both[:, :latent], gk), kv_scale)
    want_kr = held(kr, rotated(both[:, latent:], wide(sin), wide(cos)), kr_scale)
    for result, want in zip(got[:2], (want_kv, want_kr)):
        np.testing.assert_allclose(wide(result), wide(want), atol=0 if whole else 1)
    query = np.einsum("thd,hdl->thl", heads[..., :NOPE], wide(uk))
    turned = rotated(heads[..., NOPE:], wide(sin)[:, None], wide(cos)[:, None])
    for result, want in zip(got[2:], (query, turned)):
        np.testing.assert_allclose(wide(result), want, rtol=2e-2, atol=2e-2 * np.abs(want).max())
    short = {"dequantScaleWUqQrOptional": by_column[None, :-1]}
    assert refused("aclnnMlaPrologV2", **{**values, **short}) == 161002
    assert refused("aclnnMlaPrologV2", **{**values, "dequantScaleWUqQrOptional": None}) == 161002
    assert refused("aclnnMlaPrologV2", **{**values, "kvCacheRef": some(2, 4, 1, latent)}) == 161002


@pytest.mark.parametrize("second", (False, True))
def test_latent_attention_of_bytes_in_order(second: bool) -> None:
    """Queries of INT8 with their scales, normed rows given back, caches in the order of the tokens."""

    def some(*shape: int) -> np.ndarray:
        return (RNG.standard_normal(shape) / 4).astype(BF)

    x, dq, uk, dkv = some(TOKENS, IN), some(IN, QUERY), some(HEADS, NOPE, LATENT), some(IN, LATENT + ROPE)
    columns = HEADS * (NOPE + ROPE)
    uq = RNG.integers(-100, 100, (QUERY, columns)).astype(np.int8) if second else some(QUERY, columns)
    gq, gk, sin, cos = some(QUERY), some(LATENT), some(TOKENS, ROPE), some(TOKENS, ROPE)
    by_column, one = RNG.uniform(0.001, 0.003, columns).astype(F), np.array([40], F)
    modes = ("weightQuantMode", "kvCacheQuantMode", "queryQuantMode", "ckvkrRepoMode", "quantScaleRepoMode", "tileSize")
    values: dict[str, Any] = {
        "tokenX": x, "weightDq": dq, "weightUqQr": uq, "weightUk": uk, "weightDkvKr": dkv, "rmsnormGammaCq": gq,
        "rmsnormGammaCkv": gk, "ropeSin": sin, "ropeCos": cos, "kvCacheRef": np.zeros((TOKENS, 1, LATENT), np.int8),
        "krCacheRef": np.zeros((TOKENS, 1, ROPE), BF), "quantScaleCkvOptional": one, "rmsnormEpsilonCq": 1e-5,
        "rmsnormEpsilonCkv": 1e-5, "cacheModeOptional": "TND", **dict.fromkeys(modes, 0), "qcQrScale": 1.0,
        "kcScale": 1.0, "queryNormFlag": True, "kNopeClipAlpha": 1.0, "kvCacheQuantMode": 1, "queryQuantMode": 1,
        "weightQuantMode": int(second), "queryOut": Out((TOKENS, HEADS, LATENT), "int8"),
        "queryRopeOut": Out((TOKENS, HEADS, ROPE), "bfloat16"), "dequantScaleQNopeOut": Out((TOKENS, HEADS, 1)),
        "queryNormOut": Out((TOKENS, QUERY), "int8" if second else "bfloat16"),
    }  # fmt: skip
    down = rms(wide(x) @ wide(dq), gq)
    step = np.abs(down).max(-1, keepdims=True) / 127
    if second:
        values |= {"dequantScaleWUqQrOptional": by_column[None], "dequantScaleQNormOut": Out((TOKENS, 1))}
    heads = np.rint(down / step) @ wide(uq) * step * wide(by_column) if second else down @ wide(uq)
    query = np.einsum("thd,hdl->thl", heads.reshape(TOKENS, HEADS, -1)[..., :NOPE], wide(uk))
    scale = np.abs(query).max(-1, keepdims=True) / 127
    latent = wide(x) @ wide(dkv)
    kv, kr, got_query, _, got_scale, normed, *more = call("aclnnMlaPrologV3", **values)
    np.testing.assert_array_equal(kv[:, 0], np.clip(np.rint(rms(latent[:, :LATENT], gk) * 40), -128, 127))
    np.testing.assert_allclose(wide(kr[:, 0]), rotated(latent[:, LATENT:], wide(sin), wide(cos)), atol=2e-2)
    np.testing.assert_allclose(got_scale, scale, rtol=1e-5)
    np.testing.assert_array_equal(got_query, np.rint(query / scale))
    np.testing.assert_allclose(wide(normed), np.rint(down / step) if second else down, rtol=1e-2)
    for found in more:
        np.testing.assert_allclose(found, step, rtol=1e-5)
    wrong: list[dict[str, Any]] = [{"queryQuantMode": 0}, {"kvCacheQuantMode": 0}, {"kvCacheQuantMode": 2},
                                   {"dequantScaleQNopeOut": None}, {"queryNormOut": None}, {"kvCacheQuantMode": 3},
                                   {"krCacheRef": some(TOKENS + 1, 1, ROPE)}]  # fmt: skip
    for change in wrong:
        assert refused("aclnnMlaPrologV3", **{**values, **change}) == 161002, change


def test_the_libraries_are_there() -> None:
    for name in ("libhccl.so", "libhcomm.so"):
        assert ctypes.CDLL(str(library_folder() / name)).HcclAllReduce


# -- functions that had INT8 alone ------------------------------------------------------------------------------------
PLAIN = make(4, 16)
RATIO, SHIFT = RNG.uniform(2, 5, 16).astype(H), RNG.uniform(-1, 1, 16).astype(H)
NIBBLES = np.clip(np.rint(wide(PLAIN) * wide(RATIO) + wide(SHIFT)), -8, 7).astype(ml_dtypes.int4)


def dynamic(x: np.ndarray) -> dict[str, np.ndarray]:
    step = np.abs(wide(x)).max(-1) / 7
    y = np.clip(np.rint(wide(x) / step[:, None]), -8, 7)
    return {"yOut": y.astype(ml_dtypes.int4), "scaleOut": step.astype(F)}


ASCEND = {"x": PLAIN, "scale": RATIO, "offset": SHIFT, "sqrtMode": False, "roundMode": "round"}
BACK_AGAIN = {"scale": RATIO.astype(F), "offset": SHIFT.astype(F), "dstType": 1, "sqrtMode": False}
WHOLE = {"y": ((NIBBLES.astype(float) + wide(SHIFT)) * wide(RATIO)).astype(H)}
SMALL_CASES = [
    Direct("aclnnAscendQuant", {**ASCEND, "dstType": 29}, {"y": NIBBLES}),
    Direct("aclnnAscendQuant", {**ASCEND, "dstType": 3}, {"y": in_words(NIBBLES)}),
    Direct("aclnnAscendQuantV3", {**ASCEND, "dstType": 29, "axis": -1}, {"y": NIBBLES}),
    Direct("aclnnAscendAntiQuant", {"x": NIBBLES, **BACK_AGAIN}, WHOLE),
    Direct("aclnnAscendAntiQuant", {"x": in_words(NIBBLES), **BACK_AGAIN}, WHOLE),
    Direct("aclnnDynamicQuantV2", {"x": PLAIN, "dstType": 29}, dynamic(PLAIN)),
]


@each(SMALL_CASES)
def test_small_results(case: Direct) -> None:
    check(case)
