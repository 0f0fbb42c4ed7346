"""Attention between blocks, quantized convolution and schedules, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import In, Out, assert_same, call, facts, refused
from .test_kernels_quantized_norm import F, H, make, wide

RNG = np.random.default_rng(71)
COUNTS, KEY_COUNTS, HEADS, KEY_HEADS, WIDTH, ROWS, COLUMNS = [5, 3], [6, 4], 4, 2, 8, 2, 3
Q, K, V = make(8, HEADS, WIDTH), make(10, KEY_HEADS, WIDTH), make(10, KEY_HEADS, WIDTH)
MASK = (RNG.random((2, HEADS, 3, 2)) < 0.6).astype(np.int8)
MASK[0, 0, 1] = 0  # a block of queries that looks at nothing
SCALE = 0.4
CALL: dict[str, Any] = {
    "query": Q,
    "key": K,
    "value": V,
    "blockSparseMaskOptional": MASK,
    "blockShapeOptional": [ROWS, COLUMNS],
    "actualSeqLengthsOptional": COUNTS,
    "actualSeqLengthsKvOptional": KEY_COUNTS,
    "qInputLayout": "TND",
    "kvInputLayout": "TND",
    "numKeyValueHeads": KEY_HEADS,
    "maskType": 0,
    "scaleValue": SCALE,
}
FORWARD = {
    **CALL,
    "softmaxLseFlag": 1,
    "innerPrecise": 0,
    "blockSize": 0,
    "preTokens": 2**31 - 1,
    "nextTokens": 2**31 - 1,
}


def pairs() -> Any:
    """Row of a query, head, rows of the keys it looks at."""
    first = key = 0
    for b, (n, m) in enumerate(zip(COUNTS, KEY_COUNTS)):
        for i in range(n):
            for h in range(HEADS):
                yield first + i, h, [key + j for j in range(m) if MASK[b, h, i // ROWS, j // COLUMNS]]
        first, key = first + n, key + m


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out, logs = np.zeros(q.shape), np.full((*q.shape[:2], 1), np.inf)
    for i, h, keys in pairs():
        if keys:
            e = np.exp(SCALE * k[keys, h // 2] @ q[i, h])
            out[i, h], logs[i, h] = e / e.sum() @ v[keys, h // 2], np.log(e.sum())
    return out, logs


OUT, LOGS = attention(wide(Q), wide(K), wide(V))
G = make(8, HEADS, WIDTH)


def gradients() -> dict[str, np.ndarray]:
    dq, dk, dv = np.zeros(Q.shape), np.zeros(K.shape), np.zeros(V.shape)
    for i, h, keys in pairs():
        if keys:
            e = np.exp(SCALE * wide(K)[keys, h // 2] @ wide(Q)[i, h] - LOGS[i, h])
            dv[keys, h // 2] += np.outer(e, wide(G)[i, h])
            ds = SCALE * e * (wide(V)[keys, h // 2] @ wide(G)[i, h] - wide(G)[i, h] @ OUT[i, h])
            dq[i, h] += ds @ wide(K)[keys, h // 2]
            dk[keys, h // 2] += np.outer(ds, wide(Q)[i, h])
    return {"dq": dq.astype(H), "dk": dk.astype(H), "dv": dv.astype(H)}


def choices() -> dict[str, np.ndarray]:
    indices, many = np.zeros((5, HEADS, 2), np.int64), np.zeros((5, HEADS), np.int64)
    for row, (b, block) in enumerate([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]):
        for h in range(HEADS):
            chosen = np.flatnonzero(MASK[b, h, block])
            many[row, h], indices[row, h, : len(chosen)] = len(chosen), chosen
    return {"selectIdx": indices, "selectNumIdx": many}


RAIN = {
    name: value
    for name, value in FORWARD.items()
    if name in {p["name"] for p in facts()["aclnnRainFusionAttention"]["params"]}
}
X = RNG.integers(-20, 20, (2, 4, 3, 5, 4)).astype(np.int8)
WEIGHT = RNG.integers(-20, 20, (6, 2, 2, 3, 2)).astype(np.int8)
FACTOR, BIAS = RNG.uniform(0.001, 0.01, 6).astype(F), RNG.uniform(-3, 3, 6).astype(F)


def convolved(x: np.ndarray, w: np.ndarray, outside: int = 0) -> np.ndarray:
    """Two groups, a stride of (1, 2, 1), one element of padding in the middle dimension."""
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (0, 0), (1, 1), (0, 0)), constant_values=outside)
    out = np.zeros((2, 6, 2, 3, 3))
    for o in range(6):
        part = x[:, o // 3 * 2 : o // 3 * 2 + 2]
        for z, y, c in np.ndindex(2, 3, 3):
            window = part[:, :, z : z + 2, 2 * y : 2 * y + 3, c : c + 2]
            out[:, o, z, y, c] = (window * w[o].astype(np.int64)).sum((1, 2, 3, 4))
    return out


CONV: dict[str, Any] = {
    "input": X,
    "weight": WEIGHT,
    "scale": FACTOR,
    "stride": [1, 2, 1],
    "padding": [0, 1, 0],
    "dilation": [1, 1, 1],
    "transposed": False,
    "groups": 2,
    "offsetx": 0,
}
SPREAD = FACTOR.astype(np.float64)[:, None, None, None]
SHIFT = BIAS.astype(np.float64)[:, None, None, None]
WHOLE = RNG.integers(-99, 99, 6).astype(np.int32)
CASES = [
    Direct("aclnnBlockSparseAttention", FORWARD, {"attentionOut": OUT.astype(H), "softmaxLseOptional": LOGS.astype(F)}),
    Direct(
        "aclnnBlockSparseAttentionV2",
        {**FORWARD, "actualSeqLengthsOptional": [5, 8], "actualSeqLengthsKvOptional": [6, 10]},
        {"attentionOut": OUT.astype(H), "softmaxLseOptional": LOGS.astype(F)},
    ),
    Direct(
        "aclnnRainFusionAttention",
        {**RAIN, **choices(), "blockShape": [ROWS, COLUMNS]},
        {"attentionOut": OUT.astype(H), "softmaxLseOptional": LOGS.astype(F)},
    ),
    Direct(
        "aclnnBlockSparseAttentionGrad",
        {
            **CALL,
            "dout": G,
            "attentionOut": OUT.astype(H),
            "softmaxLse": LOGS.astype(F),
            "preTokens": 0,
            "nextTokens": 0,
        },
        gradients(),
        8,
    ),
    Direct(
        "aclnnQuantConvolution",
        {**CONV, "bias": BIAS, "roundMode": "rint"},
        {"output": (convolved(X, WEIGHT) * SPREAD + SHIFT).astype(H)},
    ),
    Direct("aclnnQuantConvolution", {**CONV, "offsetx": 7}, {"output": (convolved(X, WEIGHT, 7) * SPREAD).astype(F)}),
    Direct(
        "aclnnQuantConvolution",
        {**CONV, "bias": WHOLE},
        {"output": ((convolved(X, WEIGHT) + WHOLE[:, None, None, None]) * SPREAD).astype(F)},
    ),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


@each(CASES)
def test_refusals(case: Direct) -> None:
    check_refusals(case)


def test_padded_sequences() -> None:
    q, k, v = make(2, HEADS, 5, WIDTH), make(2, KEY_HEADS, 6, WIDTH), make(2, KEY_HEADS, 6, WIDTH)
    values = {
        **FORWARD,
        "query": q,
        "key": k,
        "value": v,
        "qInputLayout": "BNSD",
        "kvInputLayout": "BNSD",
        "blockSparseMaskOptional": None,
        "actualSeqLengthsOptional": None,
        "softmaxLseFlag": 0,
    }
    want = np.zeros(q.shape)
    for b, h in np.ndindex(2, HEADS):
        m = KEY_COUNTS[b]
        e = np.exp(SCALE * wide(q)[b, h] @ wide(k)[b, h // 2, :m].T)
        want[b, h] = e / e.sum(-1, keepdims=True) @ wide(v)[b, h // 2, :m]
    assert_same(call("aclnnBlockSparseAttention", **values, attentionOut=Out(q.shape, "float16")), want.astype(H), 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"maskType": 1},
        {"numKeyValueHeads": 4},
        {"qInputLayout": "BSND"},
        {"actualSeqLengthsOptional": [5, 4]},
        {"actualSeqLengthsOptional": [8]},
        {"blockShapeOptional": [0, 3]},
        {"blockShapeOptional": [1, 3]},
        {"softmaxLseFlag": 2},
        {"attenMaskOptional": np.ones((5, 6), np.int8)},
    ],
)
def test_what_blocks_refuse(wrong: dict[str, Any]) -> None:
    outs = {"attentionOut": Out(Q.shape, "float16"), "softmaxLseOptional": Out((8, HEADS, 1))}
    assert refused("aclnnBlockSparseAttention", **{**FORWARD, **wrong}, **outs) == 161002


def test_a_block_that_does_not_exist() -> None:
    values = {**RAIN, **choices(), "blockShape": [ROWS, COLUMNS]}
    for wrong in ({"selectNumIdx": np.full((5, HEADS), 3)}, {"selectIdx": np.full((5, HEADS, 2), 9)}):
        assert (
            refused(
                "aclnnRainFusionAttention",
                **{**values, **wrong, "selectNumIdx": wrong.get("selectNumIdx", np.full((5, HEADS), 2))},
                attentionOut=Out(Q.shape, "float16"),
                softmaxLseOptional=Out((8, HEADS, 1)),
            )
            == 507015
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"transposed": True},
        {"offset": BIAS},
        {"roundMode": "up"},
        {"groups": 3},
        {"offsetx": 200},
        {"scale": FACTOR[:2]},
        {"bias": BIAS[:5]},
        {"outputPadding": [1, 0, 0]},
    ],
)
def test_what_a_quantized_convolution_refuses(wrong: dict[str, Any]) -> None:
    tensors: dict[str, Any] = {"input": In(X, "NCDHW"), "weight": In(WEIGHT, "NCDHW")}
    assert (
        refused("aclnnQuantConvolution", **{**CONV, **tensors, **wrong}, output=Out((2, 6, 2, 3, 3), format="NCDHW"))
        == 161002
    )


SCHEDULES = sorted(name for name in facts() if name.endswith("Metadata"))


@pytest.mark.parametrize("name", SCHEDULES)
def test_one_core_divides_nothing(name: str) -> None:
    block = facts()[name]["params"][-1]["name"]
    values: dict[str, Any] = {
        p["name"]: 1 for p in facts()[name]["params"] if p["type"] in ("int64_t", "bool", "double")
    }
    values |= {p["name"]: None for p in facts()[name]["params"] if p["type"] == "aclTensor*" and p["name"] != block}
    if name == "aclnnQuantBlockSparseAttnMetadata":
        values["sparseSeqLen"] = np.ones(4, np.int32)
    layouts = {p["name"]: "BSND" for p in facts()[name]["params"] if p["type"] == "char*"}
    assert not call(name, **values, **layouts, **{block: Out((1024,), "int32")}).any()
    assert refused(name, **values, **layouts, **{block: Out((1024,), "float32")}) == 161002
    assert refused(name, **values, **layouts, **{block: None}) == 161001
    for wrong in ("numHeadsQ", "numHeadsK", "numHeadsKv"):
        if wrong in values:
            assert refused(name, **{**values, wrong: 0}, **layouts, **{block: Out((1024,), "int32")}) == 161002
