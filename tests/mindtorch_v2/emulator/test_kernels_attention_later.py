"""Later versions of attention against NumPy: packed sequences, pages, rotary parts, sinks; blocks, the delta rule."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._direct import Direct, checked
from ._kernels import Out, assert_same, call, refused
from .test_kernels_quantized_norm import F, H, numeric, wide

RNG = np.random.default_rng(14)
BF = ml_dtypes.bfloat16
ENDS_Q, ENDS_K = [2, 5], [3, 7]


def make(*shape: int, dtype: Any = H) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(dtype)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, scale: float, extra: Any = 0.0, hide: Any = None,
           sink: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Of (heads, queries, size): results, the largest score of each row, the sum of exponentials."""
    scores = (q @ k.swapaxes(-1, -2) + extra) * scale
    if hide is not None:
        scores = np.where(hide, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink[:, None, None])
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink[:, None, None] - top)
    return e / total @ v, top[..., 0], total[..., 0]


def heads_first(x: np.ndarray, repeat: int = 1) -> np.ndarray:
    return np.repeat(x.swapaxes(0, 1), repeat, 0)


def packed(q: Any, k: Any, v: Any, q2: Any = None, k2: Any = None, sink: Any = None, causal: bool = False) -> Any:
    """Attention of both sequences; key and value have half the heads."""
    outs, tops, sums = [], [], []
    starts_q, starts_k = [0, *ENDS_Q[:-1]], [0, *ENDS_K[:-1]]
    for a, b, c, d in zip(starts_q, ENDS_Q, starts_k, ENDS_K):
        extra = 0.0
        if q2 is not None:
            extra = heads_first(q2[a:b]) @ heads_first(k2[c:d], 2).swapaxes(-1, -2)
        n, m = b - a, d - c
        hide = np.arange(m) > np.arange(n)[:, None] + m - n if causal else None
        out, top, total = attend(heads_first(q[a:b]), heads_first(k[c:d], 2), heads_first(v[c:d], 2), scale=0.5,
                                 extra=extra, hide=hide, sink=sink)  # fmt: skip
        outs.append(out.swapaxes(0, 1))
        tops.append(top)
        sums.append(total)
    return np.concatenate(outs), np.concatenate(tops, 1), np.concatenate(sums, 1)


def copies(x: np.ndarray, tokens_first: bool) -> np.ndarray:
    return np.repeat((x.T if tokens_first else x)[..., None], 8, -1).astype(F)


Q, K, V = make(5, 4, 6, dtype=BF), make(7, 2, 6, dtype=BF), make(7, 2, 6, dtype=BF)
Q2, K2, SINK = make(5, 4, 4, dtype=BF), make(7, 2, 4, dtype=BF), make(4, dtype=F)
DY = make(5, 4, 6, dtype=BF)
PACKED: dict[str, Any] = {
    "query": Q, "value": V, "actualSeqQLenOptional": ENDS_Q, "actualSeqKvLenOptional": ENDS_K, "scaleValue": 0.5,
    "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536, "headNum": 4, "inputLayout": "TND", "innerPrecise": 0,
    "sparseMode": 0,
}  # fmt: skip


@pytest.mark.parametrize("version", ("V3", "V4", "V5"))
def test_packed(version: str) -> None:
    turned, sinks, first = version != "V4", version == "V5", version != "V3"
    extra: dict[str, Any] = {"key": K}
    arguments: list[Any] = [wide(a) for a in (Q, K, V)]
    if turned:
        extra |= {"queryRope": Q2, "keyRope": K2, "pseType": 1}
        arguments += [wide(Q2), wide(K2)]
    if sinks:
        extra["sinkOptional"] = SINK
    if first:
        extra["softmaxOutLayout"] = "same_as_input"
    out, top, total = packed(*arguments, sink=wide(SINK) if sinks else None)
    shape = (5, 4, 8) if first else (4, 5, 8)
    name = f"aclnnFlashAttentionVarLenScore{version}"
    outs = {"softmaxMaxOut": Out(shape), "softmaxSumOut": Out(shape), "softmaxOutOut": Out((1,), "bfloat16"),
            "attentionOutOut": Out((5, 4, 6), "bfloat16")}  # fmt: skip
    got = call(name, **PACKED, **extra, **{k: v for k, v in outs.items() if k != "softmaxOutOut"})
    assert_same(got[0], copies(top, first), 4)
    assert_same(got[1], copies(total, first), 4)
    assert_same(got[-1], out.astype(BF), 2)
    wrong = {**outs, "softmaxMaxOut": Out((5, 4, 7))}
    wrong.pop("softmaxOutOut")
    assert refused(name, **PACKED, **extra, **wrong) == 161002
    assert (
        refused(name, **{**PACKED, "inputLayout": "BSH"}, **extra, **{**wrong, "softmaxMaxOut": Out(shape)}) == 161002
    )
    mask = np.triu(np.ones((2048, 2048), bool), 1)
    causal = call(name, **{**PACKED, "sparseMode": 3}, **extra, attenMaskOptional=mask,
                  **{k: v for k, v in outs.items() if k != "softmaxOutOut"})  # fmt: skip
    want = packed(*arguments, sink=wide(SINK) if sinks else None, causal=True)
    assert_same(causal[-1], want[0].astype(BF), 2)


