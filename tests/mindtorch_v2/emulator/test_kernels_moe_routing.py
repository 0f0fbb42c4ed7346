"""Newer routing of mixtures of experts against NumPy: tokens by a map, by a range of places, with quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, call, refused
from .test_kernels_quantized_norm import F, dynamic, make, numeric, to_bytes, wide

RNG = np.random.default_rng(13)
I32 = np.int32
TOKENS = make(5, 4, dtype=F)
CHOICE = np.array([[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]], I32)
PROBS = RNG.uniform(0.1, 1, (5, 2)).astype(F)
ORDER = np.argsort(CHOICE.reshape(-1), kind="stable")
PLACES = np.argsort(ORDER, kind="stable").astype(I32)
ROWS = TOKENS[ORDER // 2]
ROW_PROBS = PROBS.reshape(-1)[ORDER]
SPAN = slice(3, 8)
GRAD_ROWS, GRAD_PROBS, GRAD_TOKENS = make(5, 4, dtype=F), make(5, dtype=F), make(5, 4, dtype=F)


def spread(rows: np.ndarray, places: np.ndarray = PLACES, span: slice = SPAN) -> np.ndarray:
    """Rows of a span, for every pair; zeros outside."""
    whole = np.zeros((10, *rows.shape[1:]))
    whole[span] = rows
    return whole[places]


MAP = np.zeros((5, 3), bool)
np.put_along_axis(MAP, CHOICE.astype(int), True, 1)
MAP_PROBS = RNG.uniform(0.1, 1, (5, 3)).astype(F)
EXPERT_OF, TOKEN_OF = np.nonzero(MAP.T)
MAP_PLACES = np.argsort(TOKEN_OF, kind="stable").astype(I32)  # the rows of token 0, of token 1, ...
MAP_ROWS = TOKENS[TOKEN_OF]
MAP_ROW_PROBS = MAP_PROBS[TOKEN_OF, EXPERT_OF]
GRAD_MAP_ROWS, GRAD_MAP_PROBS = make(10, 4, dtype=F), make(10, dtype=F)
BACK = np.zeros((5, 4))
np.add.at(BACK, TOKEN_OF, wide(GRAD_MAP_ROWS))
WEIGHTED = np.zeros((5, 4))
np.add.at(WEIGHTED, TOKEN_OF, wide(GRAD_MAP_ROWS) * wide(MAP_ROW_PROBS)[:, None])
SCATTERED = np.zeros((5, 3), F)
SCATTERED[TOKEN_OF, EXPERT_OF] = GRAD_MAP_PROBS
PROBS_GRAD = np.zeros((5, 3))
PROBS_GRAD[TOKEN_OF, EXPERT_OF] = (wide(GRAD_TOKENS)[TOKEN_OF] * wide(GRAD_MAP_ROWS)).sum(-1)

COLUMN_ROWS = (np.arange(2) * 5 + np.arange(5)[:, None]).astype(I32)  # pairs counted column by column
SORTED_NUMBERS = COLUMN_ROWS.reshape(-1)[ORDER]
INIT_PLACES = np.empty(10, I32)
INIT_PLACES[SORTED_NUMBERS] = np.arange(10)
SMOOTH = RNG.uniform(0.5, 2, (3, 4)).astype(F)
DYN, DYN_SCALE = dynamic(wide(ROWS) * wide(SMOOTH)[CHOICE.reshape(-1)[ORDER]])
COUNTS = np.bincount(CHOICE.reshape(-1), minlength=3)

ACTIVE = np.array([i for i in ORDER if CHOICE.reshape(-1)[i] >= 1])  # experts 1 and 2
ACTIVE_ROWS = np.concatenate([TOKENS[ACTIVE // 2], np.zeros((10 - len(ACTIVE), 4), F)])
ACTIVE_PLACES = np.full(10, -1, I32)
ACTIVE_PLACES[ACTIVE] = np.arange(len(ACTIVE))
ACTIVE_PAIRS = np.full(10, -1, I32)
ACTIVE_PAIRS[: len(ACTIVE)] = ACTIVE

LOGITS, ADD = make(4, 8, dtype=F), make(8, dtype=F)


def fused() -> tuple[np.ndarray, np.ndarray]:
    score = 1 / (1 + np.exp(-wide(LOGITS)))
    judged = score + wide(ADD)
    groups = np.sort(judged.reshape(4, 4, 2), -1)[..., -2:].sum(-1)
    best = np.argsort(-groups, -1, kind="stable")[:, :2]
    mask = np.stack([np.repeat(np.isin(np.arange(4), row), 2) for row in best])
    chosen = np.argsort(-np.where(mask, judged, -np.inf), -1, kind="stable")[:, :3]
    picked = np.take_along_axis(score, chosen, 1)
    return (picked / picked.sum(-1, keepdims=True) * 2.5).astype(F), chosen.astype(I32)


FUSED, FUSED_IDX = fused()
COPIES = np.array([1, 2, 3, 1, 2, 3, 1, 2], I32)
COPY_TABLE = np.arange(24, dtype=I32).reshape(8, 3) * 5
IN_TURN = COPY_TABLE[FUSED_IDX, np.arange(4)[:, None] % COPIES[FUSED_IDX]]
GATE_X, GATE_IDX, GATE_G = make(3, 6, dtype=F), np.array([[1, 4], [0, 5], [3, 2]], I32), make(3, 2, dtype=F)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gate(x: np.ndarray, kind: int, renorm: bool) -> np.ndarray:
    score = softmax(x) if kind == 0 else 1 / (1 + np.exp(-x))
    picked = np.take_along_axis(score, GATE_IDX.astype(int), 1)
    return (picked / (picked.sum(-1, keepdims=True) + 1e-3) if renorm or kind else picked) * 1.5


def norm(kind: int) -> np.ndarray:
    return (softmax(wide(GATE_X)) if kind == 0 else 1 / (1 + np.exp(-wide(GATE_X)))).astype(F)


QUANT2: dict[str, Any] = {
    "x": TOKENS, "expertIdx": CHOICE, "activeNum": 0, "expertCapacity": 0, "expertNum": 3, "dropPadMode": 0,
    "expertTokensCountOrCumsumFlag": 1, "expertTokensBeforeCapacityFlag": False,
}  # fmt: skip
THIRD: dict[str, Any] = {
    "x": TOKENS, "expertIdx": CHOICE, "activeNum": 10, "expertCapacity": 0, "expertNum": 3, "dropPadMode": 0,
    "expertTokensNumType": 1, "expertTokensNumFlag": True, "quantMode": -1,
}  # fmt: skip
FINAL: dict[str, Any] = {
    "expandedX": ROWS, "expandedRowIdx": PLACES, "x1Optional": TOKENS, "biasOptional": SMOOTH, "scalesOptional": PROBS,
    "expertIdxOptional": CHOICE, "dropPadMode": 0, "zeroExpertRange": [], "copyExpertRange": [],
    "constantExpertRange": [],
}  # fmt: skip
FINAL_OUT = wide(TOKENS) + ((wide(ROWS)[PLACES].reshape(5, 2, 4) + wide(SMOOTH)[CHOICE]) * wide(PROBS)[..., None]).sum(
    1
)
# Experts 3 and 4 give nothing, 5 gives the token itself.
OTHER_CHOICE = CHOICE.copy()
OTHER_CHOICE[0, 0], OTHER_CHOICE[2, 1], OTHER_CHOICE[4, 0] = 3, 5, 4
OTHER_TOKENS = TOKENS[::-1].copy()
OTHER_ROWS = wide(ROWS)[PLACES].reshape(5, 2, 4) + wide(SMOOTH)[np.minimum(OTHER_CHOICE, 2)]
OTHER_ROWS[(OTHER_CHOICE == 3) | (OTHER_CHOICE == 4)] = 0
OTHER_ROWS[2, 1] = wide(OTHER_TOKENS)[2]
OTHER_OUT = wide(TOKENS) + (OTHER_ROWS * wide(PROBS)[..., None]).sum(1)
CONSTANT: dict[str, Any] = {"a1Optional": np.array([2, 3], F), "a2Optional": np.array([4, 5], F),
                            "vOptional": make(2, 4, dtype=F), "xOptional": OTHER_TOKENS}  # fmt: skip
CONSTANT_ROWS = OTHER_ROWS.copy()
for e, pair in ((0, (0, 0)), (1, (4, 0))):
    CONSTANT_ROWS[pair] = (CONSTANT["a1Optional"][e] * wide(OTHER_TOKENS)[pair[0]]
                           + CONSTANT["a2Optional"][e] * wide(CONSTANT["vOptional"][e]))  # fmt: skip
CONSTANT_OUT = wide(TOKENS) + (CONSTANT_ROWS * wide(PROBS)[..., None]).sum(1)

CASES = [
    Direct("aclnnMoeTokenPermuteWithEp", {"tokens": TOKENS, "indices": CHOICE, "probsOptional": PROBS,
                                          "rangeOptional": [3, 8], "numOutTokens": 5, "paddedMode": False},
           {"permuteTokensOut": ROWS[SPAN], "sortedIndicesOut": PLACES, "permuteProbsOut": ROW_PROBS[SPAN]}),
    Direct("aclnnMoeTokenPermuteWithEpGrad",
           {"permutedTokensOutputGrad": GRAD_ROWS, "sortedIndices": PLACES, "numTopk": 2, "rangeOptional": [3, 8],
            "permutedProbsOutputGradOptional": GRAD_PROBS, "paddedMode": False},
           {"tokenGradOut": spread(GRAD_ROWS).reshape(5, 2, 4).sum(1).astype(F),
            "probsGradOut": spread(GRAD_PROBS).reshape(5, 2).astype(F)}),
    Direct("aclnnMoeTokenUnpermuteWithEp",
           {"permutedTokens": GRAD_ROWS, "sortedIndices": PLACES, "probsOptional": PROBS, "numTopk": 2,
            "rangeOptional": [3, 8], "paddedMode": False},
           {"out": (spread(GRAD_ROWS).reshape(5, 2, 4) * wide(PROBS)[..., None]).sum(1).astype(F)}),
    Direct("aclnnMoeTokenUnpermuteWithEpGrad",
           {"unpermutedTokensGrad": GRAD_TOKENS, "sortedIndices": PLACES, "permutedTokensOptional": GRAD_ROWS,
            "probsOptional": PROBS, "paddedMode": False, "rangeOptional": [3, 8], "topkNum": 2},
           {"permutedTokensGradOut": (wide(GRAD_TOKENS)[ORDER // 2] * wide(ROW_PROBS)[:, None])[SPAN].astype(F),
            "probsGradOut": (spread(GRAD_ROWS).reshape(5, 2, 4) * wide(GRAD_TOKENS)[:, None]).sum(-1).astype(F)}),
    Direct("aclnnMoeTokenPermuteWithRoutingMap",
           {"tokens": TOKENS, "routingMap": MAP, "probsOptional": MAP_PROBS, "numOutTokens": 10, "dropAndPad": False},
           {"permuteTokensOut": MAP_ROWS, "permuteProbsOutOptional": MAP_ROW_PROBS, "sortedIndicesOut": MAP_PLACES}),
    Direct("aclnnMoeTokenPermuteWithRoutingMapGrad",
           {"permutedTokenOutputGrad": GRAD_MAP_ROWS, "permutedProbsOutputGradOptional": GRAD_MAP_PROBS,
            "sortedIndices": MAP_PLACES, "routingMapOptional": MAP, "numExperts": 3, "tokensNum": 5,
            "dropAndPad": False}, {"tokensGradOut": BACK.astype(F), "probsGradOutOptional": SCATTERED}),
    Direct("aclnnMoeTokenUnpermuteWithRoutingMap",
           {"permutedTokens": GRAD_MAP_ROWS, "sortedIndices": MAP_PLACES, "routingMapOptional": MAP,
            "probsOptional": MAP_PROBS, "paddedMode": False, "restoreShapeOptional": [5, 4]},
           {"unpermutedTokens": WEIGHTED.astype(F), "outIndex": np.argsort(MAP_PLACES, kind="stable").astype(I32),
            "permuteTokenId": np.arange(10, dtype=I32), "permuteProbs": MAP_ROW_PROBS}),
    Direct("aclnnMoeTokenUnpermuteWithRoutingMapGrad",
           {"unpermutedTokensGrad": GRAD_TOKENS, "outIndex": np.argsort(MAP_PLACES, kind="stable").astype(I32),
            "permuteTokenId": np.arange(10, dtype=I32), "routingMapOptional": MAP, "probsOptional": MAP_PROBS,
            "permutedTokensOptional": GRAD_MAP_ROWS, "dropAndPad": False, "restoreShapeOptional": [5, 4]},
           {"permutedTokensGradOut": (wide(GRAD_TOKENS)[TOKEN_OF] * wide(MAP_ROW_PROBS)[:, None]).astype(F),
            "probsGradOutOptional": PROBS_GRAD.astype(F)}),
    Direct("aclnnMoeTokenPermuteV2", {"tokens": TOKENS, "indices": CHOICE, "numOutTokens": 0, "paddedMode": False,
                                      "quantMode": -1, "expandedScaleOut": np.zeros(10, F)},
           {"permuteTokensOut": ROWS, "sortedIndicesOut": PLACES, "expandedScaleOut": np.zeros(10, F)}),
    Direct("aclnnMoeInitRoutingQuant", {"x": TOKENS, "rowIdx": COLUMN_ROWS, "expertIdx": CHOICE, "activeNum": 5,
                                        "scale": 30.0, "offset": 2.0},
           {"expandedXOut": to_bytes(wide(TOKENS)[SORTED_NUMBERS % 5] * 30 + 2), "expandedRowIdxOut": INIT_PLACES,
            "expandedExpertIdxOut": np.sort(CHOICE.reshape(-1))}),
    Direct("aclnnMoeInitRoutingQuantV2", {**QUANT2, "scaleOptional": SMOOTH, "quantMode": 1},
           {"expandedXOut": DYN, "expandedRowIdxOut": PLACES,
            "expertTokensCountOrCumsumOutOptional": COUNTS.cumsum().astype(I32),
            "dynamicQuantScaleOutOptional": DYN_SCALE}),
    Direct("aclnnMoeInitRoutingQuantV2", {**QUANT2, "scaleOptional": np.array([25], F), "quantMode": 0,
                                          "offsetOptional": np.array([1], F)},
           {"expandedXOut": to_bytes(wide(ROWS) * 25 + 1), "expandedRowIdxOut": PLACES,
            "expertTokensCountOrCumsumOutOptional": COUNTS.cumsum().astype(I32)}),
    *(Direct("aclnnMoeInitRoutingV3", {**THIRD, "activeExpertRangeOptional": [1, 3], "rowIdxType": kind,
                                       "expandedScaleOut": np.zeros(10, F)},
             {"expandedXOut": ACTIVE_ROWS, "expandedRowIdxOut": rows,
              "expertTokensCountOrCumsumOut": COUNTS[1:].astype(np.int64), "expandedScaleOut": np.zeros(10, F)})
      for kind, rows in ((0, ACTIVE_PLACES), (1, ACTIVE_PAIRS))),
    Direct("aclnnMoeInitRoutingV3", {**THIRD, "quantMode": 1, "scaleOptional": SMOOTH, "rowIdxType": 0,
                                     "expertTokensNumType": 0},
           {"expandedXOut": DYN, "expandedRowIdxOut": PLACES, "expandedScaleOut": DYN_SCALE,
            "expertTokensCountOrCumsumOut": COUNTS.cumsum().astype(np.int64)}),
    Direct("aclnnMoeFinalizeRoutingV3", FINAL, {"out": FINAL_OUT.astype(F)}),
    Direct("aclnnMoeFinalizeRoutingV3", {k: v for k, v in FINAL.items() if "Range" not in k},
           {"out": FINAL_OUT.astype(F)}),
    Direct("aclnnMoeFinalizeRoutingV3", {**FINAL, "expertIdxOptional": OTHER_CHOICE, "zeroExpertRange": [3, 5],
                                         "copyExpertRange": [5, 6], "xOptional": OTHER_TOKENS},
           {"out": OTHER_OUT.astype(F)}),
    Direct("aclnnMoeFinalizeRoutingV3", {**FINAL, "expertIdxOptional": OTHER_CHOICE, "constantExpertRange": [3, 5],
                                         "copyExpertRange": [5, 6], **CONSTANT}, {"out": CONSTANT_OUT.astype(F)}),
    Direct("aclnnMoeFinalizeRoutingV4", {**FINAL, "k": 2}, {"out": FINAL_OUT.astype(F)}),
    Direct("aclnnMoeFusedTopk",
           {"x": LOGITS, "addNum": ADD, "mappingNum": np.ones(8, I32), "mappingTable": np.zeros((8, 1), I32),
            "groupNum": 4, "groupTopk": 2, "topN": 2, "topK": 3, "activateType": 0, "isNorm": True, "scale": 2.5,
            "enableExpertMapping": False}, {"y": FUSED, "indices": FUSED_IDX}),
    Direct("aclnnMoeFusedTopk",
           {"x": LOGITS, "addNum": ADD, "mappingNum": COPIES, "mappingTable": COPY_TABLE, "groupNum": 4, "groupTopk": 2,
            "topN": 2, "topK": 3, "activateType": 0, "isNorm": True, "scale": 2.5, "enableExpertMapping": True},
           {"y": FUSED, "indices": IN_TURN}),
    *(Direct("aclnnMoeGatingTopKBackward",
             {"xNorm": norm(kind), "gradY": GATE_G, "expertIdx": GATE_IDX, "renorm": int(renorm), "normType": kind,
              "routedScalingFactor": 1.5, "eps": 1e-3},
             {"out": numeric(lambda v, k=kind, r=renorm: gate(v, k, r), wide(GATE_X), wide(GATE_G)).astype(F)}, 50)
      for kind, renorm in ((0, False), (0, True), (1, False))),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_wrong_ranges_and_maps() -> None:
    part: dict[str, Any] = {"tokens": TOKENS, "indices": CHOICE, "numOutTokens": 5, "paddedMode": False}
    outs = {"permuteTokensOut": Out((5, 4)), "sortedIndicesOut": Out((10,), "int32"), "permuteProbsOut": Out((5,))}
    assert refused("aclnnMoeTokenPermuteWithEp", **part, rangeOptional=[8, 11], **outs) == 161002
    assert refused("aclnnMoeTokenPermuteWithEp", **{**part, "paddedMode": True}, **outs) == 161002
    lonely = MAP.copy()
    lonely[0] = False
    outs = {"permuteTokensOut": Out((10, 4)), "sortedIndicesOut": Out((10,), "int32")}
    mapped = {"tokens": TOKENS, "routingMap": lonely, "numOutTokens": 10, "dropAndPad": False}
    assert refused("aclnnMoeTokenPermuteWithRoutingMap", **mapped, **outs) == 507015
    for wrong in ({"zeroExpertRange": [1]}, {"zeroExpertRange": [4, 3]}, {"constantExpertRange": [3, 4], **CONSTANT}):
        assert refused("aclnnMoeFinalizeRoutingV3", **{**FINAL, **wrong}, out=Out((5, 4))) == 161002
    assert refused("aclnnMoeFinalizeRoutingV3", **{**FINAL, "copyExpertRange": [3, 4]}, out=Out((5, 4))) == 161001
    for name in CONSTANT:
        some = {**FINAL, "constantExpertRange": [3, 5], **CONSTANT, name: None}
        assert refused("aclnnMoeFinalizeRoutingV3", **some, out=Out((5, 4))) == 161001


def test_a_number_of_copies_that_the_table_does_not_have() -> None:
    given = {"x": LOGITS, "addNum": ADD, "mappingNum": np.full(8, 4, I32), "mappingTable": COPY_TABLE, "groupNum": 4,
             "groupTopk": 2, "topN": 2, "topK": 3, "activateType": 0, "isNorm": True, "scale": 2.5,
             "enableExpertMapping": True}  # fmt: skip
    outs = {"y": Out((4, 3)), "indices": Out((4, 3), "int32")}
    assert refused("aclnnMoeFusedTopk", **given, **outs) == 507015
    assert refused("aclnnMoeFusedTopk", **{**given, "mappingTable": COPY_TABLE[:7]}, **outs) == 161002


def test_a_bias_of_an_expert_that_is_not_there() -> None:
    wrong = CHOICE.copy()
    wrong[0, 0] = 3
    assert refused("aclnnMoeFinalizeRoutingV3", **{**FINAL, "expertIdxOptional": wrong}, out=Out((5, 4))) == 507015


def test_everything_is_the_range() -> None:
    got = call("aclnnMoeTokenPermuteWithEp", tokens=TOKENS, indices=CHOICE, numOutTokens=10, paddedMode=False,
               permuteTokensOut=Out((10, 4)), sortedIndicesOut=Out((10,), "int32"),
               permuteProbsOut=Out((10,)))  # fmt: skip
    np.testing.assert_array_equal(got[0], ROWS)
