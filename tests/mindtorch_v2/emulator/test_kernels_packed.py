"""Packed sequences, feed-forward networks, gradients that are sums over what a value went into."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._direct import Direct, checked
from ._kernels import Out, Scalar, assert_same, call, refused

RNG = np.random.default_rng(17)
F, H = np.float32, np.float16


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


# -- attention of packed sequences -----------------------------------------------------------------------------------
Q_ENDS, K_ENDS, HEADS, KV, SIZE = [3, 5], [4, 9], 4, 2, 16
Q, K, V = floats(5, HEADS, SIZE), floats(9, KV, SIZE), floats(9, KV, SIZE)
DY = floats(5, HEADS, SIZE)
# Whole masks: a query sees at least the key at its own place.
MASK = (RNG.uniform(size=(6, 7)) < 0.5) & ~np.eye(6, 7, dtype=bool)


def reference(mode: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """One sequence and head at a time, from the definition: the result, statistics, gradients."""
    out, top, total = np.zeros(Q.shape), np.zeros((HEADS, 5)), np.zeros((HEADS, 5))
    grads = {"dqOut": np.zeros(Q.shape), "dkOut": np.zeros(K.shape), "dvOut": np.zeros(V.shape)}
    for q0, q1, k0, k1 in ((0, 3, 0, 4), (3, 5, 4, 9)):
        i, j = np.arange(q1 - q0)[:, None], np.arange(k1 - k0)[None]
        shifted = j - i - (k1 - k0) + (q1 - q0)
        near = (j - i <= 1) & (i - j <= 2)
        hidden = {0: j < 0, 1: MASK[i, j], 2: j > i, 3: shifted > 0, 4: (shifted > 1) | (shifted < -2),
                  5: MASK[i, j] | ~near}[mode]  # fmt: skip
        for h in range(HEADS):
            g = h // (HEADS // KV)
            q, k, v, dy = wide(Q[q0:q1, h]), wide(K[k0:k1, g]), wide(V[k0:k1, g]), wide(DY[q0:q1, h])
            scores = np.where(hidden, -np.inf, q @ k.T * 0.25)
            top[h, q0:q1] = scores.max(1)
            e = np.exp(scores - scores.max(1, keepdims=True))
            total[h, q0:q1] = e.sum(1)
            p = e / e.sum(1, keepdims=True)
            out[q0:q1, h] = p @ v
            dp = dy @ v.T
            ds = p * (dp - (dp * p).sum(1, keepdims=True)) * 0.25
            grads["dqOut"][q0:q1, h] += ds @ k
            grads["dkOut"][k0:k1, g] += ds.T @ q
            grads["dvOut"][k0:k1, g] += p.T @ dy
    return out, top, total, grads


OPTIONS: dict[str, Any] = {"actualSeqQLenOptional": Q_ENDS, "actualSeqKvLenOptional": K_ENDS, "scaleValue": 0.25,
                           "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536, "headNum": HEADS,
                           "inputLayout": "TND", "innerPrecise": 0}  # fmt: skip
STATISTICS = {"softmaxMaxOut": Out((HEADS, 5, 8)), "softmaxSumOut": Out((HEADS, 5, 8))}
CAUSAL = np.triu(np.ones((2048, 2048), bool), 1)


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 5])
def test_packed_attention(version: str, mode: int) -> None:
    """Mode 5 of this test is the vendor's 0 with a mask, which also counts the distance."""
    extra: dict[str, Any] = {**OPTIONS, "sparseMode": 0 if mode == 5 else mode, **({"pseType": 1} if version else {})}
    if mode in (4, 5):
        extra |= {"preTokens": 2, "nextTokens": 1}
    if mode:
        extra["attenMaskOptional"] = MASK if mode in (1, 5) else CAUSAL
    out, top, total, grads = reference(mode)
    tops, sums, got = call(f"aclnnFlashAttentionVarLenScore{version}", query=Q, key=K, value=V, **extra,
                           **STATISTICS, attentionOutOut=Out(Q.shape))  # fmt: skip
    assert_same(got, out.astype(F), 8)
    assert_same(tops, np.repeat(top[..., None], 8, -1).astype(F), 8)
    assert_same(sums, np.repeat(total[..., None], 8, -1).astype(F), 8)
    backward = call(f"aclnnFlashAttentionUnpaddingScoreGrad{version}", query=Q, keyIn=K, value=V, dy=DY,
                    softmaxMaxOptional=tops, softmaxSumOptional=sums, attentionInOptional=got, **extra,
                    **{n: Out(g.shape) for n, g in grads.items()})  # fmt: skip
    for g, want in zip(backward, grads.values()):
        assert_same(g, want.astype(F), 16)