@pytest.mark.parametrize("version", ("V3", "V4", "V5"))
def test_packed_gradients(version: str) -> None:
    turned, sinks = version != "V4", version == "V5"
    parts: dict[str, np.ndarray] = {"query": wide(Q), "keyIn": wide(K), "value": wide(V)}
    if turned:
        parts |= {"queryRope": wide(Q2), "keyInRope": wide(K2)}
    if sinks:
        parts["sinkInOptional"] = wide(SINK)

    def forward(**p: np.ndarray) -> Any:
        return packed(
            p["query"], p["keyIn"], p["value"], p.get("queryRope"), p.get("keyInRope"), p.get("sinkInOptional")
        )

    out, top, total = forward(**parts)
    grads = {n: numeric(lambda v, n=n: forward(**{**parts, n: v})[0], parts[n], wide(DY)) for n in parts}
    extra: dict[str, Any] = {"keyIn": K, "dy": DY, "attentionInOptional": out.astype(BF)}
    if turned:
        extra |= {"queryRope": Q2, "keyInRope": K2, "pseType": 1}
    if sinks:
        extra["sinkInOptional"] = SINK
    if version != "V3":
        extra["softmaxInLayout"] = "same_as_input"
    for name, value in (("softmaxMaxOptional", top), ("softmaxSumOptional", total)):
        extra[name] = copies(value, version != "V3")
    names = {"query": "dqOut", "queryRope": "dqRopeOut", "keyIn": "dkOut", "keyInRope": "dkRopeOut", "value": "dvOut",
             "sinkInOptional": "dsinkOut"}  # fmt: skip
    outs = {names[n]: Out(g.shape, "float32" if n == "sinkInOptional" else "bfloat16") for n, g in grads.items()}
    got = call(f"aclnnFlashAttentionUnpaddingScoreGrad{version}", **PACKED, **extra, **outs)
    order = [n for n in ("query", "queryRope", "keyIn", "keyInRope", "value", "sinkInOptional") if n in grads]
    for n, g in zip(order, got):
        np.testing.assert_allclose(wide(g), grads[n], rtol=0.03, atol=0.02)


# -- inference -------------------------------------------------------------------------------------------------------
B, S, T, N, M, D = 2, 3, 8, 4, 2, 6
IQ, IK, IV = make(B, N, S, D), make(B, M, T, D), make(B, M, T, D)
IQ2, IK2, ISINK = make(B, N, S, 4), make(B, M, T, 4), make(N)
LENGTHS = [5, 8]


def inferred(turned: bool = False, sink: bool = False, hide: Any = None) -> tuple[np.ndarray, np.ndarray]:
    outs, logs = [], []
    for b in range(B):
        q, k, v = wide(IQ[b]), np.repeat(wide(IK[b]), 2, 0), np.repeat(wide(IV[b]), 2, 0)
        extra = wide(IQ2[b]) @ np.repeat(wide(IK2[b]), 2, 0).swapaxes(-1, -2) if turned else 0.0
        hidden = np.broadcast_to(np.arange(T) >= LENGTHS[b], (S, T))
        if hide is not None:
            hidden = hidden | hide
        out, top, total = attend(q, k, v, scale=0.4, extra=extra, hide=hidden, sink=wide(ISINK) if sink else None)
        outs.append(out)
        logs.append(top + np.log(total))
    return np.stack(outs).astype(H), np.stack(logs)[..., None].astype(F)


def lay(x: np.ndarray, layout: str) -> np.ndarray:
    if layout == "BNSD":
        return x
    x = np.ascontiguousarray(x.transpose(0, 2, 1, 3))
    return x.reshape(*x.shape[:2], -1) if layout == "BSH" else x


