"""Attention to chosen keys and connections between parallel streams, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, check, check_refusals, each
from ._kernels import Out, call, refused
from .test_kernels_quantized_norm import F, H, make, wide

RNG = np.random.default_rng(43)
BATCH, QUERIES, KEYS, HEADS, WIDTH, ROPE, COUNT = 2, 3, 10, 4, 8, 4, 5
Q, K, W = make(BATCH, QUERIES, HEADS, WIDTH), make(BATCH, KEYS, 1, WIDTH), make(BATCH, QUERIES, HEADS)
QR, KR = make(BATCH, QUERIES, HEADS, ROPE), make(BATCH, KEYS, 1, ROPE)
LENGTHS = np.array([7, 10], np.int32)


def scores(b: int, i: int, last: int) -> np.ndarray:
    dots = np.maximum(wide(Q)[b, i] @ wide(K)[b, :last, 0].T, 0)
    return np.asarray(wide(W)[b, i] @ dots)


def indexed(causal: bool) -> tuple[np.ndarray, np.ndarray]:
    indices, values = np.full((BATCH, QUERIES, 1, COUNT), -1, np.int32), np.full((BATCH, QUERIES, 1, COUNT), -np.inf)
    for b in range(BATCH):
        for i in range(QUERIES):
            last = LENGTHS[b] - QUERIES + i + 1 if causal else LENGTHS[b]
            s = scores(b, i, last)
            best = np.argsort(-s, kind="stable")[:COUNT]
            indices[b, i, 0, : len(best)], values[b, i, 0, : len(best)] = best, s[best]
    return indices, values.astype(H)


def attended(indices: np.ndarray, block: int, causal: bool) -> np.ndarray:
    out = np.zeros((BATCH, QUERIES, HEADS, WIDTH))
    for b in range(BATCH):
        for i in range(QUERIES):
            last = LENGTHS[b] - QUERIES + i + 1 if causal else LENGTHS[b]
            keys = [j for n in indices[b, i, 0] if n >= 0 for j in range(n * block, min((n + 1) * block, last))]
            logits = wide(Q)[b, i] @ wide(K)[b, keys, 0].T + wide(QR)[b, i] @ wide(KR)[b, keys, 0].T
            p = np.exp(0.3 * logits)
            out[b, i] = p / p.sum(-1, keepdims=True) @ wide(K)[b, keys, 0]
    return out.astype(H)


INDEX: dict[str, Any] = {
    "query": Q,
    "key": K,
    "weights": W,
    "actualSeqLengthsKeyOptional": LENGTHS,
    "sparseCount": COUNT,
    "preTokens": 2**62,
    "nextTokens": 2**62,
    "layoutQueryOptional": "BSND",
    "layoutKeyOptional": "BSND",
    "returnValues": True,
}
CHOSEN = indexed(True)[0]
BLOCKS = np.array([[[[1, 0, -1]]] * QUERIES, [[[2, 0, 1]]] * QUERIES], np.int32)
SPARSE: dict[str, Any] = {
    "query": Q,
    "key": K,
    "value": K,
    "queryRopeOptional": QR,
    "keyRopeOptional": KR,
    "actualSeqLengthsKvOptional": LENGTHS,
    "scaleValue": 0.3,
    "layoutQueryOptional": "BSND",
    "layoutKvOptional": "BSND",
    "preTokens": 2**62,
    "nextTokens": 2**62,
    "attentionMode": 2,
    "returnSoftmaxLse": False,
}
TQ, TK, TV = make(5, 4, 8), make(9, 2, 8), make(9, 2, 6)
TOP = np.array([[[0, 2], [1, 0]]] * 2 + [[[0, 1], [1, -1]]] * 3, np.int32)


def selected() -> dict[str, np.ndarray]:
    out, tops, sums = np.zeros((5, 4, 6)), np.zeros((5, 4, 8)), np.zeros((5, 4, 8))
    for rows, keys in ((range(2), range(5)), (range(2, 5), range(5, 9))):
        for i in rows:
            for h in range(4):
                picks = [j for n in TOP[i, h // 2] if n >= 0 for j in range(2 * n, min(2 * n + 2, len(keys)))]
                places = [keys[j] for j in picks]
                logits = 0.5 * wide(TK)[places, h // 2] @ wide(TQ)[i, h]
                tops[i, h], sums[i, h] = logits.max(), np.exp(logits - logits.max()).sum()
                out[i, h] = np.exp(logits - logits.max()) / sums[i, h, 0] @ wide(TV)[places, h // 2]
    return {"softmaxMaxOut": tops.astype(F), "softmaxSumOut": sums.astype(F), "attentionOut": out.astype(H)}


MX, RES, HOUT, POST, GRAD = (
    make(2, 3, 4, 8),
    make(2, 3, 4, 4, dtype=F),
    make(2, 3, 8),
    make(2, 3, 4, dtype=F),
    make(2, 3, 4, 8),
)
STREAMS = {"x": MX, "hRes": RES, "hOut": HOUT, "hPost": POST}
CASES = [
    *(
        Direct(
            "aclnnLightningIndexer",
            {**INDEX, "sparseMode": mode},
            dict(zip(("sparseIndicesOut", "sparseValuesOut"), indexed(mode == 3))),
        )
        for mode in (0, 3)
    ),
    Direct(
        "aclnnSparseFlashAttention",
        {**SPARSE, "sparseIndices": CHOSEN, "sparseBlockSizeOptional": 1, "sparseMode": 3},
        {"attentionOut": attended(CHOSEN, 1, True)},
    ),
    Direct(
        "aclnnSparseFlashAttention",
        {**SPARSE, "sparseIndices": BLOCKS, "sparseBlockSizeOptional": 4, "sparseMode": 0},
        {"attentionOut": attended(BLOCKS, 4, False)},
    ),
    Direct(
        "aclnnNsaSelectedAttention",
        {
            "query": TQ,
            "key": TK,
            "value": TV,
            "topkIndices": TOP,
            "actualSeqQLenOptional": [2, 5],
            "actualSeqKvLenOptional": [5, 9],
            "scaleValue": 0.5,
            "headNum": 4,
            "inputLayout": "TND",
            "sparseMode": 0,
            "selectedBlockSize": 2,
            "selectedBlockCount": 2,
        },
        selected(),
    ),
    Direct(
        "aclnnMhcPost",
        STREAMS,
        {
            "out": (
                np.einsum("bsmn,bsmd->bsnd", wide(RES), wide(MX)) + wide(POST)[..., None] * wide(HOUT)[..., None, :]
            ).astype(H)
        },
    ),
    Direct(
        "aclnnMhcPostBackward",
        {"gradOutput": GRAD, **STREAMS},
        {
            "gradX": np.einsum("bsmn,bsnd->bsmd", wide(RES), wide(GRAD)).astype(H),
            "gradHres": np.einsum("bsmd,bsnd->bsmn", wide(MX), wide(GRAD)).astype(F),
            "gradHout": np.einsum("bsn,bsnd->bsd", wide(POST), wide(GRAD)).astype(H),
            "gradHpost": np.einsum("bsd,bsnd->bsn", wide(HOUT), wide(GRAD)).astype(F),
        },
        40,
    ),
]


@each(CASES)
def test_selected(case: Direct) -> None:
    check(case)


@each(CASES)
def test_selected_refused(case: Direct) -> None:
    check_refusals(case)


def test_keys_in_pages() -> None:
    """The same keys in blocks of four that a table names, and sequences of queries packed behind each other."""
    blocks = np.zeros((8, 4, 1, WIDTH), H)
    table = np.array([[5, 2, 7], [0, 3, 6]], np.int32)
    for b in range(BATCH):
        for j in range(KEYS):
            blocks[table[b, j // 4], j % 4] = K[b, j]
    values = {
        **INDEX,
        "query": Q.reshape(-1, HEADS, WIDTH),
        "weights": W.reshape(-1, HEADS),
        "key": blocks,
        "blockTableOptional": table,
        "layoutQueryOptional": "TND",
        "layoutKeyOptional": "PA_BSND",
        "sparseMode": 3,
        "actualSeqLengthsQueryOptional": np.array([QUERIES, 2 * QUERIES], np.int32),
        "returnValues": False,
    }
    out = {"sparseIndicesOut": Out((6, 1, COUNT), "int32")}
    np.testing.assert_array_equal(call("aclnnLightningIndexer", **values, **out), CHOSEN.reshape(6, 1, COUNT))
    assert refused("aclnnLightningIndexer", **{**values, "blockTableOptional": table + 8}, **out) == 507015
    assert (
        refused(
            "aclnnLightningIndexer", **{**values, "actualSeqLengthsQueryOptional": np.array([3, 9], np.int32)}, **out
        )
        == 507015
    )