@pytest.mark.parametrize("wrong", [
    {"inputLayout": "BSH"}, {"headNum": 3}, {"actualSeqQLenOptional": [3, 4]}, {"actualSeqKvLenOptional": [9]},
    {"keepProb": 0.5}, {"sparseMode": 4}, {"sparseMode": 2}, {"actualSeqQLenOptional": [6, 5]}, {"sparseMode": 5},
    {"sparseMode": 1}, {"attenMaskOptional": MASK[:2]}, {"attenMaskOptional": MASK[:, :4]},
])  # fmt: skip
def test_packed_attention_refuses(wrong: dict[str, Any]) -> None:
    values = {**OPTIONS, "sparseMode": 0, **wrong}
    assert refused("aclnnFlashAttentionVarLenScore", query=Q, key=K, value=V, **values, **STATISTICS,
                   attentionOutOut=Out(Q.shape)) == 161002  # fmt: skip


def test_attentions_over_parts_are_joined() -> None:
    """Attention over two halves of the keys, joined, is attention over all."""
    scores, v = wide(floats(3, 6)), wide(floats(6, 8))
    whole = np.exp(scores)
    want = (whole / whole.sum(1, keepdims=True) @ v).astype(F)
    parts, logs = [], []
    for half in (slice(0, 2), slice(2, 6)):
        e = np.exp(scores[:, half])
        parts.append((e / e.sum(1, keepdims=True) @ v[half]).astype(F))
        logs.append(np.log(e.sum(1)).astype(F))
    out, lse = call("aclnnAttentionUpdate", lse=logs, localOut=parts, updateType=1, out=Out((3, 8)), lseOut=Out((3,)))
    assert_same(out, want, 4)
    assert_same(lse, np.log(whole.sum(1)).astype(F), 4)
    assert_same(call("aclnnAttentionUpdate", lse=logs, localOut=parts, updateType=0, out=Out((3, 8))), want, 4)
    assert refused("aclnnAttentionUpdate", lse=logs[:1], localOut=parts, updateType=0, out=Out((3, 8))) == 161002
    assert refused("aclnnAttentionUpdate", lse=logs, localOut=parts, updateType=2, out=Out((3, 8))) == 161002


# -- feed-forward networks -------------------------------------------------------------------------------------------
def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "fastgelu": lambda x: x * sigmoid(1.702 * x),
    "silu": lambda x: x * sigmoid(x),
}
GATES = {"geglu": "gelu", "swiglu": "silu", "reglu": "relu"}


@pytest.mark.parametrize("activation", [*ACTIVATIONS, *GATES])
@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_feed_forward(version: str, activation: str) -> None:
    middle = 8 if activation in GATES else 4
    x, w1, w2 = (floats(*s).astype(H) for s in ((5, 3), (3, middle), (4, 6)))
    b1 = floats(middle).astype(H)
    z = wide(x) @ wide(w1) + wide(b1)
    hidden = ACTIVATIONS[GATES[activation]](z[:, :4]) * z[:, 4:] if activation in GATES else ACTIVATIONS[activation](z)
    suffix = "Optional" if version == "V3" else ""
    values: dict[str, Any] = {"x": x, "weight1": w1, "weight2": w2, f"bias1{suffix}": b1, "activation": activation,
                              "innerPrecise": 0}  # fmt: skip
    if version:
        values["tokensIndexFlag"] = False
    name = f"aclnnFFN{version}"
    assert_same(call(name, **values, y=Out((5, 6), "float16")), (hidden @ wide(w2)).astype(H), 4)
    for wrong in ({"activation": "sine"}, {"weight2": w2[:3]}, {f"bias1{suffix}": b1[:2]}):
        assert refused(name, **{**values, **wrong}, y=Out((5, 6), "float16")) == 161002


def test_experts() -> None:
    x, w1, w2 = (floats(*s).astype(H) for s in ((5, 3), (2, 3, 4), (2, 4, 6)))
    split = (np.maximum(wide(x[a]) @ wide(w1[e]), 0) @ wide(w2[e]) for e, a in ((0, slice(0, 2)), (1, slice(2, 5))))
    want = np.concatenate(list(split)).astype(H)
    values: dict[str, Any] = {"x": x, "weight1": w1, "weight2": w2, "activation": "relu", "innerPrecise": 0}
    out = Out((5, 6), "float16")
    assert_same(call("aclnnFFN", **values, expertTokens=[2, 3], y=out), want, 4)
    assert_same(call("aclnnFFNV2", **values, expertTokens=[2, 5], tokensIndexFlag=True, y=out), want, 4)
    tokens = np.array([2, 3])
    assert_same(call("aclnnFFNV3", **values, expertTokensOptional=tokens, tokensIndexFlag=False, y=out), want, 4)
    assert refused("aclnnFFNV2", **values, tokensIndexFlag=True, y=out) == 161002


