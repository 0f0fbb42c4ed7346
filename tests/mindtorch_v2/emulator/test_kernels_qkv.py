"""Queries, keys and values of one product into pages, bytes by packed scales, later indexers; against NumPy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import Out, call, library_folder, refused
from .test_kernels_quantized_norm import F, H, make, rms, to_bytes, wide

RNG = np.random.default_rng(151)
I32 = np.int32
TOKENS, SIZE, HEADS = 6, 8, (3, 2, 1)
QKV = make(TOKENS, sum(HEADS) * SIZE)
GAMMAS = {"qGamma": make(SIZE), "kGamma": make(SIZE)}
COS, SIN = make(TOKENS, SIZE), make(TOKENS, SIZE)
SLOTS = np.array([7, 0, -1, 3, 9, 4])
K_CACHE, V_CACHE = make(3, 4, 4, 4), RNG.integers(-9, 9, (3, 1, 4, 8)).astype(np.int8)
SCALE, OFFSET = RNG.uniform(0.01, 0.05, (1, SIZE)).astype(F), RNG.uniform(-3, 3, (1, SIZE)).astype(F)


def turned(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    y = rms(x.reshape(TOKENS, -1, SIZE), wide(gamma))
    first, second = np.split(y, 2, -1)
    other = np.concatenate([-second, first], -1)
    return (y * wide(COS)[:, None] + other * wide(SIN)[:, None]).reshape(TOKENS, -1)


def paged(cache: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = cache.copy()
    for row, slot in zip(rows, SLOTS):
        if slot >= 0:
            out[slot // 4, :, slot % 4] = row.reshape(cache.shape[1], cache.shape[3])
    return out


Q, K, V = np.split(wide(QKV), np.cumsum(HEADS)[:2] * SIZE, 1)
TQ, TK = turned(Q, GAMMAS["qGamma"]), turned(K, GAMMAS["kGamma"])
CALL: dict[str, Any] = {
    "qkv": QKV,
    **GAMMAS,
    "cos": COS,
    "sin": SIN,
    "index": SLOTS,
    "qOut": make(TOKENS, HEADS[0] * SIZE),
    "kCache": K_CACHE,
    "vCache": V_CACHE,
    "vScaleOptional": SCALE,
    "vOffsetOptional": OFFSET,
    "qkvSize": [2, 3, sum(HEADS), SIZE],
    "headNums": list(HEADS),
    "epsilon": 1e-5,
    "cacheModeOptional": "PA_NZ",
}
WANT = {
    "qOut": TQ.astype(H),
    "kCache": paged(K_CACHE, TK.astype(H)),
    "vCache": paged(V_CACHE, to_bytes(V / wide(SCALE)[0] + wide(OFFSET)[0])),
    "qOutBeforeQuant": TQ.astype(H),
    "kOutBeforeQuant": TK.astype(H),
    "vOutBeforeQuant": V.astype(H),
}

X1, X2, BIAS = make(5, 4), make(3, 4), make(3)


def parameters(scale: list[float], offset: list[float] | None) -> np.ndarray:
    """From the library itself: what a program does before the call."""
    library = ctypes.CDLL(str(library_folder() / "libopapi.so"))
    found, size = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_uint64()
    offsets = None if offset is None else (ctypes.c_float * len(offset))(*offset)
    code = library.aclnnTransQuantParam(
        (ctypes.c_float * len(scale))(*scale),
        ctypes.c_uint64(len(scale)),
        offsets,
        ctypes.c_uint64(len(offset or [])),
        ctypes.byref(found),
        ctypes.byref(size),
    )
    assert code == 0
    return np.array(found[: size.value], np.uint64)


def packed(scale: list[float], offset: list[float]) -> np.ndarray:
    bits = np.array(scale, F).view(np.uint32).astype(np.uint64) & np.uint64(0xFFFFE000)
    return np.asarray(
        bits | (np.array(offset).astype(np.int64) & 0x1FF).astype(np.uint64) << np.uint64(37) | np.uint64(1 << 46)
    )


EXACT = [8.0, 0.5, 16.0]  # nineteen bits hold them
PRODUCT = wide(X1) @ wide(X2).T + wide(BIAS)
BYTES = to_bytes(PRODUCT * np.array(EXACT) + np.array([3, -7, 0]))

# Keys that stand for two each, sequences of 3 and 2 queries, 4 and 3 keys.
IQ, IK, IW = make(5, 3, SIZE), make(7, 1, SIZE), make(5, 3, dtype=F)
ENDS, KEY_ENDS, RESIDUAL, MOVED = (
    np.array([0, 3, 5], I32),
    np.array([0, 4, 7], I32),
    np.array([1, 0], I32),
    np.array([100, 0], I32),
)


def indexed() -> dict[str, np.ndarray]:
    indices, values = np.full((5, 1, 3), -1, I32), np.full((5, 1, 3), -np.inf)
    for b in range(2):
        n, keys = ENDS[b + 1] - ENDS[b], wide(IK)[KEY_ENDS[b] : KEY_ENDS[b + 1], 0]
        for i in range(n):
            row = ENDS[b] + i
            seen = (2 * len(keys) + RESIDUAL[b] - n + i + 1) // 2
            score = wide(IW)[row] @ np.maximum(wide(IQ)[row] @ keys[:seen].T, 0)
            best = np.argsort(-score, kind="stable")[:3]
            indices[row, 0, : len(best)], values[row, 0, : len(best)] = best + MOVED[b], score[best]
    return {"sparseIndices": indices, "sparseValues": values.astype(F)}


INDEX: dict[str, Any] = {
    "q": IQ,
    "k": IK,
    "w": IW,
    "cuSeqlensQOptional": ENDS,
    "cuSeqlensKOptional": KEY_ENDS,
    "cmpResidualKOptional": RESIDUAL,
    "outputIdxOffsetOptional": MOVED,
    "topk": 3,
    "maxSeqlenQ": 3,
    "layoutQ": "TND",
    "layoutK": "TND",
    "maskMode": 3,
    "cmpRatio": 2,
    "returnValue": 1,
}
CASES = [
    Direct("aclnnQkvRmsNormRopeCache", CALL, WANT),
    Direct(
        "aclnnBatchMatmulQuant",
        {
            "x1": X1,
            "x2": X2,
            "quantParam": packed(EXACT, [3, -7, 0]),
            "bias": BIAS,
            "transposeX1": False,
            "transposeX2": True,
        },
        {"out": BYTES},
    ),
    Direct("aclnnLightningIndexerV2", INDEX, indexed()),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


@each(CASES)
def test_refusals(case: Direct) -> None:
    check_refusals(case)


def test_scales_packed_on_the_host() -> None:
    assert parameters(EXACT, [3.0, -7.0, 0.0]).tolist() == packed(EXACT, [3, -7, 0]).tolist()
    assert parameters([0.1], None).tolist() == packed([0.1], [0]).tolist()
    assert parameters([0.5], [1.0, 2.0]).tolist() == packed([0.5, 0.5], [1, 2]).tolist()
    got = call(
        "aclnnBatchMatmulQuant",
        x1=X1,
        x2=X2,
        quantParam=parameters([8.0], None),
        transposeX1=False,
        transposeX2=True,
        out=Out((5, 3), "int8"),
    )
    np.testing.assert_array_equal(got, to_bytes(8 * (PRODUCT - wide(BIAS))))


WRONG: list[tuple[str, int, dict[str, Any]]] = [
    ("aclnnQkvRmsNormRopeCache", 161002, {"headNums": [3, 2]}),
    ("aclnnQkvRmsNormRopeCache", 161002, {"headNums": [2, 2, 1]}),
    ("aclnnQkvRmsNormRopeCache", 161002, {"cacheModeOptional": "Norm"}),
    ("aclnnQkvRmsNormRopeCache", 161002, {"vScaleOptional": None}),
    ("aclnnQkvRmsNormRopeCache", 161002, {"kScaleOptional": np.ones((2, SIZE), F)}),
    ("aclnnQkvRmsNormRopeCache", 507015, {"index": SLOTS + 4}),
    ("aclnnBatchMatmulQuant", 161002, {"transposeX2": False}),
    ("aclnnBatchMatmulQuant", 161002, {"quantParam": packed(EXACT, [0, 0, 0])[:2]}),
    ("aclnnLightningIndexerV2", 161002, {"maskMode": 1}),
    ("aclnnLightningIndexerV2", 161002, {"cmpRatio": 0}),
    ("aclnnLightningIndexerV2", 161002, {"layoutK": "BSND"}),
    ("aclnnLightningIndexerV2", 507015, {"cmpResidualKOptional": RESIDUAL[:1]}),
]


@pytest.mark.parametrize(("name", "code", "wrong"), WRONG)
def test_what_is_refused(name: str, code: int, wrong: dict[str, Any]) -> None:
    case = next(c for c in CASES if c.name == name)
    outs = {n: Out(a.shape, a.dtype.name) for n, a in case.want.items() if n not in case.given}
    assert refused(name, **{**case.given, **wrong}, **outs) == code
