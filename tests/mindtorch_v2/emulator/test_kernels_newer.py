"""Functions of newer documents: losses by name, segments, sampling, later versions of attention and rotary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, checked
from ._kernels import Out, assert_same, call, refused

RNG = np.random.default_rng(13)
F = np.float32


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def one(x: Any) -> np.ndarray:
    return np.asarray(x, F)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(wide(x) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


X, Y, V = floats(3, 4), floats(3, 4), (RNG.uniform(0.5, 2, (3, 4))).astype(F)
SIGNS = np.where(floats(3, 4) > 0, 1, -1).astype(F)
APART = wide(X) - Y
NLL = 0.5 * (np.log(wide(V)) + APART**2 / V)
LABELS = softmax(floats(3, 4)).astype(F)
A, B, M = floats(3), floats(4), floats(3, 4)
LINE = (0.3 * floats(2, 3, 5)).astype(F)
STEPS = np.zeros((2, 3, 5, 5))
for i in range(5):
    for j in range(i + 1):
        STEPS[..., i, j] = np.exp(wide(LINE)[..., j + 1 : i + 1].sum(-1))
FLOW = floats(2, 3, 5, 5)
BACK = np.zeros((2, 3, 5))
for k in range(1, 5):
    BACK[..., k] = (wide(FLOW) * STEPS)[..., k:, :k].sum((-1, -2))
BATCH, SCALE, SHIFT = floats(2, 3, 4), floats(2, 4), floats(2, 4)
CENTRED = (wide(BATCH) - wide(BATCH).mean(-1, keepdims=True)) / np.sqrt(wide(BATCH).var(-1, keepdims=True) + 1e-5)
ADA = CENTRED * (1 + SCALE[:, None]) + SHIFT[:, None]
QKV, QKV_BIAS = floats(2, 3, 12), floats(12)
PARTS = (wide(QKV) + QKV_BIAS).reshape(2, 3, 3, 2, 2).transpose(2, 0, 3, 1, 4)
PAIRS = np.array([np.linalg.norm(wide(X)[i] - X[j]) for i in range(3) for j in range(i + 1, 3)])
BITS = np.packbits((X.ravel() >= 0), bitorder="little")


def reduced(loss: np.ndarray, how: str) -> np.ndarray:
    return one(loss if how == "none" else loss.mean() if how == "mean" else loss.sum())


CASES = [
    *(Direct("aclnnGaussianNllLoss", {"input": X, "target": Y, "var": V, "full": full, "eps": 1e-6,
                                      "reductionOptional": how},
             {"out": reduced(NLL + (0.5 * np.log(2 * np.pi) if full else 0), how)})
      for full in (False, True) for how in ("none", "mean", "sum")),
    Direct("aclnnGaussianNllLossGrad", {"gradOutput": one(2), "input": X, "target": Y, "var": V, "full": False,
                                        "eps": 1e-6, "reduction": "mean"},
           {"gradInput": one(2 * APART / V / 12), "gradVar": one(2 * 0.5 * (1 / V - APART**2 / V**2) / 12)}),
    *(Direct("aclnnHingeEmbeddingLoss", {"input": X, "target": SIGNS, "margin": 1.0, "reduction": how},
             {"loss": reduced(np.where(SIGNS == 1, X, np.maximum(0, 1 - X)), how)}) for how in ("none", "mean", "sum")),
    Direct("aclnnHingeLoss", {"predict": X, "target": SIGNS}, {"loss": one(np.maximum(0, 1 - wide(X) * SIGNS).mean())}),
    Direct("aclnnHuberLoss", {"predictions": X, "targets": Y, "delta": 0.75},
           {"loss": one(np.where(np.abs(APART) <= 0.75, APART**2 / 2, 0.75 * (np.abs(APART) - 0.375)).mean())}),
    *(Direct("aclnnLpLoss", {"predict": X, "label": Y, "p": 1, "reduction": how},
             {"out": reduced(np.abs(APART), how)}) for how in ("none", "mean", "sum")),
    Direct("aclnnMseLossGrad", {"gradOutput": M, "self": X, "target": Y, "reduction": "mean"},
           {"out": one(2 * APART * M / 12)}),
    Direct("aclnnSoftmaxCrossEntropyWithLogits", {"features": X, "labels": LABELS},
           {"loss": one(-(LABELS * np.log(softmax(X))).sum(1)), "backprop": one(softmax(X) - LABELS)}),
    Direct("aclnnSoftmaxGrad", {"y": LABELS, "dy": Y},
           {"dx": one(LABELS * (wide(Y) - (wide(Y) * LABELS).sum(1, keepdims=True)))}),
    Direct("aclnnAddrV2", {"self": M, "vec1": A, "vec2": B, "betaOptional": 2.0, "alphaOptional": 3.0},
           {"out": one(2 * wide(M) + 3 * np.outer(A, B))}),
    Direct("aclnnAddrV2", {"self": M, "vec1": A, "vec2": B}, {"out": one(wide(M) + np.outer(A, B))}),
    Direct("aclnnInplaceAddrV2", {"selfRef": M, "vec1": A, "vec2": B}, {"selfRef": one(wide(M) + np.outer(A, B))}),
    Direct("aclnnSignBitsPack", {"self": X.ravel(), "size": 1}, {"out": BITS[None]}),
    Direct("aclnnSignBitsUnpack", {"self": BITS, "size": 2, "dtype": "float32"},
           {"out": one(np.unpackbits(BITS, bitorder="little").astype(int) * 2 - 1).reshape(2, -1)}),
    Direct("aclnnExpSegsum", {"self": LINE}, {"out": one(STEPS)}),
    Direct("aclnnExpSegsumBackward", {"gradOutput": FLOW, "gradSelf": one(STEPS)}, {"gradInput": one(BACK)}),
    Direct("aclnnModulate", {"self": BATCH, "scaleOptional": SCALE, "shiftOptional": SHIFT},
           {"out": one(wide(BATCH) * (1 + SCALE[:, None]) + SHIFT[:, None])}),
    Direct("aclnnAdaLayerNorm", {"x": BATCH, "scale": SCALE, "shift": SHIFT, "epsilon": 1e-5}, {"out": one(ADA)}),
    Direct("aclnnAdaLayerNormV2", {"x": BATCH, "scale": SCALE, "shift": SHIFT, "epsilon": 1e-5},
           {"out": one(ADA), "meanOutOptional": one(wide(BATCH).mean(-1, keepdims=True)),
            "rstdOutOptional": one(1 / np.sqrt(wide(BATCH).var(-1, keepdims=True) + 1e-5))}),
    Direct("aclnnTransformBiasRescaleQkv", {"qkv": QKV, "qkvBias": QKV_BIAS, "numHeads": 2},
           {"qOut": one(PARTS[0] / np.sqrt(2)), "kOut": one(PARTS[1]), "vOut": one(PARTS[2])}),
    Direct("aclnnPdistForward", {"self": X, "pScalar": 2.0}, {"out": one(PAIRS)}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


@pytest.mark.parametrize("name", ["aclnnGaussianNllLoss", "aclnnHingeEmbeddingLoss", "aclnnLpLoss"])
def test_reductions_are_known(name: str) -> None:
    case = next(c for c in CASES if c.name == name)
    (out,) = case.want
    key = next(k for k in case.given if k.startswith("reduction"))
    assert refused(name, **{**case.given, key: "most"}, **{out: Out(())}) == 161002


def test_top_k_and_top_p() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4]], F))
    low = -np.inf
    given: dict[str, Any] = {"logits": logits, "p": np.ones(2, F), "k": np.array([4, 4], np.int32), "out": Out((2, 4))}
    got = call("aclnnApplyTopKTopP", **{**given, "k": np.array([2, 4], np.int32)})
    assert_same(got, np.array([[*logits[0, :2], low, low], logits[1]], F))
    got = call("aclnnApplyTopKTopP", **{**given, "p": np.array([0.75, 0.65], F)})
    assert_same(got, np.array([[*logits[0, :2], low, low], [low, low, *logits[1, 2:]]], F))
    assert refused("aclnnApplyTopKTopP", **{**given, "k": np.array([2], np.int32)}) == 161002
    assert refused("aclnnApplyTopKTopP", **{**given, "p": None}) == 161001


# -- attention -------------------------------------------------------------------------------------------------------
Q, K, W = (floats(2, 3, 4, 16).astype(np.float16) for _ in range(3))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, hidden: Any = False) -> tuple[np.ndarray, np.ndarray]:
    scores = np.where(hidden, -np.inf, wide(q) @ wide(k).swapaxes(-1, -2) * 0.25)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    return (e / total @ wide(v)).astype(np.float16), (np.log(total) + top).astype(F)


COMMON: dict[str, Any] = {"numHeads": 3, "scaleValue": 0.25, "inputLayout": "BNSD", "numKeyValueHeads": 0}
WINDOW = {"preTokens": 2147483647, "nextTokens": 2147483647}
FUSED = {**COMMON, **WINDOW, "innerPrecise": 0, "blockSize": 0, "antiquantMode": 0, "softmaxLseFlag": True}


@pytest.mark.parametrize("version", ["V2", "V3"])
def test_prompts(version: str) -> None:
    precise = {"innerPrecise": 0} if version == "V3" else {}
    values = {"query": Q, "key": K, "value": W, **COMMON, **WINDOW, **precise}
    name = f"aclnnPromptFlashAttention{version}"
    out = Out(Q.shape, "float16")
    assert_same(call(name, **values, sparseMode=0, attentionOut=out), attention(Q, K, W)[0])
    mask = np.triu(np.ones((2048, 2048), bool), 1)
    got = call(name, **values, sparseMode=3, attenMask=mask, attentionOut=out)
    assert_same(got, attention(Q, K, W, mask[:4, :4])[0])
    short = np.arange(4) >= np.array([2, 3])[:, None, None, None]
    got = call(name, **values, sparseMode=0, actualSeqLengthsKv=[2, 3], attentionOut=out)
    assert_same(got, attention(Q, K, W, short)[0])
    assert refused(name, **values, sparseMode=0, quantScale1=np.ones(1, F), attentionOut=out) == 161002
    assert refused(name, **values, sparseMode=9, attentionOut=out) == 161002
    assert refused(name, **values, sparseMode=0, actualSeqLengthsKv=[9, 9], attentionOut=out) == 161002


@pytest.mark.parametrize("version", ["V2", "V3", "V4"])
def test_decoding(version: str) -> None:
    extra = {} if version == "V2" else {"blockSize": 0, "innerPrecise": 0}
    values = {"query": Q[:, :, :1].copy(), "key": [K], "value": [W], **COMMON, **extra}
    name, out = f"aclnnIncreFlashAttention{version}", Out((2, 3, 1, 16), "float16")
    assert_same(call(name, **values, attentionOut=out), attention(Q[:, :, :1], K, W)[0])
    short = np.arange(4) >= np.array([2, 3])[:, None, None, None]
    got = call(name, **values, actualSeqLengths=[2, 3], attentionOut=out)
    assert_same(got, attention(Q[:, :, :1], K, W, short)[0])
    assert refused(name, **values, dequantScale1=np.ones(1, F), attentionOut=out) == 161002
    assert refused(name, **{**values, "query": None}, attentionOut=out) == 161001


def test_fused_inference() -> None:
    out, logs = attention(Q, K, W)
    got = call("aclnnFusedInferAttentionScore", query=Q, key=[K], value=[W], **FUSED, sparseMode=0,
               attentionOut=Out(Q.shape, "float16"), softmaxLse=Out((2, 3, 4, 1)))  # fmt: skip
    assert_same(got[0], out)
    assert_same(got[1], logs, 8)
    assert refused("aclnnFusedInferAttentionScore", query=Q, key=[K], value=[W], **FUSED, sparseMode=0,
                   attentionOut=Out(Q.shape, "float16"), softmaxLse=Out((2, 3, 4))) == 161002  # fmt: skip


def test_training_without_a_sink() -> None:
    options: dict[str, Any] = {"scaleValue": 0.25, "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536,
                               "headNum": 3, "inputLayout": "BNSD", "innerPrecise": 0, "sparseMode": 0,
                               "pseType": 1}  # fmt: skip
    stats = {"softmaxMaxOut": Out((2, 3, 4, 8)), "softmaxSumOut": Out((2, 3, 4, 8))}
    top, total, out = call("aclnnFlashAttentionScoreV3", query=Q, key=K, value=W, **options, **stats,
                           attentionOutOut=Out(Q.shape, "float16"))  # fmt: skip
    assert_same(out, attention(Q, K, W)[0])
    grads = {n: Out(Q.shape, "float16") for n in ("dqOut", "dkOut", "dvOut")}
    given = {"query": Q, "keyIn": K, "value": W, "dy": np.ones_like(Q), "softmaxMaxOptional": top,
             "softmaxSumOptional": total, "attentionInOptional": out, **options, **grads}  # fmt: skip
    second, third = (call(f"aclnnFlashAttentionScoreGrad{v}", **given) for v in ("V2", "V3"))
    for a, b in zip(second, third):
        assert_same(a, b)
    assert refused("aclnnFlashAttentionScoreGradV3", **given, sinkInOptional=np.ones(3, F)) == 161002


# -- rotary ----------------------------------------------------------------------------------------------------------
def turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, mode: str) -> np.ndarray:
    half = x.shape[-1] // 2
    if mode == "half":
        other = np.concatenate([-x[..., half:], x[..., :half]], -1)
    else:
        other = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    return x * cos + other * sin


@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_rotary_of_query_and_key(mode: str) -> None:
    q, k = floats(1, 2, 3, 64), floats(1, 2, 1, 64)
    cos, sin = floats(1, 2, 1, 64), floats(1, 2, 1, 64)
    got = call("aclnnApplyRotaryPosEmbV2", queryRef=q, keyRef=k, cos=cos, sin=sin, layout=1, rotaryMode=mode)
    for g, x in zip(got, (q, k)):
        assert_same(g, turned(wide(x), cos, sin, mode).astype(F), 4)
    assert (
        refused("aclnnApplyRotaryPosEmbV2", queryRef=q, keyRef=k, cos=cos, sin=sin, layout=1, rotaryMode="x") == 161002
    )


def test_rotary_of_pairs_that_come_apart() -> None:
    x, cos, sin = floats(1, 2, 3, 8), floats(1, 1, 3, 8), floats(1, 1, 3, 8)
    apart = np.concatenate([x[..., ::2], x[..., 1::2]], -1)
    got = call("aclnnInterleaveRope", x=x, cos=cos, sin=sin, out=Out(x.shape))
    assert_same(got, turned(wide(apart), cos, sin, "half").astype(F), 4)
    assert refused("aclnnInterleaveRope", x=x, cos=cos, sin=sin, out=Out((1, 2, 3, 6))) == 161002