def test_quantized_experts() -> None:
    x, w1, w2 = (RNG.integers(-9, 9, s).astype(np.int8) for s in ((5, 3), (2, 3, 4), (2, 4, 6)))
    b1, b2 = (RNG.integers(-9, 9, s).astype(np.int32) for s in ((2, 4), (2, 6)))
    open1, open2 = (RNG.uniform(0.01, 0.1, s).astype(F) for s in ((2, 4), (2, 6)))
    scale, shift = np.array([9, 7], F), np.array([1, -2], F)
    rows = []
    for row in range(5):
        e = int(row >= 2)
        z = np.maximum((wide(x[row]) @ wide(w1[e]) + b1[e]) * open1[e], 0) * scale[e] + shift[e]
        rows.append((np.clip(np.rint(z), -128, 127) @ wide(w2[e]) + b2[e]) * open2[e])
    want = np.stack(rows).astype(H)
    values: dict[str, Any] = {"x": x, "weight1": w1, "weight2": w2, "bias1": b1, "bias2": b2, "scale": scale,
                              "offset": shift, "deqScale1": open1, "deqScale2": open2, "expertTokens": [2, 3],
                              "activation": "relu", "innerPrecise": 0}  # fmt: skip
    out = Out((5, 6), "float16")
    assert_same(call("aclnnFFN", **values, y=out), want, 4)
    packed = {f"deqScale{i}": v.view(np.uint32).astype(np.uint64) for i, v in ((1, open1), (2, open2))}
    assert_same(call("aclnnFFNV2", **{**values, **packed}, tokensIndexFlag=False, y=out), want, 4)
    for wrong in ({"scale": None}, {"deqScale1": open1[:, :3]}, {"antiquantScale1": b1.astype(H)}, {"weight2": b2}):
        assert refused("aclnnFFN", **{**values, **wrong}, y=out) == 161002


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_weights_that_stand_for_floats(dtype: str, groups: int) -> None:
    whole = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = floats(5, 6).astype(H)
    w1, w2 = (RNG.integers(-8, 8, s).astype(whole) for s in ((6, 4), (4, 6)))
    s1, o1 = (RNG.uniform(0.1, 0.5, (groups, 4)).astype(H) for _ in range(2))
    s2 = RNG.uniform(0.1, 0.5, 6).astype(H)
    first = (w1.astype(float) + np.repeat(wide(o1), 6 // groups, 0)) * np.repeat(wide(s1), 6 // groups, 0)
    z = wide(x) @ first
    want = (z * sigmoid(z) @ (w2.astype(float) * wide(s2))).astype(H)
    if groups == 1:
        s1, o1 = s1[0], o1[0]
    values: dict[str, Any] = {"x": x, "weight1": w1, "weight2": w2, "antiquantScale1": s1, "antiquantOffset1": o1,
                              "antiquantScale2": s2, "activation": "silu", "innerPrecise": 0}  # fmt: skip
    out = Out((5, 6), "float16")
    assert_same(call("aclnnFFN", **values, y=out), want, 8)
    for wrong in ({"antiquantScale2": None}, {"antiquantScale1": s2[:5]}, {"scale": np.ones(1, F)}):
        assert refused("aclnnFFN", **{**values, **wrong}, y=out) == 161002


# -- gradients -------------------------------------------------------------------------------------------------------
G3, INDEX, SHARE = floats(2, 3, 4), RNG.integers(0, 6, (2, 4, 3)), floats(2, 4, 3)
THREE = np.zeros((2, 3, 6))
for b, n, k in np.ndindex(2, 4, 3):
    THREE[b, :, INDEX[b, n, k]] += wide(G3)[b, :, n] * SHARE[b, n, k]
P1, P2 = floats(2, 4, 2), floats(2, 5, 2)
I1, I2 = RNG.integers(0, 5, (2, 4)).astype(np.int32), RNG.integers(0, 4, (2, 5)).astype(np.int32)
D1, D2 = floats(2, 4), floats(2, 5)
X1, X2 = np.zeros(P1.shape), np.zeros(P2.shape)
for b in range(2):
    for a in range(4):
        slope = 2 * D1[b, a] * (wide(P1)[b, a] - P2[b, I1[b, a]])
        X1[b, a] += slope
        X2[b, I1[b, a]] -= slope
    for a in range(5):
        slope = 2 * D2[b, a] * (wide(P2)[b, a] - P1[b, I2[b, a]])
        X2[b, a] += slope
        X1[b, I2[b, a]] -= slope
BATCH, GRAD, SCALE = floats(2, 3, 4), floats(2, 3, 4), floats(2, 4)
ROWS = floats(5, 4)
TOKENS, PLACES, WEIGHTS = floats(3, 4), np.array([4, 0, 2, 1, 5, 3], np.int32), floats(3, 2)
EXPANDED = floats(6, 4)
SENT = np.zeros((6, 4), F)
SENT[PLACES] = (TOKENS[:, None] * WEIGHTS[..., None]).reshape(6, 4)
# Two experts with four places each; one pair had no room.
ROOMS, ROOM_BIAS, ROOM_EXPERTS = floats(2, 4, 4), floats(2, 4), np.array([[1, 0], [0, 0], [1, 1]], np.int32)
KEPT = PLACES != 2
SENT_TO_ROOMS = np.zeros((8, 4), F)
SENT_TO_ROOMS[PLACES[KEPT]] = (TOKENS[:, None] * WEIGHTS[..., None]).reshape(6, 4)[KEPT]
ROOMS_GRAD = SENT_TO_ROOMS.reshape(2, 4, 4)
ROOM_ROWS = ROOMS.reshape(8, 4)[PLACES] * KEPT[:, None] + ROOM_BIAS[ROOM_EXPERTS.reshape(-1)]
ROOM_SCALES = (ROOM_ROWS.reshape(3, 2, 4) * TOKENS[:, None]).sum(-1)

CASES = [
    Direct("aclnnThreeInterpolateBackward", {"grad_x": G3, "idx": INDEX, "weight": SHARE, "m": 6},
           {"grad_y": THREE.astype(F)}),
    Direct("aclnnChamferDistanceBackward", {"xyz1": P1, "xyz2": P2, "idx1": I1, "idx2": I2, "gradDist1": D1,
                                            "gradDist2": D2}, {"gradXyz1": X1.astype(F), "gradXyz2": X2.astype(F)}),
    Direct("aclnnModulateBackward", {"grad_output": GRAD, "input": BATCH, "scale": SCALE, "shift": SCALE},
           {"grad_input": GRAD * (1 + SCALE[:, None]), "grad_scale": (wide(GRAD) * BATCH).sum(1).astype(F),
            "grad_shift": wide(GRAD).sum(1).astype(F)}),
    Direct("aclnnGroupedBiasAddGrad", {"gradY": ROWS, "groupIdxOptional": np.array([2, 5])},
           {"out": np.stack([ROWS[:2].sum(0), ROWS[2:].sum(0)])}),
    Direct("aclnnGroupedBiasAddGrad", {"gradY": BATCH}, {"out": BATCH.sum(1)}),
    Direct("aclnnGroupedBiasAddGradV2", {"gradY": ROWS, "groupIdxOptional": np.array([2, 3]), "groupIdxType": 1},
           {"out": np.stack([ROWS[:2].sum(0), ROWS[2:].sum(0)])}),
    Direct("aclnnMoeFinalizeRoutingV2Grad",
           {"gradY": TOKENS, "expandedRowIdx": PLACES, "expandedXOptional": EXPANDED, "scalesOptional": WEIGHTS,
            "dropPadMode": 0, "activeNum": 0, "expertNum": 0, "expertCapacity": 0},
           {"gradExpandedXOut": SENT,
            "gradScalesOut": (EXPANDED[PLACES].reshape(3, 2, 4) * TOKENS[:, None]).sum(-1)}),
    Direct("aclnnMoeFinalizeRoutingV2Grad",
           {"gradY": TOKENS, "expandedRowIdx": np.where(PLACES == 2, -1, PLACES).astype(PLACES.dtype),
            "expandedXOptional": ROOMS, "scalesOptional": WEIGHTS, "expertIdxOptional": ROOM_EXPERTS,
            "biasOptional": ROOM_BIAS, "dropPadMode": 1, "activeNum": 0, "expertNum": 2, "expertCapacity": 4},
           {"gradExpandedXOut": ROOMS_GRAD, "gradScalesOut": ROOM_SCALES.astype(F)}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_a_gradient_is_let_through_where_the_mask_is_above() -> None:
    got = call("aclnnReluGradV4", gradOutput=ROWS, self=np.array([[0, 1, 2, 3]], np.uint8).repeat(5, 0),
               threshold=Scalar(1, "int32"), out=Out((5, 4)))  # fmt: skip
    assert_same(got, ROWS * np.array([0, 0, 1, 1], F))
