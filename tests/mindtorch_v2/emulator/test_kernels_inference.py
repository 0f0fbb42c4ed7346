"""Inference: small numbers, tensors of single samples, padding, prefixes, chosen blocks, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._kernels import Out, assert_same, call, refused
from .test_kernels_microscaled import E4M3
from .test_kernels_quantized_norm import B as INT8
from .test_kernels_quantized_norm import F, H, make, wide
from .test_kernels_weights import in_words

RNG = np.random.default_rng(61)
B, N, M, S, T, D = 2, 4, 2, 3, 6, 16  # samples, heads, heads of keys, queries, keys, size of a head
FAR = 2147483647
Q = make(B, N, S, D)
K8, V8 = (RNG.integers(-20, 20, (B, M, T, D)).astype(INT8) for _ in range(2))


def attend(q: Any, k: Any, v: Any, hide: Any = False, shift: Any = 0.0, scale: float = 0.25) -> np.ndarray:
    """(B, N, S, D) with the heads of keys repeated, in double."""
    q, k, v = (np.asarray(x, float) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = np.where(hide, -np.inf, q @ k.swapaxes(-1, -2) * scale + shift)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True) @ v)


COMMON: dict[str, Any] = {"numHeads": N, "numKeyValueHeads": M, "scaleValue": 0.25, "inputLayout": "BNSD"}
WINDOW: dict[str, Any] = {"preTokens": FAR, "nextTokens": FAR, "sparseMode": 0, "innerPrecise": 1}
PROMPT = {**COMMON, **WINDOW}
STEP = {**COMMON, "blockSize": 0, "innerPrecise": 1}
FUSED = {
    **PROMPT,
    "blockSize": 0,
    "antiquantMode": 0,
    "softmaxLseFlag": False,
    "keyAntiquantMode": 0,
    "valueAntiquantMode": 0,
}
FIFTH = {**FUSED, "queryQuantMode": 0, "pseType": 0}
OUT = Out((B, N, S, D), "float16")


def first(got: Any) -> np.ndarray:
    """The result alone, where logarithms of sums could be asked for too."""
    return np.asarray(got if isinstance(got, np.ndarray) else got[0])


def factors(*shape: int, dtype: Any = H) -> np.ndarray:
    return RNG.uniform(0.02, 0.1, shape).astype(dtype)


# -- keys and values of smaller numbers --------------------------------------------------------------------------------
SHAPES: dict[int, Any] = {0: (M, 1, D), 1: (B, T), 2: (M,), 3: (B, M, T)}
SPREAD: dict[int, Any] = {0: (1, M, 1, D), 1: (B, 1, T, 1), 2: (1, M, 1, 1), 3: (B, M, T, 1)}


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("mode", SHAPES)
def test_small_keys(mode: int, offset: bool) -> None:
    kinds = [F if mode == 3 else H] * 2
    ks, vs = (factors(*SHAPES[mode], dtype=kind) for kind in kinds)
    ko, vo = (RNG.integers(-3, 4, SHAPES[mode]).astype(kinds[0]) * offset for _ in range(2))
    k, v = (
        (x + wide(o).reshape(SPREAD[mode])) * wide(s).reshape(SPREAD[mode]) for x, s, o in ((K8, ks, ko), (V8, vs, vo))
    )
    given = {
        "query": Q, "key": [K8], "value": [V8], **FUSED, "keyAntiquantMode": mode, "valueAntiquantMode": mode,
        "keyAntiquantScaleOptional": ks, "valueAntiquantScaleOptional": vs, "attentionOut": OUT,
    }  # fmt: skip
    if offset:
        given |= {"keyAntiquantOffsetOptional": ko, "valueAntiquantOffsetOptional": vo}
    for version, more in ((2, {}), (3, {}), (4, {"queryQuantMode": 0}), (5, {"queryQuantMode": 0, "pseType": 0})):
        got = call(f"aclnnFusedInferAttentionScoreV{version}", **given, **more)
        assert_same(first(got), attend(Q, k, v).astype(H), 2)
    name = "aclnnFusedInferAttentionScoreV2"
    for wrong in (
        {"keyAntiquantScaleOptional": None}, {"keyAntiquantMode": 6},
        {"valueAntiquantScaleOptional": vs.reshape(-1)[:-1]},
        {"value": [V8.astype(H)]}, {"deqScale1Optional": np.ones(1, F)}, {"quantScale2Optional": np.ones(1, F)},
    ):  # fmt: skip
        assert refused(name, **{**given, **wrong}) == 161002, wrong


@pytest.mark.parametrize(
    "name", ["aclnnIncreFlashAttentionV3", "aclnnIncreFlashAttentionV4", "aclnnFusedInferAttentionScore"]
)
def test_small_keys_whose_scales_are_in_one_tensor(name: str) -> None:
    both, offsets = factors(2, M, 1, D), RNG.integers(-3, 4, (2, M, 1, D)).astype(H)
    k, v = ((x + wide(o)) * wide(s) for x, s, o in zip((K8, V8), both, offsets))
    options = {**FUSED, **COMMON} if "Fused" in name else STEP
    options = {key: value for key, value in options.items() if key not in ("keyAntiquantMode", "valueAntiquantMode")}
    given = {
        "query": Q[:, :, :1].copy(),
        "key": [K8],
        "value": [V8],
        "antiquantScale": both,
        "antiquantOffset": offsets,
    }
    got = call(name, **given, **options, attentionOut=Out((B, N, 1, D), "float16"))
    assert_same(first(got), attend(Q[:, :, :1], k, v).astype(H), 2)


@pytest.mark.parametrize("words", [False, True])
def test_keys_of_four_bits(words: bool) -> None:
    k, v = (RNG.integers(-8, 8, (B, M, T, D)).astype(ml_dtypes.int4) for _ in range(2))
    ks, vs = factors(M * D), factors(M * D)
    opened = [x.astype(float) * wide(s).reshape(1, M, 1, D) for x, s in ((k, ks), (v, vs))]
    given = {"key": [in_words(k) if words else k], "value": [in_words(v) if words else v]}
    got = call("aclnnFusedInferAttentionScoreV2", query=Q, **given, **FUSED, keyAntiquantScaleOptional=ks,
               valueAntiquantScaleOptional=vs, attentionOut=OUT)  # fmt: skip
    assert_same(first(got), attend(Q, *opened).astype(H), 2)


@pytest.mark.parametrize("mode", [4, 5])
def test_small_keys_in_pages(mode: int) -> None:
    pages, lengths = np.array([[3, 0], [1, 2]], np.int32), [5, 6]
    pools = [RNG.integers(-20, 20, (4, M, 3, D)).astype(INT8) for _ in range(2)]
    scales = [factors(*((4, 3) if mode == 4 else (4, M, 3)), dtype=F) for _ in range(2)]
    rows = []
    for pool, scale in zip(pools, scales):
        opened = pool * (wide(scale)[:, None, :, None] if mode == 4 else wide(scale)[..., None])
        rows.append(np.stack([np.concatenate(list(opened[p]), 1) for p in pages]))
    hide = (np.arange(T) >= np.array(lengths)[:, None])[:, None, None]
    got = call(
        "aclnnFusedInferAttentionScoreV3", query=Q, key=[pools[0]], value=[pools[1]],
        **{**FUSED, "blockSize": 3, "keyAntiquantMode": mode, "valueAntiquantMode": mode},
        actualSeqLengthsKvOptional=lengths, blockTableOptional=pages, keyAntiquantScaleOptional=scales[0],
        valueAntiquantScaleOptional=scales[1], attentionOut=OUT,
    )  # fmt: skip
    assert_same(first(got), attend(Q, *rows, hide=hide).astype(H), 2)


# -- queries and results of small numbers ------------------------------------------------------------------------------
Q8 = RNG.integers(-20, 20, (B, N, S, D)).astype(INT8)
ONE = {"deqScale1": 0.01, "quantScale1": 127.0, "deqScale2": 0.002}


def in_steps(scale: float = 0.25) -> np.ndarray:
    k, v = (np.repeat(x.astype(float), N // M, 1) for x in (K8, V8))
    scores = Q8.astype(float) @ k.swapaxes(-1, -2) * np.float64(F(0.01)) * scale
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(np.rint(e * 127) @ v * np.float64(F(0.002)) / e.sum(-1, keepdims=True))


def words_of(value: float) -> np.ndarray:
    """A factor as the matrix unit takes it: a FLOAT in the lower half."""
    return np.array([value], F).view(np.uint32).astype(np.uint64)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "name", ["aclnnPromptFlashAttentionV2", "aclnnPromptFlashAttentionV3", "aclnnFusedInferAttentionScore"]
)
def test_small_queries(name: str, packed: bool) -> None:
    fused = "Fused" in name
    options = {
        k: v for k, v in (FUSED if fused else PROMPT).items() if k not in ("keyAntiquantMode", "valueAntiquantMode")
    }
    if name.endswith("V2"):
        options.pop("innerPrecise")
    scales = {k: words_of(v) if packed and k[0] == "d" else np.array([v], F) for k, v in ONE.items()}
    given = {"query": Q8, "key": [K8] if fused else K8, "value": [V8] if fused else V8, **options, **scales}
    want = in_steps()

    def result(**more: Any) -> np.ndarray:
        got = call(name, **given, **more)
        return first(got)

    assert_same(result(attentionOut=OUT), want.astype(H), 2)
    eight = Out((B, N, S, D), "int8")
    got = result(attentionOut=eight, quantScale2=np.array([50], F), quantOffset2=np.array([3], F))
    assert_same(got, np.clip(np.rint(want * 50 + 3), -128, 127).astype(INT8))
    if fused:
        columns = RNG.uniform(10, 90, (1, N, 1, D)).astype(F)
        got = result(attentionOut=eight, quantScale2=columns)
        assert_same(got, np.clip(np.rint(want * wide(columns)), -128, 127).astype(INT8))
    assert refused(name, **{**given, "deqScale2": None}, attentionOut=OUT) == 161002
    assert refused(name, **given, attentionOut=eight) == 161002
    assert refused(name, **{**given, "deqScale1": np.ones(2, F)}, attentionOut=OUT) == 161002


@pytest.mark.parametrize("layout", ["BNSD", "BSH"])
def test_queries_with_a_scale_each(layout: str) -> None:
    scale, ks, vs = factors(B, N, S, dtype=F), factors(1), factors(1)
    q = Q8 * wide(scale)[..., None]
    want = attend(q, K8 * wide(ks), V8 * wide(vs))

    def laid(x: np.ndarray) -> np.ndarray:
        return x if layout == "BNSD" else np.ascontiguousarray(x.swapaxes(1, 2)).reshape(B, x.shape[2], -1)

    factor = scale if layout == "BNSD" else scale.swapaxes(1, 2).copy()
    given = {
        "query": laid(Q8), "key": [laid(K8)], "value": [laid(V8)], **FIFTH, "queryQuantMode": 3, "inputLayout": layout,
        "dequantScaleQueryOptional": factor, "keyAntiquantScaleOptional": ks, "valueAntiquantScaleOptional": vs,
        "attentionOut": Out(laid(want).shape, "float16"),
    }  # fmt: skip
    got = call("aclnnFusedInferAttentionScoreV5", **given)
    assert_same(first(got), laid(want).astype(H), 2)
    wrong = {**given, "dequantScaleQueryOptional": factor.reshape(-1)[:-1]}
    assert refused("aclnnFusedInferAttentionScoreV5", **wrong) == 161002


def test_queries_of_small_floats() -> None:
    q, k, v = (RNG.uniform(-2, 2, x).astype(F).astype(E4M3) for x in (Q.shape, K8.shape, V8.shape))
    scale, ks, vs = factors(B, N, S, dtype=F), factors(1, dtype=F), factors(1, dtype=F)
    want = attend(wide(q) * wide(scale)[..., None], wide(k) * wide(ks), wide(v) * wide(vs))
    got = call("aclnnFusedInferAttentionScoreV5", query=q, key=[k], value=[v], **FIFTH, dequantScaleQueryOptional=scale,
               keyAntiquantScaleOptional=ks, valueAntiquantScaleOptional=vs, attentionOut=OUT)  # fmt: skip
    assert_same(first(got), want.astype(H), 2)


# -- where keys are ----------------------------------------------------------------------------------------------------
def test_keys_of_single_samples() -> None:
    ks, vs = ([make(1, M, n, D) for n in (4, 6)] for _ in range(2))
    want = np.concatenate([attend(Q[b : b + 1, :, :1], ks[b], vs[b]) for b in range(B)]).astype(H)
    given = {"query": Q[:, :, :1].copy(), "key": ks, "value": vs, "attentionOut": Out((B, N, 1, D), "float16")}
    for name, options in (("aclnnIncreFlashAttentionV4", STEP), ("aclnnFusedInferAttentionScoreV2", FUSED)):
        got = call(name, **given, **options)
        assert_same(first(got), want, 2)
        assert refused(name, **{**given, "value": vs[:1]}, **options) == 161002
        assert refused(name, **{**given, "key": [*ks, ks[0]], "value": [*vs, vs[0]]}, **options) == 161002


def test_padding_on_the_left() -> None:
    k, v = make(B, M, T, D), make(B, M, T, D)
    lengths, queries = [3, 4], [2, 3]
    want = np.zeros((B, N, S + 1, D))
    longer = make(B, N, S + 1, D)
    for b in range(B):
        at, to = slice(T - 1 - lengths[b], T - 1), slice(S + 1 - queries[b], S + 1)
        want[b, :, to] = attend(longer[b : b + 1, :, to], k[b : b + 1, :, at], v[b : b + 1, :, at])[0]
    given = {
        "query": longer, "key": [k], "value": [v], **FUSED, "actualSeqLengthsOptional": queries,
        "actualSeqLengthsKvOptional": lengths, "queryPaddingSizeOptional": np.array([0]),
        "kvPaddingSizeOptional": np.array([1]), "attentionOut": Out((B, N, S + 1, D), "float16"),
    }  # fmt: skip
    got = call("aclnnFusedInferAttentionScoreV2", **given)
    assert_same(first(got), want.astype(H), 2)
    assert refused("aclnnFusedInferAttentionScoreV2", **{**given, "kvPaddingSizeOptional": np.array([3])}) == 507015
    assert refused("aclnnFusedInferAttentionScoreV2", **{**given, "kvPaddingSizeOptional": np.array([1, 1])}) == 161002


def test_keys_that_all_samples_have_in_front() -> None:
    k, v, first_k, first_v = make(B, M, T, D), make(B, M, T, D), make(1, M, 4, D), make(1, M, 4, D)
    given = {
        "query": Q, "key": [k], "value": [v], **FUSED, "keySharedPrefixOptional": first_k,
        "valueSharedPrefixOptional": first_v, "attentionOut": OUT,
    }  # fmt: skip
    for used, more in ((4, {}), (3, {"actualSharedPrefixLenOptional": [3]})):
        joined = [np.concatenate([np.repeat(f[:, :, :used], B, 0), x], 2) for f, x in ((first_k, k), (first_v, v))]
        got = call("aclnnFusedInferAttentionScoreV2", **given, **more)
        assert_same(first(got), attend(Q, *joined).astype(H), 2)
    for wrong in ({"valueSharedPrefixOptional": None}, {"actualSharedPrefixLenOptional": [5]}):
        assert refused("aclnnFusedInferAttentionScoreV2", **{**given, **wrong}) == 161002, wrong


# -- what a query sees -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(B, T), (B, 1, T), (B, 1, 1, T), (1, 1, 1, T), (B, 1, 1, T + 2)])
def test_masks_of_one_query(shape: tuple[int, ...]) -> None:
    k, v = make(B, M, T, D), make(B, M, T, D)
    mask = RNG.random(shape) < 0.4
    mask[..., 0] = False
    given = {"query": Q[:, :, :1].copy(), "key": [k], "value": [v], "attentionOut": Out((B, N, 1, D), "float16")}
    hide = np.broadcast_to(mask.reshape(shape[0], 1, 1, -1)[..., :T], (B, 1, 1, T))
    want = attend(Q[:, :, :1], k, v, hide).astype(H)
    assert_same(call("aclnnIncreFlashAttention", **given, **COMMON, attenMask=mask), want, 2)
    got = call("aclnnFusedInferAttentionScoreV3", **given, **FUSED, attenMaskOptional=mask)
    assert_same(first(got), want, 2)
    assert refused("aclnnIncreFlashAttention", **given, **COMMON, attenMask=mask[..., :-3]) == 161002


@pytest.mark.parametrize("kind", [2, 3])
def test_shifts_by_distance(kind: int) -> None:
    k, v, slopes = make(B, M, T, D), make(B, M, T, D), make(N)
    apart = np.abs(5 - 2 + np.arange(S)[:, None] - np.arange(T))
    shift = -(np.sqrt(apart) if kind == 3 else apart) * wide(slopes)[:, None, None]
    given = {"query": Q, "key": [k], "value": [v], **FIFTH, "pseType": kind, "qStartIdxOptional": [5],
             "kvStartIdxOptional": [2], "attentionOut": OUT}  # fmt: skip
    got = call("aclnnFusedInferAttentionScoreV5", **given, pseShiftOptional=slopes.reshape(1, N, 1, 1))
    assert_same(first(got), attend(Q, k, v, shift=shift).astype(H), 2)
    assert refused("aclnnFusedInferAttentionScoreV5", **given) == 161002
    assert refused("aclnnFusedInferAttentionScoreV5", **{**given, "pseType": 1}) == 161002


def test_chosen_blocks() -> None:
    k, v = make(B, M, T, D), make(B, M, T, D)
    blocks = np.full((B, N, 2, 2), 65535, np.uint16)  # blocks of 2 queries and 2 keys
    hide = np.ones((B, N, S, T), bool)
    for b in range(B):
        for h in range(N):
            for i in range(2):
                picked = RNG.permutation(3)[: 1 + (b + h + i) % 2]
                blocks[b, h, i, : len(picked)] = picked
                for j in picked:
                    hide[b, h, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = False
    given = {"query": Q, "key": k, "value": v, **PROMPT, "softmaxLseFlag": False, "attentionOut": OUT}
    got = call("aclnnBlitzSparseAttention", **given, sabi=blocks, blockShape=[2, 2])
    assert_same(first(got), attend(Q, k, v, hide).astype(H), 2)
    got = call("aclnnBlitzSparseAttention", **given)
    assert_same(first(got), attend(Q, k, v).astype(H), 2)
    assert refused("aclnnBlitzSparseAttention", **given, sabi=blocks, blockShape=[1, 2]) == 161002
    assert refused("aclnnBlitzSparseAttention", **given, sabi=blocks, blockShape=[2, 0]) == 161002


def test_the_function_behind_the_others() -> None:
    k, v = make(B, M, T, D), make(B, M, T, D)
    options = {**FIFTH, "outType": 0}
    got = call("aclnnInnerFusedInferAttentionScore", query=Q, key=[k], value=[v], **options, attentionOut=OUT)
    assert_same(first(got), attend(Q, k, v).astype(H), 2)
