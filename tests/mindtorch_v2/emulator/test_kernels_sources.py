"""Attention to keys of one source or two, and what flows back, against dense NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import Out, assert_same, call, refused
from .test_kernels_quantized_norm import F, H, make, wide

I32 = np.int32
SCALE, HEADS, WIDTH = 0.35, 4, 8
QUERIES, KEYS, SHORT = [3, 2], [7, 5], [3, 2]  # of two sequences; SHORT: compressed keys, two in each
ENDS, KEY_ENDS, SHORT_ENDS = (np.array([0, *np.cumsum(n)], I32) for n in (QUERIES, KEYS, SHORT))
SINKS = make(HEADS, dtype=F)


def attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray, sinks: np.ndarray | None
) -> tuple[np.ndarray, ...]:
    """(heads, n, d) to (heads, m, d) where `seen`; result, log of the sums, weights."""
    logits = np.where(seen, SCALE * q @ k.swapaxes(-1, -2), -np.inf)
    total = np.exp(logits).sum(-1) + (0 if sinks is None else np.exp(sinks.astype(float))[:, None])
    p = np.exp(logits) / total[..., None]
    return p @ v, np.log(total), p


def mask(n: int, m: int, mode: int, left: int = -1, right: int = -1) -> np.ndarray:
    own, j = (m - n + np.arange(n))[:, None], np.arange(m)[None]
    if mode == 0:
        return np.ones((n, m), bool)
    if mode == 3:
        return np.asarray(j <= own)
    return np.asarray(((j >= own - left) | (left < 0)) & ((j <= own + right) | (right < 0)))


Q, K, V = make(5, HEADS, WIDTH), make(12, 2, WIDTH), make(12, 2, 6)


def packed(mode: int, left: int = -1, right: int = -1, sinks: np.ndarray | None = None) -> dict[str, np.ndarray]:
    out, logs = np.zeros((5, HEADS, 6)), np.zeros((5, HEADS, 1))
    for b in range(2):
        rows, keys = slice(ENDS[b], ENDS[b + 1]), slice(KEY_ENDS[b], KEY_ENDS[b + 1])
        k, v = (np.repeat(wide(x)[keys], 2, 1).swapaxes(0, 1) for x in (K, V))
        got, log, _ = attend(wide(Q)[rows].swapaxes(0, 1), k, v, mask(QUERIES[b], KEYS[b], mode, left, right), sinks)
        out[rows], logs[rows] = got.swapaxes(0, 1), log.T[..., None]
    return {"attnOut": out.astype(H), "softmaxLseOptional": logs.astype(F)}


FLASH: dict[str, Any] = {
    "q": Q,
    "k": K,
    "v": V,
    "cuSeqlensQOptional": ENDS,
    "cuSeqlensKvOptional": KEY_ENDS,
    "softmaxScale": SCALE,
    "winLeft": -1,
    "winRight": -1,
    "maxSeqlenQ": 3,
    "maxSeqlenKV": 7,
    "layoutQ": "TND",
    "layoutKv": "TND",
    "layoutOut": "TND",
    "returnSoftmaxLse": 1,
}
INNER = {"attnOut" if n == "attnOut" else "softmaxLse": a for n, a in packed(0).items()}

# A window of the whole keys, and chosen ones of the compressed.
MQ, ORI, CMP = make(5, HEADS, WIDTH), make(12, 1, WIDTH), make(5, 1, WIDTH)
CHOSEN = np.array([[[1, 0]], [[0, -1]], [[2, 1]], [[1, 0]], [[0, 1]]], I32)
RESIDUAL = np.array([1, 1], I32)


def two_sources() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    out, logs = np.zeros(MQ.shape), np.zeros((5, HEADS, 1))
    dq, dori, dcmp, dsinks = np.zeros(MQ.shape), np.zeros(ORI.shape), np.zeros(CMP.shape), np.zeros(HEADS)
    weights = np.zeros(CHOSEN.shape)
    for b in range(2):
        rows, keys, short = (slice(e[b], e[b + 1]) for e in (ENDS, KEY_ENDS, SHORT_ENDS))
        all_keys = np.concatenate([wide(ORI)[keys, 0], wide(CMP)[short, 0]])
        own = 2 * SHORT[b] + RESIDUAL[b] - QUERIES[b] + np.arange(QUERIES[b])
        far = np.zeros((QUERIES[b], SHORT[b]), bool)
        for i, picks in enumerate(CHOSEN[rows, 0]):
            far[i, [j for j in picks if 0 <= j < (own[i] + 1) // 2]] = True
        seen = np.concatenate([mask(QUERIES[b], KEYS[b], 4, 2, 0), far], 1)
        q, g = wide(MQ)[rows].swapaxes(0, 1), wide(MG)[rows].swapaxes(0, 1)
        got, log, p = attend(q, all_keys[None], all_keys[None], seen, SINKS)
        out[rows], logs[rows] = got.swapaxes(0, 1), log.T[..., None]
        along = (g * wide(got.astype(H))).sum(-1)  # the result as it was saved
        ds = SCALE * p * (g @ all_keys.T - along[..., None])
        dq[rows] = (ds @ all_keys).swapaxes(0, 1)
        dk = (ds.swapaxes(-1, -2) @ q + p.swapaxes(-1, -2) @ g).sum(0)
        dori[keys, 0], dcmp[short, 0] = dk[: KEYS[b]], dk[KEYS[b] :]
        dsinks -= (np.exp(wide(SINKS)[:, None] - log) * along).sum(-1)
        for i, picks in enumerate(CHOSEN[rows, 0]):
            weights[ENDS[b] + i, 0] = [p[:, i, KEYS[b] + j].mean() if j >= 0 and far[i, j] else 0 for j in picks]
    forward: dict[str, Any] = {"attnOutOut": out.astype(H), "softmaxLseOutOptional": logs.astype(F)}
    backward: dict[str, Any] = {
        "dQueryOut": dq.astype(H),
        "dOriKvOutOptional": dori.astype(H),
        "dCmpKvOutOptional": dcmp.astype(H),
        "dSinksOutOptional": dsinks.astype(F),
        "cmpSoftmaxL1NormOptional": weights.astype(F),
    }
    return forward, backward


MG = make(*MQ.shape)
FORWARD, BACKWARD = two_sources()
MLA: dict[str, Any] = {
    "oriKvOptional": ORI,
    "cmpKvOptional": CMP,
    "cmpSparseIndicesOptional": CHOSEN,
    "cuSeqlensQOptional": ENDS,
    "cuSeqlensOriKvOptional": KEY_ENDS,
    "cuSeqlensCmpKvOptional": SHORT_ENDS,
    "cmpResidualKvOptional": RESIDUAL,
    "sinksOptional": SINKS,
    "cmpRatio": 2,
    "oriMaskMode": 4,
    "cmpMaskMode": 3,
    "oriWinLeft": 2,
    "oriWinRight": 0,
    "layoutQOptional": "TND",
    "layoutKvOptional": "TND",
}
SPARSE = {**MLA, "q": MQ, "softmaxScale": SCALE, "topkValueMode": 0, "returnSoftmaxLse": True}
GRAD = {
    **MLA,
    "query": MQ,
    "dOut": MG,
    "out": FORWARD["attnOutOut"],
    "lse": FORWARD["softmaxLseOutOptional"],
    "scaleValue": SCALE,
}
CASES = [
    Direct("aclnnFlashAttn", {**FLASH, "maskMode": 3}, packed(3)),
    Direct(
        "aclnnFlashAttn",
        {**FLASH, "maskMode": 4, "winLeft": 2, "winRight": 1, "sinksOptional": SINKS},
        packed(4, 2, 1, SINKS),
    ),
    Direct("aclnnInnerFlashAttn", {**FLASH, "maskMode": 0}, INNER),
    Direct("aclnnSparseFlashMla", SPARSE, FORWARD),
    Direct("aclnnSparseFlashMlaGrad", GRAD, BACKWARD, 8),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


@each(CASES)
def test_refusals(case: Direct) -> None:
    check_refusals(case)


@pytest.mark.parametrize("layout", ["BSND", "BNSD"])
@pytest.mark.parametrize("pages", ["", "PA_BBND", "PA_BNBD"])
def test_layouts(layout: str, pages: str) -> None:
    q, k, v = make(2, HEADS, 3, WIDTH), make(2, 2, 8, WIDTH), make(2, 2, 8, WIDTH)
    used = np.array([5, 8], I32)
    want, logs = np.zeros(q.shape), np.zeros((2, HEADS, 3, 1))
    for b in range(2):
        keys, values = (np.repeat(wide(x)[b, :, : used[b]], 2, 0) for x in (k, v))
        want[b], log, _ = attend(wide(q)[b], keys, values, mask(3, used[b], 3), None)
        logs[b] = log[..., None]
    table = np.array([[3, 1], [0, 2]], I32)

    def laid(x: np.ndarray) -> np.ndarray:
        if not pages:
            return x if layout == "BNSD" else x.swapaxes(1, 2).copy()
        blocks = np.zeros((4, 2, 4, WIDTH), H)  # (block, head, row, size)
        for b, i in np.ndindex(2, 2):
            blocks[table[b, i]] = x[b, :, 4 * i : 4 * i + 4]
        return blocks if pages == "PA_BNBD" else blocks.swapaxes(1, 2).copy()

    turned = (lambda x: x) if layout == "BNSD" else (lambda x: x.swapaxes(1, 2).copy())
    given = {
        **FLASH,
        "q": turned(q),
        "k": laid(k),
        "v": laid(v),
        "cuSeqlensQOptional": None,
        "cuSeqlensKvOptional": None,
        "sequsedKvOptional": used,
        "layoutQ": layout,
        "layoutOut": layout,
        "layoutKv": pages or layout,
        "maskMode": 3,
        "blockTableOptional": table if pages else None,
    }
    outs = {"attnOut": Out(turned(q).shape, "float16"), "softmaxLseOptional": Out((2, HEADS, 3, 1))}
    got = call("aclnnFlashAttn", **given, **outs)
    assert_same(got[0], turned(want.astype(H)), 4)
    assert_same(got[1], logs.astype(F), 8)
    other = {"layoutOut": "BSND" if layout == "BNSD" else "BNSD"}
    outs["attnOut"] = Out(turned(q).swapaxes(1, 2).shape, "float16")
    assert_same(call("aclnnFlashAttn", **{**given, **other}, **outs)[0], turned(want.astype(H)).swapaxes(1, 2), 4)
    assert refused("aclnnFlashAttn", **given, **outs) == 161002
    if pages:
        wrong = {"blockTableOptional": table + I32(2)}
        assert refused("aclnnFlashAttn", **{**given, **other, **wrong}, **outs) == 507015


WRONG: list[tuple[str, int, dict[str, Any]]] = [
    ("aclnnFlashAttn", 161002, {"maskMode": 2}),
    ("aclnnFlashAttn", 161002, {"layoutQ": "SBH"}),
    ("aclnnFlashAttn", 161002, {"cuSeqlensQOptional": None}),
    ("aclnnFlashAttn", 161002, {"layoutOut": "NTD"}),
    ("aclnnFlashAttn", 161002, {"sinksOptional": SINKS[:2]}),
    ("aclnnFlashAttn", 507015, {"cuSeqlensKvOptional": np.array([0, 7, 13], I32)}),
    ("aclnnSparseFlashMla", 161002, {"cmpRatio": 0}),
    ("aclnnSparseFlashMla", 161002, {"cmpMaskMode": 4}),
    ("aclnnSparseFlashMla", 161002, {"oriKvOptional": None, "cmpKvOptional": None}),
    ("aclnnSparseFlashMla", 161002, {"topkValueMode": 5}),
    ("aclnnSparseFlashMla", 507015, {"cmpResidualKvOptional": np.array([1], I32)}),
    ("aclnnSparseFlashMlaGrad", 161002, {"lse": np.zeros((5, HEADS - 1, 1), F)}),
]


@pytest.mark.parametrize(("name", "code", "wrong"), WRONG)
def test_what_is_refused(name: str, code: int, wrong: dict[str, Any]) -> None:
    case = next(c for c in CASES if c.name == name)
    outs = {n: Out(a.shape, a.dtype.name) for n, a in case.want.items()}
    assert refused(name, **{**case.given, **wrong}, **outs) == code
