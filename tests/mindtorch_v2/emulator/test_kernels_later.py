"""Functions of newer chips and later versions of others, one family each, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each, with_formats
from ._kernels import Out, call, refused
from .test_kernels_quantized_norm import F, H, make, numeric, wide

RNG = np.random.default_rng(131)
I32, I64 = np.int32, np.int64

# -- boxes ----------------------------------------------------------------------------------------------
CORNERS = np.sort(RNG.uniform(0, 8, (2, 2, 5)), 1).reshape(2, 2, 5)
BOXES = np.concatenate([CORNERS[:, 0], CORNERS[:, 1] + 1]).astype(F)
OTHERS = (BOXES + RNG.uniform(-0.4, 0.4, (4, 5))).astype(F)


def complete(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.broadcast_arrays(a.astype(float), b.astype(float))
    size, other = a[2:] - a[:2], b[2:] - b[:2]
    inner = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0).prod(0)
    iou = inner / (size.prod(0) + other.prod(0) - inner)
    hull = np.maximum(a[2:], b[2:]) - np.minimum(a[:2], b[:2])
    apart = (a[:2] + a[2:] - b[:2] - b[2:]) / 2
    angle = np.arctan(other[0] / other[1]) - np.arctan(size[0] / size[1])
    v = 4 / np.pi**2 * angle**2
    return (iou - (apart**2).sum(0) / (hull**2).sum(0) - v * v / (1 - iou + v)).astype(F), angle.astype(F)


ALIGNED = [a[None] for a in complete(BOXES, OTHERS)]
CROSSED = complete(BOXES[:, :, None], OTHERS[:, None, :3])
CENTRED = np.concatenate([(BOXES[:2] + BOXES[2:]) / 2, BOXES[2:] - BOXES[:2]]).astype(F)
CENTRED2 = np.concatenate([(OTHERS[:2] + OTHERS[2:]) / 2, OTHERS[2:] - OTHERS[:2]]).astype(F)

# -- a deformed convolution -----------------------------------------------------------------------------
DX, DW, DB = make(1, 4, 4, 5, dtype=F), make(2, 2, 2, 2, dtype=F), np.zeros(2, F)
OFFSET = RNG.uniform(-0.45, 0.45, (1, 3 * 2 * 4, 3, 4)).astype(F)  # within a cell: differences do not cross elements
SIZES: dict[str, Any] = {
    "kernelSize": [2, 2],
    "stride": [1, 1, 1, 1],
    "padding": [0, 0, 0, 0],
    "dilation": [1, 1, 1, 1],
    "groups": 2,
    "deformableGroups": 2,
    "modulated": True,
}


def deformed(x: np.ndarray, w: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The result and what each kernel element saw; around the image is nothing."""
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)))
    told = offset.reshape(3, 2, 2, 2, 3, 4)  # part, group, kernel row and column, place
    seen = np.zeros((4, 3, 2, 4, 2))  # channel, row, kernel row, column, kernel column
    for c, i, a, j, b in np.ndindex(seen.shape):
        dx, dy, counts = told[:, c // 2, a, b, i, j]
        y, z = i + a + dy + 2, j + b + dx + 2
        top, left = int(np.floor(y)), int(np.floor(z))
        near = padded[0, c, top : top + 2, left : left + 2]
        seen[c, i, a, j, b] = counts * (np.array([top + 1 - y, y - top]) @ near @ np.array([left + 1 - z, z - left]))
    out = np.zeros((1, 2, 3, 4))
    for m in range(2):
        out[0, m] = np.einsum("ciajb,cab->ij", seen[2 * m : 2 * m + 2], w[m])
    return out, seen.reshape(1, 4, 6, 8)


D_OUT, SEEN = deformed(wide(DX), wide(DW), wide(OFFSET))
DG = make(1, 2, 3, 4, dtype=F)
D_WANT = {
    "gradInput": numeric(lambda x: deformed(x, wide(DW), wide(OFFSET))[0], wide(DX), wide(DG)).astype(F),
    "gradWeight": numeric(lambda w: deformed(wide(DX), w, wide(OFFSET))[0], wide(DW), wide(DG)).astype(F),
    "gradOffset": numeric(lambda o: deformed(wide(DX), wide(DW), o)[0], wide(OFFSET), wide(DG)).astype(F),
    "gradBias": wide(DG).sum((0, 2, 3)).astype(F),
}

# -- the next tokens ------------------------------------------------------------------------------------
LOGITS = make(3, 8, dtype=F)
TOP_K, TOP_P, LEAST = np.array([4, 8, 2], I32), np.array([0.9, 0.8, 1.0], F), np.array([0.0, 0.4, 0.1], F)
DRAWN = RNG.uniform(0.1, 2, (3, 8)).astype(F)


def sampled(chances: bool) -> dict[str, np.ndarray]:
    best, kept = np.zeros(3, I64), np.full((3, 8), -np.inf)
    order, masked = np.zeros((3, 8), I64), np.full((3, 8), -np.inf)
    shown = PROBABLE if chances else LOGITS
    for i in range(3):
        order[i] = np.argsort(-wide(shown)[i], kind="stable")
        p = wide(shown)[i] if chances else np.exp(wide(LOGITS)[i])
        among = order[i, : TOP_K[i]]
        share = p[among] / p[among].sum()
        among = among[np.cumsum(share) - share < TOP_P[i]]
        among = among[p[among] >= LEAST[i] * p[among].max()]
        kept[i, among], masked[i, : len(among)] = shown[i, among], shown[i, among]
        best[i] = among[np.argmax(p[among] / p[among].sum() / (wide(DRAWN)[i, among] + 1e-8))]
    return {
        "logitsSelectIdx": best,
        "logitsTopKPSelect": kept.astype(F),
        "logitsIdx": order,
        "logitsSortMasked": masked.astype(F),
    }


PROBABLE = (np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)).astype(F)
SAMPLE: dict[str, Any] = {
    "topK": TOP_K,
    "topP": TOP_P,
    "q": DRAWN,
    "minPs": LEAST,
    "eps": 1e-8,
    "isNeedLogits": True,
    "topKGuess": 32,
    "ksMax": 8,
    "isNeedSampleResult": True,
}
GUESSES, ACCEPTED = np.array([[7, 8], [9, 10]]), np.array([1, 0])
CHOSEN = np.array([[1, 2, 3], [4, 5, 6]])
POSITIONS, TABLE = np.array([3, 4, 5, 8, 9, 10]), np.array([[5, 2, 9, 0], [1, 7, 4, 3]])
MOVED = POSITIONS + np.repeat(ACCEPTED + 1, 3)
STEP: dict[str, Any] = {
    "inputTokens": np.zeros((2, 3), I64),
    "sampledTokenIds": CHOSEN,
    "inputPositions": POSITIONS,
    "seqLens": POSITIONS + 1,
    "slotMapping": np.zeros(6, I64),
    "blockTables": TABLE,
    "specToken": GUESSES,
    "acceptedNum": ACCEPTED,
    "numSeqs": 2,
    "numQueries": 2,
    "blockSize": 4,
}
STEPPED = {
    "inputTokens": np.array([[2, 7, 8], [4, 9, 10]]),
    "inputPositions": MOVED,
    "seqLens": MOVED + 1,
    "slotMapping": TABLE[np.repeat([0, 1], 3), MOVED // 4] * 4 + MOVED % 4,
}

# -- a part of a vocabulary -----------------------------------------------------------------------------
PART, TARGET = make(5, 6, dtype=F), np.array([12, 3, 10, 15, 16], I32)
TOP = (np.abs(PART).max(-1) + 1).astype(F)
HIDDEN = (TARGET < 10) | (TARGET >= 16)
WHERE = np.where(HIDDEN, 0, TARGET - 10)
SHIFTED = wide(PART) - wide(TOP)[:, None]
VOCABULARY = {
    "predictedLogitsOut": np.where(HIDDEN, 0, np.take_along_axis(SHIFTED, WHERE[:, None], 1)[:, 0]).astype(F),
    "sumExpLogitsOut": np.exp(SHIFTED).sum(-1).astype(F),
    "expLogitsOut": np.exp(SHIFTED).astype(F),
    "targetOffsetOut": WHERE.astype(I32),
    "targetMaskOut": HIDDEN,
}

# -- moments of 8 bits ----------------------------------------------------------------------------------
MAP_M, MAP_V = np.linspace(-1, 1, 256).astype(F), np.linspace(0, 1, 256).astype(F)
VAR, GRAD = make(10, dtype=F), make(10, dtype=F)
CODE_M, CODE_V = RNG.integers(0, 256, 10).astype(np.uint8), RNG.integers(0, 256, 10).astype(np.uint8)
MOST_M, MOST_V = RNG.uniform(0.5, 1, 3).astype(F), RNG.uniform(0.5, 1, 3).astype(F)
ADAM: dict[str, Any] = {
    "varRef": VAR,
    "grad": GRAD,
    "mRef": CODE_M,
    "vRef": CODE_V,
    "qmapM": MAP_M,
    "qmapV": MAP_V,
    "absmaxMRef": MOST_M,
    "absmaxVRef": MOST_V,
    "step": np.array([3]),
    "lr": 0.1,
    "beta1": 0.9,
    "beta2": 0.99,
    "weightDecay": 0.01,
    "eps": 1e-8,
    "gnormScale": 0.5,
    "quantModeOptional": "BLOCKWISE",
    "blockSize": 4,
}


def mapped() -> dict[str, np.ndarray]:
    block = np.arange(10) // 4
    g = wide(GRAD) * 0.5
    m = 0.9 * wide(MAP_M)[CODE_M] * wide(MOST_M)[block] + 0.1 * g
    v = 0.99 * wide(MAP_V)[CODE_V] * wide(MOST_V)[block] + 0.01 * g**2
    tops = [np.array([np.abs(x[block == b]).max() for b in range(3)]) for x in (m, v)]
    codes = [
        np.abs(x[:, None] / top[block][:, None] - wide(table)).argmin(-1).astype(np.uint8)
        for x, top, table in ((m, tops[0], MAP_M), (v, tops[1], MAP_V))
    ]
    var = wide(VAR) * (1 - 0.1 * 0.01) - 0.1 * (m / (1 - 0.9**3)) / (np.sqrt(v / (1 - 0.99**3)) + 1e-8)
    return {
        "varRef": var.astype(F),
        "mRef": codes[0],
        "vRef": codes[1],
        "absmaxMRef": tops[0].astype(F),
        "absmaxVRef": tops[1].astype(F),
    }


# -- copies of experts ----------------------------------------------------------------------------------
COPIES = np.array([[2, 10, 11, 0], [1, 20, 0, 0], [3, 30, 31, 32]], I32)
IDS = np.array([[0, 2], [1, 2], [2, 0], [0, 1]], I32)
SHARES = RNG.uniform(0.1, 1, IDS.shape).astype(F)
LIMITS, SEEN_TOKENS = np.array([0.3, 0.6], F), np.array([True, True, False, True])

# -- convolutions of sequences --------------------------------------------------------------------------
CX, CW, CB, STATES = make(6, 4), make(3, 4), make(4), make(5, 3, 4)
STARTS, PLACES, MODES = np.array([0, 4, 6], I32), np.array([3, 0], I32), np.array([1, 0], I32)


def convolved(silu: bool, added: bool) -> dict[str, np.ndarray]:
    y, states = np.zeros(CX.shape), wide(STATES).copy()
    for b, place in enumerate(PLACES):
        x = wide(CX)[STARTS[b] : STARTS[b + 1]]
        line = np.concatenate([states[place] * MODES[b], x])
        rows = np.stack([(line[3 + t - 2 : 3 + t + 1] * wide(CW)).sum(0) + wide(CB) for t in range(len(x))])
        rows = rows / (1 + np.exp(-rows)) if silu else rows
        y[STARTS[b] : STARTS[b + 1]] = rows + x if added else rows
        states[place] = line[-3:]
    return {"y": y.astype(H), "states": states.astype(H)}


PLAIN, GATED = convolved(False, True), convolved(True, False)
FN: dict[str, Any] = {
    "x": CX,
    "weight": CW,
    "convStatesRef": STATES,
    "biasOptional": CB,
    "queryStartLocOptional": STARTS,
    "cacheIndicesOptional": PLACES,
    "initialStateModeOptional": MODES,
    "activation": "silu",
    "nullBlockId": -1,
    "blockSizeToAlign": 0,
}
FUSED: dict[str, Any] = {
    "x": CX,
    "weight": CW,
    "convStates": STATES,
    "bias": CB,
    "queryStartLoc": STARTS,
    "cacheIndices": PLACES,
    "initialStateMode": MODES,
    "activationMode": 0,
    "padSlotId": -1,
    "runMode": 0,
    "maxQueryLen": 4,
    "residualConnection": 1,
    "blockSize": 0,
    "convMode": 0,
}

BRICK = make(1, 2, 2, 2, 4)
CASES = [
    Direct(
        "aclnnCIoU",
        {"bBoxes": BOXES, "gtBoxes": OTHERS, "trans": False, "isCross": False, "mode": "iou"},
        {"overlap": ALIGNED[0], "atanSub": ALIGNED[1]},
    ),
    Direct(
        "aclnnCIoU",
        {"bBoxes": CENTRED, "gtBoxes": CENTRED2[:, :3], "trans": True, "isCross": True, "mode": "iou"},
        {"overlap": CROSSED[0], "atanSub": CROSSED[1]},
        40,
    ),
    Direct(
        "aclnnDeformableConv2dBackward",
        {"input": DX, "gradOutput": DG, "offsetOut": SEEN.astype(F), "weight": DW, "offset": OFFSET, **SIZES},
        D_WANT,
        400,
    ),
    Direct("aclnnTopKTopPSampleV2", {**SAMPLE, "logits": LOGITS, "inputIsLogits": True}, sampled(False)),
    Direct("aclnnTopKTopPSampleV2", {**SAMPLE, "logits": PROBABLE, "inputIsLogits": False}, sampled(True)),
    Direct("aclnnAdvanceStepV2", STEP, STEPPED),
    Direct(
        "aclnnCrossEntropySumExpAndIndexLogit",
        {
            "vocabParallelLogits": PART,
            "target": TARGET,
            "globalLogitsMax": TOP,
            "vocabStartIndex": 10,
            "vocabEndIndex": 16,
        },
        VOCABULARY,
    ),
    Direct("aclnnApplyAdamWQuant", ADAM, mapped()),
    Direct(
        "aclnnMoeUpdateExpert",
        {"expertIds": IDS, "eplbTable": COPIES, "localRankId": 5, "worldSize": 8, "balanceMode": 0},
        {
            "balancedExpertIds": np.array([[11, 31], [20, 31], [31, 11], [11, 20]], I32),
            "balancedActiveMask": np.ones((4, 2), bool),
        },
    ),
    Direct(
        "aclnnMoeUpdateExpert",
        {
            "expertIds": IDS,
            "eplbTable": COPIES,
            "expertScalesOptional": SHARES,
            "pruningThresholdOptional": LIMITS,
            "activeMaskOptional": SEEN_TOKENS,
            "localRankId": -1,
            "worldSize": -1,
            "balanceMode": 1,
        },
        {
            "balancedExpertIds": np.array([[10, 30], [20, 31], [32, 10], [11, 20]], I32),
            "balancedActiveMask": (SHARES >= LIMITS * SHARES.astype(float).sum(-1, keepdims=True))
            & SEEN_TOKENS[:, None],
        },
    ),
    Direct("aclnnCausalConv1dFn", FN, {"y": GATED["y"], "convStatesRef": GATED["states"]}),
    Direct("aclnnFusedCausalConv1d", FUSED, {"y": PLAIN["y"], "convStates": PLAIN["states"]}),
    Direct("aclnnInplaceFusedCausalConv1d", FUSED, {"x": PLAIN["y"], "convStates": PLAIN["states"]}),
    Direct("aclnnReluV3", {"x": BRICK}, {"yOut": np.maximum(BRICK, 0), "maskOut": (BRICK > 0).astype(np.uint8)}),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


@each(CASES)
def test_refusals(case: Direct) -> None:
    check_refusals(case)


def test_one_token_of_each_sequence() -> None:
    """Decoding: a batch of single tokens moves the states on by one."""
    x = make(2, 1, 4)
    given = {
        "x": x,
        "weight": CW,
        "convStatesRef": STATES,
        "cacheIndicesOptional": PLACES,
        "activation": "none",
        "nullBlockId": 3,
        "maxQueryLen": 1,
    }
    states, y = call("aclnnCausalConv1dUpdate", **given, y=Out(x.shape, "float16"))
    line = np.concatenate([wide(STATES[0]), wide(x[1])])
    np.testing.assert_allclose(y[1, 0].astype(float), (line[1:] * wide(CW)).sum(0), rtol=2e-3, atol=2e-3)
    assert (states[0] == line[1:].astype(H)).all() and (states[1:] == STATES[1:]).all()
    assert (y[0] == x[0]).all()  # nobody's state: left as it is


WRONG: list[tuple[str, int, dict[str, Any]]] = [
    ("aclnnCIoU", 161002, {"mode": "giou"}),
    ("aclnnCIoU", 161002, {"gtBoxes": OTHERS[:, :4]}),
    ("aclnnDeformableConv2dBackward", 161002, {"groups": 3}),
    ("aclnnDeformableConv2dBackward", 161002, {"modulated": False}),
    ("aclnnTopKTopPSampleV2", 161002, {"minPs": LEAST[:2]}),
    ("aclnnAdvanceStepV2", 161002, {"numQueries": 1}),
    ("aclnnAdvanceStepV2", 507015, {"acceptedNum": np.array([3, 0])}),
    ("aclnnAdvanceStepV2", 507015, {"inputPositions": POSITIONS + 20}),
    ("aclnnCrossEntropySumExpAndIndexLogit", 161002, {"vocabEndIndex": 17}),
    ("aclnnApplyAdamWQuant", 161002, {"blockSize": 0}),
    ("aclnnApplyAdamWQuant", 161002, {"quantModeOptional": "TENSOR"}),
    ("aclnnMoeUpdateExpert", 161002, {"localRankId": 8}),
    ("aclnnMoeUpdateExpert", 507015, {"expertIds": IDS + I32(1)}),
    ("aclnnCausalConv1dFn", 161002, {"activation": "relu"}),
    ("aclnnCausalConv1dFn", 161002, {"numComputedTokensOptional": PLACES}),
    ("aclnnCausalConv1dFn", 507015, {"queryStartLocOptional": np.array([0, 4, 7], I32)}),
    ("aclnnCausalConv1dFn", 507015, {"cacheIndicesOptional": np.array([3, 5], I32)}),
    ("aclnnFusedCausalConv1d", 161002, {"convMode": 1}),
]


@pytest.mark.parametrize(("name", "code", "wrong"), WRONG)
def test_what_is_refused(name: str, code: int, wrong: dict[str, Any]) -> None:
    case = next(c for c in CASES if c.name == name)
    outs = {n: Out(a.shape, a.dtype.name) for n, a in case.want.items() if n not in case.given}
    assert refused(name, **with_formats(name, {**case.given, **wrong, **outs})) == code