def base(layout: str) -> dict[str, Any]:
    return {
        "query": lay(IQ, layout), "key": [lay(IK, layout)], "value": [lay(IV, layout)], "numHeads": N,
        "scaleValue": 0.4,
        "actualSeqLengthsKvOptional": LENGTHS, "preTokens": 2147483647, "nextTokens": 2147483647, "inputLayout": layout,
        "numKeyValueHeads": M, "sparseMode": 0, "innerPrecise": 0, "blockSize": 0, "antiquantMode": 0,
        "softmaxLseFlag": True, "keyAntiquantMode": 0, "valueAntiquantMode": 0,
    }  # fmt: skip


def more(version: int) -> dict[str, Any]:
    return {**({"queryQuantMode": 0} if version >= 4 else {}), **({"pseType": 0} if version == 5 else {})}


@pytest.mark.parametrize("version", (2, 3, 4, 5))
@pytest.mark.parametrize("layout", ("BSH", "BSND", "BNSD"))
def test_inference(version: int, layout: str) -> None:
    name = f"aclnnFusedInferAttentionScoreV{version}"
    extra = more(version)
    turned, sink = version >= 3, version >= 4
    if turned:
        extra |= {"queryRopeOptional": lay(IQ2, layout), "keyRopeOptional": lay(IK2, layout)}
    if sink:
        extra["learnableSinkOptional"] = ISINK
    want, logs = inferred(turned, sink)
    outs = {"attentionOut": Out(lay(want, layout).shape, "float16"), "softmaxLse": Out(logs.shape)}
    got = call(name, **base(layout), **extra, **outs)
    assert_same(got[0], lay(want, layout), 2)
    assert_same(got[1], logs, 4)
    assert refused(name, **{**base(layout), "inputLayout": "other"}, **extra, **outs) == 161002
    assert refused(name, **{**base(layout), "numHeads": 3}, **extra, **outs) == 161002
    assert refused(name, **base(layout), **extra, **{**outs, "softmaxLse": Out((1, 1, 1, 1))}) == 161002
    assert refused(name, **base(layout), **extra, **outs, quantScale1Optional=np.ones(1, F)) == 161002


def test_pages_masks_and_shifts() -> None:
    want, logs = inferred()
    pages = np.array([[3, 0], [1, 2]], np.int32)
    pools: dict[str, list[np.ndarray]] = {}
    for name, x in (("key", IK), ("value", IV)):
        pool = np.zeros((4, 4, M * D), H)
        rows = lay(x, "BSH")
        for b in range(B):
            for i in range(2):
                pool[pages[b, i]] = rows[b, 4 * i : 4 * i + 4]
        pools[name] = [pool]
    outs = {"attentionOut": Out((B, S, N * D), "float16"), "softmaxLse": Out(logs.shape)}
    paged = {**base("BSH"), **pools, "blockTableOptional": pages, "blockSize": 4}
    got = call("aclnnFusedInferAttentionScoreV2", **paged, **outs)
    assert_same(got[0], lay(want, "BSH"), 2)
    wrong = pages.copy()
    wrong[0, 0] = 4
    assert refused("aclnnFusedInferAttentionScoreV2", **{**paged, "blockTableOptional": wrong}, **outs) == 507015
    mask = RNG.random((S, T)) < 0.3
    mask[:, 0] = False
    got = call("aclnnFusedInferAttentionScoreV3", **{**base("BSH"), "sparseMode": 1}, attenMaskOptional=mask, **outs)
    assert_same(got[0], lay(inferred(hide=mask)[0], "BSH"), 2)
    assert refused("aclnnFusedInferAttentionScoreV3", **{**base("BSH"), "sparseMode": 2}, **outs) == 161002


