"""What precedes attention, in bytes: windows of images, rotated keys into caches, latent keys; against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._chips import on_chip
from ._kernels import In, Out, Reuse, assert_same, call, refused
from .test_kernels_quantized_norm import F, H, layer, make, rms, to_bytes, wide

RNG = np.random.default_rng(43)
I8 = np.int8


def small(*shape: int) -> np.ndarray:
    return RNG.integers(-20, 20, shape).astype(I8)


def packed(scale: np.ndarray) -> np.ndarray:
    return scale.astype(F).view(np.uint32).astype(np.uint64)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    first, second = np.split(x, 2, -1)
    return x * cos + np.concatenate([-second, first], -1) * sin


def check_windows(transposed: bool) -> None:
    batch, high, across, heads, size = 2, 4, 6, 2, 4
    width = heads * size
    x, gamma, beta = make(batch, high * across, width), make(width), make(width)
    weight, bias = small(3 * width, width), RNG.integers(-50, 50, 3 * width).astype(np.int32)
    scale, offset = RNG.uniform(5, 9, width).astype(H), RNG.uniform(-2, 2, width).astype(H)
    factor = RNG.uniform(0.001, 0.003, 3 * width).astype(F)
    bytes_ = to_bytes(layer(wide(x), wide(gamma), wide(beta)) * wide(scale) + wide(offset)).astype(float)
    y = (bytes_ @ weight.T.astype(float) + bias) * factor.astype(float)
    parts = y.reshape(batch, high // 2, 2, across // 3, 3, 3, heads, size).transpose(5, 0, 1, 3, 6, 2, 4, 7)
    want = parts.reshape(3, batch * 4, heads, 6, size).astype(H)
    given: dict[str, Any] = {
        "x": x,
        "gamma": gamma,
        "beta": beta,
        "weight": weight if transposed else weight.T.copy(),
        "bias": bias,
        "quantScale": scale,
        "quantOffset": offset,
        "dequantScale": packed(factor),
        "headNum": heads,
        "seqLength": size,
        "epsilon": 1e-5,
        "oriHeight": high,
        "oriWeight": across,
        "hWinSize": 2,
        "wWinSize": 3,
        "weightTranspose": transposed,
        **{f"{n}OutputOut": Out(want.shape[1:], "float16") for n in ("query", "key", "value")},
    }
    for got, wanted in zip(call("aclnnSwinTransformerLnQkvQuant", **given), want):
        np.testing.assert_allclose(wide(got), wide(wanted), atol=0.02)
    assert refused("aclnnSwinTransformerLnQkvQuant", **{**given, "hWinSize": 3}) == 161002
    assert refused("aclnnSwinTransformerLnQkvQuant", **{**given, "headNum": 3}) == 161002


def check_scores_of_windows(masked: bool) -> None:
    q, k, v = small(4, 2, 3, 8), small(4, 2, 3, 8), small(4, 2, 3, 8)
    first, last = RNG.uniform(0.001, 0.002, (1, 3)).astype(F), RNG.uniform(0.01, 0.02, (1, 8)).astype(F)
    scale, shift = RNG.uniform(90, 120, (1, 3)).astype(H), RNG.uniform(-2, 2, (1, 3)).astype(H)
    added, after = (RNG.integers(-9, 9, (1, n)).astype(np.int32) for n in (3, 8))
    mask = make(2, 1, 3, 3)
    score = (q.astype(float) @ k.astype(float).swapaxes(2, 3) + added) * wide(first)
    if masked:
        score = score + np.tile(wide(mask), (2, 1, 1, 1))
    p = to_bytes(softmax(score) * wide(scale) + wide(shift)).astype(float)
    want = ((p @ v.astype(float) + after) * wide(last)).astype(H)
    given: dict[str, Any] = {
        "query": q,
        "key": k,
        "value": v,
        "scaleQuant": scale,
        "scaleDequant1": packed(first),
        "scaleDequant2": packed(last),
        "biasQuantOptional": shift,
        "biasDequant1Optional": added,
        "biasDequant2Optional": after,
        "paddingMask1Optional": mask if masked else None,
        "queryTranspose": False,
        "keyTranspose": False,
        "valueTranspose": False,
        "softmaxAxes": -1,
        "out": Out((4, 2, 3, 8), "float16"),
    }
    np.testing.assert_allclose(wide(call("aclnnSwinAttentionScoreQuant", **given)), wide(want), atol=0.5)
    other = {**given, "key": k.swapaxes(2, 3).copy(), "keyTranspose": True}
    assert_same(call("aclnnSwinAttentionScoreQuant", **other), call("aclnnSwinAttentionScoreQuant", **given))
    assert refused("aclnnSwinAttentionScoreQuant", **{**given, "softmaxAxes": 1}) == 161002


def check_elsewhere() -> None:
    for flag in (False, True):
        check_windows(flag)
        check_scores_of_windows(flag)


def test_windows() -> None:
    on_chip("310P", check_elsewhere)


@pytest.mark.parametrize("mode", ["contiguous", "page"])
@pytest.mark.parametrize("whole", [False, True])
def test_dequantized_rope(mode: str, whole: bool) -> None:
    batch, length, size, heads = 2, 3, 4, (2, 1, 1)
    columns = [h * size for h in heads]
    tokens = batch * length
    x = (
        RNG.integers(-50, 50, (batch, length, sum(columns))).astype(np.int32)
        if whole
        else make(batch, length, sum(columns))
    )
    cos, sin = make(batch, length, 1, size), make(batch, length, 1, size)
    weight, active, bias = (RNG.uniform(0.01, 0.02, n).astype(F) for n in (sum(columns), tokens, sum(columns)))
    y = np.asarray(x, float)
    if whole:
        y = y * wide(weight) * wide(active).reshape(batch, length, 1) * 50 / 50 + wide(bias)
    parts = [p.reshape(batch, length, -1, size) for p in np.split(y, np.cumsum(columns)[:2], -1)]
    q, k, v = turned(parts[0], wide(cos), wide(sin)), turned(parts[1], wide(cos), wide(sin)), parts[2]
    indices = np.array([1, 2] if mode == "contiguous" else [7, 0, -1, 3, 9, 4], np.int32)
    caches, scales, offsets = [small(2, 5, 1, size) for _ in "kv"], [], []
    want = []
    for cache, part in zip(caches, (k, v)):
        scales.append(RNG.uniform(0.02, 0.05, (1, size)).astype(F))
        offsets.append(RNG.uniform(-3, 3, (1, size)).astype(F))
        rows = to_bytes(part.reshape(tokens, 1, size) / wide(scales[-1]) + wide(offsets[-1]))
        kept = cache.copy().reshape(10, 1, size)
        for t in range(tokens):
            slot = indices[t] if mode == "page" else t // length * 5 + indices[t // length] + t % length
            if slot >= 0:
                kept[slot] = rows[t]
        want.append(kept.reshape(cache.shape))
    given: dict[str, Any] = {
        "x": x,
        "cos": cos,
        "sin": sin,
        "kCacheRef": caches[0],
        "vCacheRef": caches[1],
        "indices": indices,
        "scaleK": scales[0],
        "scaleV": scales[1],
        "offsetKOptional": offsets[0],
        "offsetVOptional": offsets[1],
        "weightScaleOptional": weight if whole else None,
        "activationScaleOptional": active if whole else None,
        "biasOptional": bias if whole else None,
        "sizeSplits": columns,
        "quantModeOptional": "static",
        "layoutOptional": "BSND",
        "kvOutput": True,
        "cacheModeOptional": mode,
        **{f"{n}Out": Out((batch, length, h, size), "float16") for n, h in zip("qkv", heads)},
    }
    k_cache, v_cache, *outs = call("aclnnDequantRopeQuantKvcache", **given)
    for got, wanted in zip((k_cache, v_cache), want):
        assert np.abs(got.astype(int) - wanted.astype(int)).max() <= 1
    for got, wanted in zip(outs, (q, k, v)):
        assert_same(got, wanted.astype(H), 2)
    flat = {**given, "kCacheRef": caches[0].reshape(10, size) if mode == "page" else caches[0].reshape(2, 5, size)}
    got = call("aclnnDequantRopeQuantKvcache", **flat)[0]
    assert_same(got.reshape(k_cache.shape), k_cache)
    assert refused("aclnnDequantRopeQuantKvcache", **{**given, "cacheModeOptional": "other"}) == 161002
    assert refused("aclnnDequantRopeQuantKvcache", **{**given, "sizeSplits": [8, 4]}) == 161002
    assert refused("aclnnDequantRopeQuantKvcache", **{**given, "kOut": None}) == 161001


TOKENS, IN, QUERY, HEADS, NOPE, ROPE, LATENT = 3, 16, 8, 2, 4, 16, 32


def preprocess(mode: int, apart: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    x, cos, sin = make(TOKENS, IN), make(TOKENS, ROPE), make(TOKENS, ROPE)
    down_rows, up_rows = LATENT + ROPE + QUERY, HEADS * (NOPE + ROPE)
    gammas = [make(n) for n in (IN, QUERY, LATENT)]
    betas = [make(n) for n in (IN, QUERY)]
    weights = (
        [small(down_rows, IN), small(up_rows, QUERY)] if mode != 3 else [make(down_rows, IN), make(up_rows, QUERY)]
    )
    factors = [RNG.uniform(0.01, 0.02, n).astype(F) for n in (down_rows, up_rows)]
    biases = [RNG.integers(-9, 9, n).astype(np.int32) for n in (down_rows, up_rows)]
    scales, offsets = [make(1) * 0 + H(0.0625), make(1) * 0 + H(0.125)], [np.array([3], I8), np.array([-2], I8)]
    keys, slots = make(HEADS, NOPE, LATENT), np.array([4, -1, 1], np.int32)

    def product(v: np.ndarray, i: int) -> np.ndarray:
        w = weights[i].astype(float).T
        if mode == 3:
            return np.asarray(v @ w)
        if mode == 0:
            b = np.clip(np.rint(v / float(scales[i][0]) + float(offsets[i][0])), -128, 127)
            return np.asarray((b @ w + biases[i]) * wide(factors[i]))
        step = np.abs(v).max(1, keepdims=True) / 127
        return np.asarray(np.rint(v / step) @ w * wide(factors[i]) * step)

    down = product(rms(wide(x), wide(gammas[0]), wide(betas[0])), 0)
    latent, rope, query = np.split(down, [LATENT, LATENT + ROPE], 1)
    query = rms(query, wide(gammas[1]), wide(betas[1]))
    up = product(query, 1).reshape(TOKENS, HEADS, NOPE + ROPE)
    q = np.einsum("thk,hkj->thj", up[..., :NOPE], wide(keys))
    q_rope = turned(up[..., NOPE:], wide(cos)[:, None], wide(sin)[:, None])
    kv, kr = rms(latent, wide(gammas[2])), turned(rope, wide(cos), wide(sin))
    row = LATENT if apart else LATENT + ROPE
    cache, rope_cache = make(2, 3, 1, row), make(2, 3, 1, ROPE)
    want_kv, want_kr = cache.copy().reshape(6, row), rope_cache.copy().reshape(6, ROPE)
    for t, slot in enumerate(slots):
        if slot >= 0:
            want_kv[slot] = kv[t] if apart else np.concatenate([kv[t], kr[t]])
            want_kr[slot] = kr[t]
    given: dict[str, Any] = {
        "input": x, "gamma0": gammas[0], "beta0": betas[0], "quantScale0": scales[0], "quantOffset0": offsets[0],
        "wdqkv": weights[0], "deScale0": factors[0], "bias0": biases[0], "gamma1": gammas[1], "beta1": betas[1],
        "quantScale1": scales[1], "quantOffset1": offsets[1], "wuq": weights[1], "deScale1": factors[1],
        "bias1": biases[1], "gamma2": gammas[2], "cos": cos, "sin": sin, "wuk": keys, "kvCache": cache,
        "kvCacheRope": rope_cache, "slotMapping": slots, "ctkvScale": make(1), "qNopeScale": make(1), "wdqDim": QUERY,
        "qRopeDim": ROPE, "kRopeDim": ROPE, "epsilon": 1e-5, "qRotaryCoeff": 2, "kRotaryCoeff": 2,
        "transposeWdq": True, "transposeWuq": True, "transposeWuk": True, "cacheMode": int(apart), "quantMode": mode,
        "doRmsNorm": True, "wdkvSplitCount": 1, "qOut": Out((TOKENS, HEADS, row), "float16"),
        "kvCacheOut": Out(cache.shape, "float16"), "qRopeOut": Out((TOKENS, HEADS, ROPE), "float16"),
        "krCacheOut": Out(rope_cache.shape, "float16"),
    }  # fmt: skip
    want = {
        "qOut": q if apart else np.concatenate([q, q_rope], -1),
        "kvCacheOut": want_kv.reshape(cache.shape),
        "qRopeOut": q_rope,
        "krCacheOut": want_kr.reshape(rope_cache.shape),
        "qDownOut": query,
    }
    return given, want


@pytest.mark.parametrize("mode", [0, 1, 3])
@pytest.mark.parametrize("apart", [False, True])
def test_before_latent_attention(mode: int, apart: bool) -> None:
    given, want = preprocess(mode, apart)
    names = ["qOut", "kvCacheOut", "qRopeOut", "krCacheOut"]
    for name, got in zip(names, call("aclnnMlaPreprocess", **given)):
        if apart or name in names[:2]:
            np.testing.assert_allclose(wide(got), wide(want[name].astype(H)), rtol=2e-3, atol=2e-2, err_msg=name)
    more = {**given, "qDownOutFlag": True, "qDownOut": Out((TOKENS, QUERY), "float16")}
    *_, down = call("aclnnMlaPreprocessV2", **more)
    np.testing.assert_allclose(wide(down), wide(want["qDownOut"].astype(H)), rtol=2e-3, atol=2e-2)
    for name, wrong in (("cacheMode", 4), ("qRotaryCoeff", 1), ("transposeWuq", False), ("qRopeDim", 2)):
        assert refused("aclnnMlaPreprocess", **{**given, name: wrong}) == 161002


def in_blocks(cache: np.ndarray) -> np.ndarray:
    """(pages, places, 1, columns) as runs of 32 bytes, the places of a page beside each other in each."""
    run = 32 // cache.itemsize
    pages, places, _, columns = cache.shape
    return cache.reshape(pages, places, columns // run, run).transpose(0, 2, 1, 3).copy()


@pytest.mark.parametrize("mode", [0, 1, 3])
@pytest.mark.parametrize("form", ["ND", "FRACTAL_NZ"])
def test_latent_keys_in_blocks(mode: int, form: str) -> None:
    """Whole pages of 32 places, as the matrix unit has them: in halves (cacheMode 3), in bytes (2)."""
    given, want = preprocess(mode, True)
    given["slotMapping"] = np.array([4, -1, 37], np.int32)
    slots, names = given["slotMapping"], ["qOut", "kvCacheOut", "qRopeOut", "krCacheOut"]
    caches = {n: make(2, 32, 1, c) for n, c in (("kvCache", LATENT), ("kvCacheRope", ROPE))}
    rows = {"kvCache": want["kvCacheOut"].reshape(6, LATENT), "kvCacheRope": want["krCacheOut"].reshape(6, ROPE)}
    for by, by_head, number in ((None, None, 3), (H(0.03125), RNG.uniform(0.5, 1, HEADS).astype(H) / H(64), 2)):
        now, wanted = dict(caches), dict(want)
        if by is not None:
            now["kvCache"] = small(2, 32, 1, LATENT)
            wanted["qOut"] = np.clip(np.rint(want["qOut"] / wide(by_head)[:, None]), -128, 127)
        for name, out in (("kvCache", "kvCacheOut"), ("kvCacheRope", "krCacheOut")):
            written = wide(now[name].reshape(64, -1)).copy()
            for slot in slots[slots >= 0]:
                row = rows[name][1 if slot == 37 else slot]
                written[slot] = np.clip(np.rint(row / float(by)), -128, 127) if by and name == "kvCache" else row
            kept = written.reshape(now[name].shape).astype(now[name].dtype)
            wanted[out], now[name] = in_blocks(kept), in_blocks(now[name])
        kind = "int8" if by else "float16"
        blocks = {n: In(a, form, a.shape) for n, a in now.items()}
        call_with = {
            **given,
            **blocks,
            "cacheMode": number,
            "qOut": Out((TOKENS, HEADS, LATENT), kind),
            "kvCacheOut": Out(now["kvCache"].shape, kind),
            "krCacheOut": Out(now["kvCacheRope"].shape, "float16"),
        }
        if by is not None:
            call_with |= {"ctkvScale": np.array([by]), "qNopeScale": by_head}
        for name, got in zip(names, call("aclnnMlaPreprocess", **call_with)):
            exact = got.dtype == I8
            near = {"atol": 1} if exact else {"rtol": 2e-3, "atol": 2e-2}
            np.testing.assert_allclose(
                wide(got), wide(np.asarray(wanted[name]).astype(got.dtype)), **near, err_msg=name
            )
        for wrong in ({"cacheMode": 5 - number}, {"kvCacheOut": Out((2, 1, 32, 64), kind)}, {"qNopeScale": make(3)}):
            if by is not None or "qNopeScale" not in wrong:
                assert refused("aclnnMlaPreprocess", **{**call_with, **wrong}) == 161002, wrong


@pytest.mark.parametrize("mode", [0, 3])
def test_weights_before_latent_attention_in_blocks(mode: int) -> None:
    """The weights as matrices whose storage holds blocks."""
    given, want = preprocess(mode, True)
    for name in ("wdqkv", "wuq"):
        rows, columns = given[name].shape
        width = 32 // given[name].itemsize
        padded = np.pad(given[name], ((0, -rows % 16), (0, -columns % width)))
        blocks = padded.reshape(padded.shape[0] // 16, 16, -1, width).transpose(2, 0, 1, 3).copy()
        given[name] = In(blocks, "FRACTAL_NZ", (rows, columns))
    got = call("aclnnMlaPreprocess", **given)[0]
    np.testing.assert_allclose(wide(got), wide(want["qOut"].astype(H)), rtol=2e-3, atol=2e-2)


def test_latent_keys_in_the_cache_that_is_given() -> None:
    given, want = preprocess(3, True)
    given |= {"kvCacheOut": Reuse("kvCache"), "krCacheOut": Reuse("kvCacheRope")}
    got = call("aclnnMlaPreprocess", **given)
    np.testing.assert_allclose(wide(got[1]), wide(want["kvCacheOut"].astype(H)), rtol=2e-3, atol=2e-2)
