"""What flows back through attention to chosen keys, and attention to compressed keys, against dense NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import Out, assert_same, call, refused
from .test_kernels_quantized_norm import F, H, make, wide

RNG = np.random.default_rng(91)
# Two packed sequences of 3 and 2 queries, 6 and 4 keys.
QUERIES, KEYS, HEADS, WIDTH, SCALE = [3, 2], [6, 4], 4, 8, 0.4
ENDS, KEY_ENDS = np.cumsum(QUERIES), np.cumsum(KEYS)
OWNER, KEY_OWNER = np.repeat([0, 1], QUERIES), np.repeat([0, 1], KEYS)
I32 = np.int32


def seen(indices: np.ndarray, block: int) -> np.ndarray:
    """(row, head of the keys, key): whether it is looked at."""
    out = np.zeros((5, indices.shape[1], 10), bool)
    for row, head in np.ndindex(5, indices.shape[1]):
        first, size = (KEY_ENDS - KEYS)[OWNER[row]], KEYS[OWNER[row]]
        for n in indices[row, head]:
            if n < 0:
                break
            out[row, head, first + n * block : first + min((n + 1) * block, size)] = True
    return out


def dense(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
    """Attention of (row, head, size) to (key, head, size) where `mask` (row, head of the keys, key) says so."""
    per = q.shape[1] // k.shape[1]
    k, v, mask = (np.repeat(a, per, 1) for a in (k, v, mask))
    logits = np.where(mask, SCALE * np.einsum("rhd,khd->rhk", q, k), -np.inf)
    top = logits.max(-1, keepdims=True)
    e = np.exp(logits - top)
    p = e / e.sum(-1, keepdims=True)
    return {"p": p, "top": top[..., 0], "sum": e.sum(-1), "out": np.einsum("rhk,khd->rhd", p, v), "k": k, "v": v}


def back(s: dict[str, np.ndarray], q: np.ndarray, g: np.ndarray, heads: int) -> list[np.ndarray]:
    ds = SCALE * s["p"] * (np.einsum("rhd,khd->rhk", g, s["v"]) - (g * s["out"]).sum(-1)[..., None])
    dk, dv = np.einsum("rhk,rhd->khd", ds, q), np.einsum("rhk,rhd->khd", s["p"], g)
    shared = [a.reshape(len(a), heads, -1, a.shape[-1]).sum(2) for a in (dk, dv)]
    return [np.einsum("rhk,khd->rhd", ds, s["k"]), *shared]


Q, K, V, G = make(5, HEADS, WIDTH), make(10, 2, WIDTH), make(10, 2, 6), make(5, HEADS, 6)
TOP = np.array([[[0, 2], [1, -1]]] * 3 + [[[1, 0], [0, -1]]] * 2, I32)
S = dense(wide(Q), wide(K), wide(V), seen(TOP, 2))
DQ, DK, DV = back(S, wide(Q), wide(G), 2)
SELECTED: dict[str, Any] = {
    "query": Q,
    "key": K,
    "value": V,
    "attentionOut": S["out"].astype(H),
    "attentionOutGrad": G,
    "softmaxMax": np.repeat(S["top"][..., None], 8, -1).astype(F),
    "softmaxSum": np.repeat(S["sum"][..., None], 8, -1).astype(F),
    "topkIndices": TOP,
    "actualSeqQLenOptional": ENDS.tolist(),
    "actualSeqKvLenOptional": KEY_ENDS.tolist(),
    "scaleValue": SCALE,
    "selectedBlockSize": 2,
    "selectedBlockCount": 2,
    "headNum": HEADS,
    "inputLayout": "TND",
    "sparseMode": 0,
}
# One head of keys, rotated parts, single keys.
K1, KR, QR = make(10, 1, WIDTH), make(10, 1, 4), make(5, HEADS, 4)
ONES = np.array([[[0, 3, 5]]] * 3 + [[[2, 0, -1]]] * 2, I32)
FULL_Q, FULL_K = np.concatenate([wide(Q), wide(QR)], -1), np.concatenate([wide(K1), wide(KR)], -1)
S1 = dense(FULL_Q, FULL_K, wide(K1), seen(ONES, 1))
G1 = make(5, HEADS, WIDTH)
DQ1, DK1, DV1 = back(S1, FULL_Q, wide(G1), 1)
SPARSE: dict[str, Any] = {
    "query": Q,
    "key": K1,
    "value": K1,
    "sparseIndices": ONES,
    "dOut": G1,
    "out": S1["out"].astype(H),
    "softmaxMax": S1["top"][None].astype(F),
    "softmaxSum": S1["sum"][None].astype(F),
    "actualSeqLengthsQueryOptional": ENDS.astype(I32),
    "actualSeqLengthsKvOptional": KEY_ENDS.astype(I32),
    "queryRopeOptional": QR,
    "keyRopeOptional": KR,
    "scaleValue": SCALE,
    "sparseBlockSize": 1,
    "layoutOptional": "TND",
    "sparseMode": 0,
    "preTokens": 2**62,
    "nextTokens": 2**62,
    "deterministic": False,
}
ROTATED = {"dQueryRopeOutOptional": DQ1[..., WIDTH:].astype(H), "dKeyRopeOutOptional": DK1[..., WIDTH:].astype(H)}

# The score that chooses.
QI, KI, W = make(5, 3, WIDTH), make(10, 1, WIDTH), make(5, 3)
PLACES = np.where(ONES[:, 0] < 0, 0, ONES[:, 0] + (KEY_ENDS - KEYS)[OWNER][:, None])
HELD = ONES[:, 0] >= 0
DOTS = np.einsum("rhd,rcd->rhc", wide(QI), wide(KI)[PLACES, 0])


def scored_back(dy: np.ndarray) -> list[np.ndarray]:
    dy = np.where(HELD, dy, 0)
    flow = dy[:, None] * wide(W)[..., None] * (DOTS > 0)
    dk = np.zeros(KI.shape)
    np.add.at(dk, (PLACES, 0), np.einsum("rhc,rhd->rcd", flow, wide(QI)))
    return [
        np.einsum("rhc,rcd->rhd", flow, wide(KI)[PLACES, 0]).astype(H),
        dk.astype(H),
        (dy[:, None] * np.maximum(DOTS, 0)).sum(-1).astype(H),
    ]


DY = make(5, 3)
INDEXER: dict[str, Any] = {
    "query": QI,
    "key": KI,
    "dy": DY[:, None],
    "sparseIndices": ONES[:, 0],
    "weights": W,
    "headNum": 3,
    "inputLayout": "TND",
    "actualSeqQLenOptional": ENDS.astype(I32),
    "actualSeqKvLenOptional": KEY_ENDS.astype(I32),
    "sparseMode": 0,
    "preTokens": 2**62,
    "nextTokens": 2**62,
    "deterministic": False,
}
SCORES = np.where(HELD, (wide(W)[..., None] * np.maximum(DOTS, 0)).sum(1), -np.inf)
STUDENT = np.exp(SCORES - SCORES.max(-1, keepdims=True))
STUDENT /= STUDENT.sum(-1, keepdims=True)
TEACHER = np.where(HELD, np.take_along_axis(S1["p"].mean(1), PLACES, 1), 0)
TAUGHT = scored_back(STUDENT - TEACHER)
with np.errstate(divide="ignore", invalid="ignore"):
    LOSS = np.where(TEACHER > 0, TEACHER * np.log(TEACHER / STUDENT), 0).sum()
LOSS_CALL: dict[str, Any] = {
    "query": Q,
    "key": K1,
    "queryIndex": QI,
    "keyIndex": KI,
    "weights": W,
    "sparseIndices": ONES,
    "softmaxMax": SPARSE["softmaxMax"],
    "softmaxSum": SPARSE["softmaxSum"],
    "queryRope": QR,
    "keyRope": KR,
    "actualSeqLengthsQuery": ENDS.tolist(),
    "actualSeqLengthsKey": KEY_ENDS.tolist(),
    "scaleValue": SCALE,
    "layout": "TND",
    "sparseMode": 0,
    "pre_tokens": 2**62,
    "next_tokens": 2**62,
    "deterministic": False,
}
LATER: dict[str, Any] = {
    "q": QI,
    "k": KI,
    "w": W.astype(F),
    "sparseIndices": ONES,
    "attnSoftmaxL1Norm": TEACHER[:, None].astype(F),
    "cuSeqLensQOptional": np.array([0, *ENDS], I32),
    "cuSeqLensKOptional": np.array([0, *KEY_ENDS], I32),
    "layoutQ": "TND",
    "layoutK": "TND",
    "maskMode": 0,
    "cmpRatio": 1,
}

# Compressed keys: blocks of 4 keys, a step of 2, selected blocks of 4.
CQ, CK, CV = make(5, HEADS, WIDTH), make(10, 2, WIDTH), make(10, 2, 6)
SELECTED_KEYS = [14, 10]
C = dense(wide(CQ), wide(CK), wide(CV), np.repeat((OWNER[:, None] == KEY_OWNER)[:, None], 2, 1))


def important(p: np.ndarray, blocks: int, count: int) -> list[int]:
    found = [
        sum(p[2 * j - m - n] for m in range(2) for n in range(2) if 0 <= 2 * j - m - n < len(p)) for j in range(blocks)
    ]
    best = np.argsort(-np.array(found), kind="stable")[:count].tolist()
    return best + [-1] * (count - len(best))


def chosen() -> np.ndarray:
    out = np.zeros((5, 2, 3), I32)
    for row, head in np.ndindex(5, 2):
        b = OWNER[row]
        p = C["p"][row, 2 * head : 2 * head + 2].sum(0)[KEY_OWNER == b]
        out[row, head] = important(p, -(-SELECTED_KEYS[b] // 4), 3)
    return out


COMPRESSED: dict[str, Any] = {
    "query": CQ,
    "key": CK,
    "value": CV,
    "actualSeqQLenOptional": ENDS.tolist(),
    "actualCmpSeqKvLenOptional": KEY_ENDS.tolist(),
    "actualSelSeqKvLenOptional": np.cumsum(SELECTED_KEYS).tolist(),
    "scaleValue": SCALE,
    "headNum": HEADS,
    "inputLayout": "TND",
    "sparseMode": 0,
    "compressBlockSize": 4,
    "compressStride": 2,
    "selectBlockSize": 4,
    "selectBlockCount": 3,
}
TABLE = np.array([[2, 0], [1, 3]], I32)


def in_pages(x: np.ndarray) -> np.ndarray:
    """Pages of 4 rows."""
    out = make(4, 4, x.shape[1] * x.shape[2])
    for b in range(2):
        own = x[KEY_OWNER == b].reshape(KEYS[b], -1)
        for j, row in enumerate(own):
            out[TABLE[b, j // 4], j % 4] = row
    return out


ANSWER: dict[str, Any] = {
    "query": CQ,
    "key": in_pages(CK),
    "value": in_pages(CV),
    "blockTableOptional": TABLE,
    "actualQSeqLenOptional": QUERIES,
    "numHeads": HEADS,
    "numKeyValueHeads": 2,
    "selectBlockCount": 3,
    "scaleValue": SCALE,
    "layoutOptional": "TND",
    "pageBlockSize": 4,
    "sparseMode": 0,
}
SHORT = np.array([[[0, 2, -1], [1, -1, -1]]] * 3 + [[[1, 0, -1], [0, -1, -1]]] * 2, I32)
INFER = {**ANSWER, "topkIndices": SHORT, "actualKvSeqLenOptional": KEYS, "selectBlockSize": 2}
CACHE = make(5, 2, WIDTH)
CW = make(4, 2)


def newest() -> np.ndarray:
    """The first sequence has 6 keys, its last block is complete; the second, of 5, has none that ends there."""
    out = CACHE.copy()
    out[3] = np.einsum("sh,shd->hd", wide(CW), wide(CK[2:6]))
    return out


# Products of small integers.
BQ, BK = RNG.integers(-9, 9, (5, 3, WIDTH)).astype(np.int8), RNG.integers(-9, 9, (10, 1, WIDTH)).astype(np.int8)
QS, KS = RNG.uniform(0.1, 1, (5, 3)).astype(H), RNG.uniform(0.1, 1, (10, 1)).astype(H)


def small_indices() -> np.ndarray:
    out = np.full((5, 1, 4), -1, I32)
    dots = np.maximum(np.einsum("rhd,kd->rhk", BQ.astype(int), BK[:, 0].astype(int)), 0)
    score = np.einsum("rhk,rh->rk", dots, wide(W) * wide(QS)) * wide(KS)[:, 0]
    for row in range(5):
        own = score[row, KEY_OWNER == OWNER[row]]
        out[row, 0] = np.argsort(-own, kind="stable")[:4]
    return out


SMALL: dict[str, Any] = {
    "query": BQ,
    "key": BK,
    "weights": W,
    "queryDequantScale": QS,
    "keyDequantScale": KS,
    "queryQuantMode": 0,
    "keyQuantMode": 0,
    "actualSeqLengthsQueryOptional": ENDS.astype(I32),
    "actualSeqLengthsKeyOptional": KEY_ENDS.astype(I32),
    "layoutQueryOptional": "TND",
    "layoutKeyOptional": "TND",
    "sparseCount": 4,
    "sparseMode": 0,
    "preTokens": 2**62,
    "nextTokens": 2**62,
}
EIGHT = {
    "softmaxMaxOut": np.repeat(C["top"][..., None], 8, -1).astype(F),
    "softmaxSumOut": np.repeat(C["sum"][..., None], 8, -1).astype(F),
}
CASES = [
    Direct(
        "aclnnNsaSelectedAttentionGrad",
        SELECTED,
        {"dqOut": DQ.astype(H), "dkOut": DK.astype(H), "dvOut": DV.astype(H)},
        8,
    ),
    Direct(
        "aclnnSparseFlashAttentionGrad",
        SPARSE,
        {
            "dQueryOut": DQ1[..., :WIDTH].astype(H),
            "dKeyOut": DK1[..., :WIDTH].astype(H),
            "dValueOut": DV1.astype(H),
            **ROTATED,
        },
        8,
    ),
    Direct(
        "aclnnLightningIndexerGrad", INDEXER, dict(zip(("dqOut", "dkOut", "dweightsOut"), scored_back(wide(DY)))), 8
    ),
    Direct(
        "aclnnSparseLightningIndexerGradKLLoss",
        LOSS_CALL,
        {**dict(zip(("dQueryIndex", "dKeyIndex", "dWeights"), TAUGHT)), "loss": np.array([LOSS], F)},
        8,
    ),
    Direct(
        "aclnnSparseLightningIndexerKLLossGrad",
        LATER,
        {"dq": TAUGHT[0], "dk": TAUGHT[1], "dw": TAUGHT[2].astype(F), "softmaxOut": STUDENT[:, None].astype(F)},
        800,
    ),
    Direct(
        "aclnnNsaCompressAttention",
        COMPRESSED,
        {**EIGHT, "attentionOutOut": C["out"].astype(H), "topkIndicesOut": chosen()},
    ),
    Direct(
        "aclnnNsaCompressAttentionInfer",
        {
            **ANSWER,
            "actualCmpKvSeqLenOptional": KEYS,
            "actualSelKvSeqLenOptional": SELECTED_KEYS,
            "compressBlockSize": 4,
            "compressBlockStride": 2,
            "selectBlockSize": 4,
        },
        {"output": C["out"].astype(H), "topKOutput": chosen()},
    ),
    Direct(
        "aclnnNsaSelectedAttentionInfer",
        INFER,
        {"output": dense(wide(CQ), wide(CK), wide(CV), seen(SHORT, 2))["out"].astype(H)},
    ),
    Direct(
        "aclnnNsaCompressWithCache",
        {
            "input": in_pages(CK).reshape(4, 4, 2, WIDTH),
            "weight": CW,
            "slotMapping": np.array([3, 1], I32),
            "actSeqLenOptional": [6, 3],
            "blockTableOptional": TABLE,
            "layoutOptional": "TND",
            "compressBlockSize": 4,
            "compressStride": 2,
            "actSeqLenType": 1,
            "pageBlockSize": 4,
            "outputCache": CACHE,
        },
        {"outputCache": newest()},
    ),
    Direct("aclnnQuantLightningIndexer", SMALL, {"out": small_indices()}),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


@each(CASES)
def test_refusals(case: Direct) -> None:
    check_refusals(case)


def test_masks_from_below() -> None:
    """sparseMode 3: keys behind a query are not seen, though chosen."""
    seen_now = seen(TOP, 2) & np.repeat(
        (
            np.arange(10) - (KEY_ENDS - KEYS)[OWNER][:, None]
            <= (np.array(KEYS) - QUERIES)[OWNER][:, None] + np.array([0, 1, 2, 0, 1])[:, None]
        )[:, None],
        2,
        1,
    )
    s = dense(wide(Q), wide(K), wide(V), seen_now)
    values = {
        **SELECTED,
        "sparseMode": 3,
        "attentionOut": s["out"].astype(H),
        "softmaxMax": np.repeat(s["top"][..., None], 8, -1).astype(F),
        "softmaxSum": np.repeat(s["sum"][..., None], 8, -1).astype(F),
    }
    outs = {"dqOut": Out(Q.shape, "float16"), "dkOut": Out(K.shape, "float16"), "dvOut": Out(V.shape, "float16")}
    for got, want in zip(call("aclnnNsaSelectedAttentionGrad", **values, **outs), back(s, wide(Q), wide(G), 2)):
        assert_same(got, want.astype(H), 8)


def test_a_value_that_is_the_key() -> None:
    values = {**SPARSE, "value": None}
    outs = {
        "dQueryOut": Out(Q.shape, "float16"),
        "dKeyOut": Out(K1.shape, "float16"),
        "dValueOut": Out(K1.shape, "float16"),
        "dQueryRopeOutOptional": Out(QR.shape, "float16"),
        "dKeyRopeOutOptional": Out(KR.shape, "float16"),
    }
    got = call("aclnnSparseFlashAttentionGrad", **values, **outs)
    assert_same(got[1], (DK1[..., :WIDTH] + DV1).astype(H), 8)


def test_statistics_of_sparse_attention() -> None:
    names = (
        "query",
        "key",
        "value",
        "sparseIndices",
        "queryRopeOptional",
        "keyRopeOptional",
        "scaleValue",
        "sparseMode",
        "preTokens",
        "nextTokens",
    )
    values = {name: SPARSE[name] for name in (*names, "actualSeqLengthsQueryOptional", "actualSeqLengthsKvOptional")}
    values |= {
        "sparseBlockSizeOptional": 1,
        "layoutQueryOptional": "TND",
        "layoutKvOptional": "TND",
        "attentionMode": 2,
    }
    outs = {"attentionOut": Out(Q.shape, "float16"), "softmaxMax": Out((1, 5, HEADS)), "softmaxSum": Out((1, 5, HEADS))}
    got = call("aclnnSparseFlashAttention", **values, returnSoftmaxLse=True, **outs)
    for a, b in zip(got, (S1["out"].astype(H), SPARSE["softmaxMax"], SPARSE["softmaxSum"])):
        assert_same(a, b, 4)
    assert (
        refused("aclnnSparseFlashAttention", **values, returnSoftmaxLse=True, **{**outs, "softmaxMax": Out((5, HEADS))})
        == 161002
    )


@pytest.mark.parametrize(
    ("name", "values", "wrong"),
    [
        ("aclnnNsaSelectedAttentionGrad", SELECTED, {"headNum": 3}),
        ("aclnnNsaSelectedAttentionGrad", SELECTED, {"inputLayout": "BSND"}),
        ("aclnnNsaSelectedAttentionGrad", SELECTED, {"selectedBlockCount": 3}),
        ("aclnnNsaSelectedAttentionGrad", SELECTED, {"sparseMode": 2}),
        ("aclnnLightningIndexerGrad", INDEXER, {"headNum": 4}),
        ("aclnnLightningIndexerGrad", INDEXER, {"dy": DY[:, None, :2]}),
        ("aclnnNsaCompressAttention", COMPRESSED, {"compressStride": 3}),
        ("aclnnNsaCompressAttention", COMPRESSED, {"selectBlockCount": 0}),
        ("aclnnNsaCompressAttention", COMPRESSED, {"actualSelSeqKvLenOptional": [14]}),
        ("aclnnNsaCompressAttention", COMPRESSED, {"headNum": 2}),
        ("aclnnNsaSelectedAttentionInfer", INFER, {"pageBlockSize": 8}),
        ("aclnnNsaSelectedAttentionInfer", INFER, {"numKeyValueHeads": 3}),
        ("aclnnNsaSelectedAttentionInfer", INFER, {"layoutOptional": "BSND"}),
        ("aclnnQuantLightningIndexer", SMALL, {"keyQuantMode": 1}),
        ("aclnnQuantLightningIndexer", SMALL, {"keyDequantScale": KS[:9]}),
    ],
)
def test_what_is_refused(name: str, values: dict[str, Any], wrong: dict[str, Any]) -> None:
    case = next(c for c in CASES if c.name == name)
    outs = {n: Out(a.shape, a.dtype.name) for n, a in case.want.items()}
    assert refused(name, **{**values, **wrong}, **outs) == 161002


def test_a_page_that_does_not_exist() -> None:
    out = {"output": Out((5, HEADS, 6), "float16")}
    assert refused("aclnnNsaSelectedAttentionInfer", **{**INFER, "blockTableOptional": TABLE + 2}, **out) == 507015
    assert refused("aclnnNsaSelectedAttentionInfer", **{**INFER, "actualKvSeqLenOptional": [6, 4, 1]}, **out) == 507015


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("aclnnNsaSelectedAttentionGrad", "selectedBlockSize"),
        ("aclnnSparseFlashAttentionGrad", "sparseBlockSize"),
        ("aclnnNsaCompressAttention", "selectBlockSize"),
        ("aclnnNsaSelectedAttentionInfer", "selectBlockSize"),
    ],
)
@pytest.mark.parametrize("value", [0, -1, 2**62, 2**63 - 1])
def test_sizes_past_every_tensor(name: str, size: str, value: int) -> None:
    case = next(c for c in CASES if c.name == name)
    outs = {n: Out(a.shape, a.dtype.name) for n, a in case.want.items()}
    assert refused(name, **{**case.given, size: value}, **outs) == 161002


def test_a_loss_of_padded_sequences() -> None:
    """Lengths and rotated parts may be left out: one padded sequence of all rows."""
    s = dense(wide(Q)[:3], wide(K1)[:6], wide(K1)[:6], seen(ONES, 1)[:3, :, :6])
    names = ("query", "queryIndex", "weights", "sparseIndices")
    given = {
        **LOSS_CALL,
        **{name: LOSS_CALL[name][None, :3] for name in names},
        "key": K1[None, :6],
        "keyIndex": KI[None, :6],
    }
    given |= {
        "softmaxMax": s["top"][None, None].astype(F),
        "softmaxSum": s["sum"][None, None].astype(F),
        "layout": "BSND",
    }
    given |= dict.fromkeys(("queryRope", "keyRope", "actualSeqLengthsQuery", "actualSeqLengthsKey"))
    outs = {"dQueryIndex": Out((1, 3, 3, WIDTH), "float16"), "dKeyIndex": Out((1, 6, 1, WIDTH), "float16")}
    outs |= {"dWeights": Out((1, 3, 3), "float16"), "loss": Out((1,))}
    teacher = np.take_along_axis(s["p"].mean(1), PLACES[:3], 1)
    want = (teacher * np.log(teacher / STUDENT[:3])).sum()
    assert_same(call("aclnnSparseLightningIndexerGradKLLoss", **given, **outs)[3], np.array([want], F), 40)
    wrong = {**given, "queryRope": QR[None, :3]}
    assert refused("aclnnSparseLightningIndexerGradKLLoss", **wrong, **outs) == 161002