def test_inference_of_packed_sequences() -> None:
    parts = (IQ, IK[:, :, :5], IV[:, :, :5])
    q, k, v = (np.ascontiguousarray(np.concatenate(list(a.transpose(0, 2, 1, 3)))) for a in parts)
    values = {**base("BSND"), "query": q, "key": [k], "value": [v], "inputLayout": "TND",
              "actualSeqLengthsOptional": [3, 6], "actualSeqLengthsKvOptional": [5, 10]}  # fmt: skip
    got = call("aclnnFusedInferAttentionScoreV3", **values, attentionOut=Out((6, N, D), "float16"),
               softmaxLse=Out((6, N, 1)))  # fmt: skip
    want = [attend(wide(IQ[b]), np.repeat(wide(IK[b, :, :5]), 2, 0), np.repeat(wide(IV[b, :, :5]), 2, 0), scale=0.4)
            for b in range(B)]  # fmt: skip
    assert_same(got[0], np.concatenate([w[0].swapaxes(0, 1) for w in want]).astype(H), 2)
    assert_same(got[1][..., 0], np.concatenate([(w[1] + np.log(w[2])).T for w in want]).astype(F), 4)
    rows = np.concatenate([w[0].swapaxes(0, 1) for w in want]).astype(H)
    by_head = {"query": q.swapaxes(0, 1).copy(), "key": [k.swapaxes(0, 1).copy()], "value": [v.swapaxes(0, 1).copy()]}
    for layout, inputs, result in (("TND_NTD", {}, rows.swapaxes(0, 1)), ("NTD", by_head, rows.swapaxes(0, 1)),
                                   ("NTD_TND", by_head, rows)):  # fmt: skip
        turned = {**values, **inputs, "inputLayout": layout}
        got = call("aclnnFusedInferAttentionScoreV3", **turned, attentionOut=Out(result.shape, "float16"),
                   softmaxLse=Out((6, N, 1)))  # fmt: skip
        assert_same(got[0], np.ascontiguousarray(result), 2)
        assert refused("aclnnFusedInferAttentionScoreV3", **turned, attentionOut=Out((6, D, N), "float16")) == 161002


@pytest.mark.parametrize("layouts", ("BNSD_BSND", "BSH_BNSD", "BSND_BNSD", "BSH_NBSD", "BSND_NBSD", "BNSD_NBSD"))
def test_results_in_another_layout(layouts: str) -> None:
    """Scores that nobody asked for are not given: their place may be null."""
    inner, outer = layouts.split("_")
    want = inferred()[0]
    want = np.ascontiguousarray(want.swapaxes(0, 1)) if outer == "NBSD" else lay(want, outer)
    values = {**base(inner), "inputLayout": layouts, "softmaxLseFlag": False}
    for version in (3, 4):
        name = f"aclnnFusedInferAttentionScoreV{version}"
        got = call(name, **values, **more(version), attentionOut=Out(want.shape, "float16"))
        assert_same(got[0] if isinstance(got, (list, tuple)) else got, want, 2)


# -- training, fourth version ----------------------------------------------------------------------------------------
def test_fourth_version() -> None:
    q, k, v, dy = (make(1, 3, 8) for _ in range(4))
    options: dict[str, Any] = {
        "query": q, "value": v, "scaleValue": 0.5, "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536,
        "headNum": 2,
        "inputLayout": "BSH", "innerPrecise": 0, "sparseMode": 0, "outDtype": 0, "pseType": 1, "seed": 0, "offset": 0,
    }  # fmt: skip

    def forward(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
        heads = [x[0].reshape(3, 2, 4).swapaxes(0, 1) for x in (a, b, c)]
        out, top, total = attend(*heads, scale=0.5)
        return out.swapaxes(0, 1).reshape(1, 3, 8), top, total

    at = [wide(a) for a in (q, k, v)]
    out, top, total = forward(*at)
    stats = [np.repeat(s[None, ..., None], 8, -1).astype(F) for s in (top, total)]
    got = call("aclnnFlashAttentionScoreV4", **options, key=k, softmaxOutLayout="", softmaxMaxOut=Out((1, 2, 3, 8)),
               softmaxOutOut=Out((1,), "float16"),
               softmaxSumOut=Out((1, 2, 3, 8)), attentionOutOut=Out((1, 3, 8), "float16"))  # fmt: skip
    for g, w in zip((got[0], got[1], got[-1]), (*stats, out.astype(H))):
        assert_same(g, w, 4)
    given = {**options, "keyIn": k, "dy": dy, "softmaxMaxOptional": stats[0], "softmaxSumOptional": stats[1],
             "attentionInOptional": out.astype(H), "softmaxInLayout": ""}  # fmt: skip
    outs = {n: Out((1, 3, 8), "float16") for n in ("dqOut", "dkOut", "dvOut", "dqRopeOut", "dkRopeOut")}
    grads = call("aclnnFlashAttentionScoreGradV4", **given, **outs, dsinkOut=Out((2,)),
                 dpseOut=Out((1, 1, 1, 1), "float16"))  # fmt: skip
    for g, n in zip(grads, range(3)):
        want = numeric(lambda x, n=n: forward(*[x if i == n else a for i, a in enumerate(at)])[0], at[n], wide(dy))
        np.testing.assert_allclose(wide(g), want, rtol=0.01, atol=0.005)
    results = {"softmaxMaxOut": Out((1, 2, 3, 8)), "softmaxOutOut": Out((1,), "float16"),
               "softmaxSumOut": Out((1, 2, 3, 8)),
               "attentionOutOut": Out((1, 3, 8), "float16")}  # fmt: skip
    for more in ({"dScaleQOptional": np.ones(2, F)}, {"sinkOptional": np.ones(3, F)}):
        assert refused("aclnnFlashAttentionScoreV4", **options, key=k, softmaxOutLayout="", **more, **results) == 161002


# -- blocks, rings, triangles, the delta rule ------------------------------------------------------------------------
LINE, LINE_W = make(80, 2, 4), make(32, 2)
LINE_ENDS = [40, 80]
LINE_G = make(2, 2, 4)


def compress(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    starts = [s + i * 16 for s, n in ((0, 40), (40, 40)) for i in range((n - 32) // 16 + 1)]
    return np.stack([(x[s : s + 32] * w[:, :, None]).sum(0) for s in starts])


RING = [make(3, 2, 4, dtype=F) for _ in range(2)]
RING_TOP = [np.repeat(make(3, 2, 1, dtype=F), 8, -1) for _ in range(2)]
RING_SUM = [np.repeat(RNG.uniform(1, 3, (3, 2, 1)).astype(F), 8, -1) for _ in range(2)]
BOTH_TOP = np.maximum(*RING_TOP)
SHARES = [wide(s) * np.exp(wide(t) - wide(BOTH_TOP)) for s, t in zip(RING_SUM, RING_TOP)]
RING_OUT = sum(wide(x) * s[..., :1] for x, s in zip(RING, SHARES)) / sum(SHARES)[..., :1]

FQ, FK1, FV1 = make(1, 2, 3, 4, 5), make(1, 2, 3, 2, 5), make(1, 2, 3, 2, 5)
FK2, FV2, FDY = make(1, 2, 2, 4, 5), make(1, 2, 2, 4, 5), make(1, 2, 3, 4, 5)
FMASK = np.array([[1, 0], [0, 0], [0, 1]], bool).reshape(1, 1, 3, 1, 2)


def triangle(q: np.ndarray, k1: np.ndarray, v1: np.ndarray, k2: np.ndarray, v2: np.ndarray) -> Any:
    keys = k1[:, :, :, None] + k2.transpose(0, 1, 3, 2, 4)[:, :, None]  # (b, h, n, m, k, d)
    values = v1[:, :, :, None] + v2.transpose(0, 1, 3, 2, 4)[:, :, None]
    scores = np.einsum("bhnmd,bhnmkd->bhnmk", q, keys) * 0.5
    scores = np.where(FMASK, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    return np.einsum("bhnmk,bhnmkd->bhnmd", e / e.sum(-1, keepdims=True), values), top, e.sum(-1, keepdims=True)


TRI = {"query": FQ, "key1": FK1, "value1": FV1, "key2": FK2, "value2": FV2}
TRI_AT = [wide(a) for a in TRI.values()]
TRI_OUT, TRI_TOP, TRI_SUM = triangle(*TRI_AT)
TRI_GRADS = [
    numeric(
        lambda x, n=n: triangle(*[x if i == n else a for i, a in enumerate(TRI_AT)])[0], TRI_AT[n], wide(FDY)
    ).astype(H)
    for n in range(5)
]

RQ, RK, RV = make(5, 2, 3, dtype=BF), make(5, 2, 3, dtype=BF), make(5, 4, 2, dtype=BF)
RBETA, RG = RNG.uniform(0, 1, (5, 4)).astype(BF), -RNG.uniform(0, 1, (5, 4)).astype(F)
RGK = -RNG.uniform(0, 0.5, (5, 4, 3)).astype(F)
STATES = make(6, 4, 2, 3, dtype=BF)
SLOTS = np.array([1, 2, 0, 4, 5], np.int32)


def delta(state: np.ndarray, t: int, h: int, gk: bool) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = wide(RQ[t, h // 2]), wide(RK[t, h // 2]), wide(RV[t, h])
    state = state * np.exp(float(RG[t, h])) * (np.exp(wide(RGK[t, h])) if gk else 1)
    state = state + float(RBETA[t, h]) * np.outer(v - state @ k, k)
    return state, state @ q * float(F(0.7))


def recurrent() -> tuple[np.ndarray, np.ndarray]:
    states, out = wide(STATES).copy(), np.zeros((5, 4, 2))
    for h in range(4):
        for first, n, accepted in ((0, 2, 2), (2, 3, 1)):
            state = wide(STATES)[SLOTS[first + accepted - 1], h]
            for t in range(first, first + n):
                state, out[t, h] = delta(state, t, h, True)
                states[SLOTS[t], h] = state
    return states, out


def chunks() -> tuple[np.ndarray, np.ndarray]:
    states, out = wide(STATES[:2]).copy(), np.zeros((5, 4, 2))
    for h in range(4):
        for b, first, n in ((0, 0, 2), (1, 2, 3)):
            for t in range(first, first + n):
                states[b, h], out[t, h] = delta(states[b, h], t, h, False)
    return states, out


RULE: dict[str, Any] = {"query": RQ, "key": RK, "value": RV, "beta": RBETA, "scaleValue": 0.7,
                        "actualSeqLengths": np.array([2, 3], np.int32)}  # fmt: skip
BLOCK = {"compressBlockSize": 32, "compressStride": 16, "actSeqLenType": 0}
CASES = [
    Direct("aclnnNsaCompress", {"input": LINE, "weight": LINE_W, "actSeqLenOptional": LINE_ENDS,
           "layoutOptional": "TND",
                                **BLOCK}, {"output": compress(wide(LINE), wide(LINE_W)).astype(H)}),
    Direct("aclnnNsaCompressGrad",
           {"outputGrad": LINE_G, "input": LINE, "weight": LINE_W, "actSeqLenOptionalOptional": LINE_ENDS,
            "layoutOptionalOptional": "TND", **BLOCK},
           {"inputGradOut": numeric(lambda x: compress(x, wide(LINE_W)), wide(LINE), wide(LINE_G)).astype(H),
            "weightGradOut": numeric(lambda w: compress(wide(LINE), w), wide(LINE_W), wide(LINE_G)).astype(H)}),
    *(Direct(name,
             {"prevAttnOut": RING[0], "prevSoftmaxMax": RING_TOP[0], "prevSoftmaxSum": RING_SUM[0],
              "curAttnOut": RING[1], "curSoftmaxMax": RING_TOP[1], "curSoftmaxSum": RING_SUM[1],
              "inputLayoutOptional": "TND", **inner},
             {"attnOutOut": RING_OUT.astype(F), "softmaxMaxOut": BOTH_TOP, "softmaxSumOut": sum(SHARES).astype(F)})
      for name, inner in (("aclnnRingAttentionUpdate", {}), ("aclnnRingAttentionUpdateV2", {}),
                          ("aclnnRingAttentionUpdateV2", {"inputSoftmaxLayoutOptional": "TND"}))),
    Direct("aclnnFusedFloydAttention", {**TRI, "attenMaskOptional": FMASK, "scaleValueOptional": 0.5},
           {"softmaxMaxOut": np.repeat(TRI_TOP, 8, -1).astype(F), "softmaxSumOut": np.repeat(TRI_SUM, 8, -1).astype(F),
            "attentionOutOut": TRI_OUT.astype(H)}),
    Direct("aclnnFusedFloydAttentionGrad",
           {**TRI, "dy": FDY, "attenMaskOptional": FMASK, "softmaxMax": np.repeat(TRI_TOP, 8, -1).astype(F),
            "softmaxSum": np.repeat(TRI_SUM, 8, -1).astype(F), "attentionIn": TRI_OUT.astype(H), "scaleValue": 0.5},
           dict(zip(("dqOut", "dk1Out", "dv1Out", "dk2Out", "dv2Out"), TRI_GRADS))),
    Direct("aclnnRecurrentGatedDeltaRule",
           {**RULE, "stateRef": STATES, "ssmStateIndices": SLOTS, "g": RG, "gk": RGK,
            "numAcceptedTokens": np.array([2, 1], np.int32)},
           {"stateRef": recurrent()[0].astype(BF), "out": recurrent()[1].astype(BF)}),
    Direct("aclnnChunkGatedDeltaRule", {**RULE, "initialState": STATES[:2], "gOptional": RG},
           {"out": chunks()[1].astype(BF), "finalState": chunks()[0].astype(BF)}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)
