"""Mixtures of experts: gating, tokens in the order of their experts, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, checked
from ._kernels import Out, call, refused

RNG = np.random.default_rng(5)
F = np.float32
ROWS, EXPERTS, K, H = 5, 8, 2, 4
LOGITS = RNG.standard_normal((ROWS, EXPERTS)).astype(F)
TOKENS = RNG.standard_normal((ROWS, H)).astype(F)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


BEST = np.argsort(-LOGITS, 1, kind="stable")[:, :K].astype(np.int32)
SHARES = np.take_along_axis(softmax(LOGITS), BEST, 1).astype(F)
AMONG = softmax(np.take_along_axis(LOGITS, BEST, 1)).astype(F)
COLUMNWISE = (np.arange(K)[None] * ROWS + np.arange(ROWS)[:, None]).astype(np.int32)
ORDER = np.argsort(BEST.ravel(), kind="stable")  # pairs, token by token
PLACES = np.argsort(ORDER, kind="stable").astype(np.int32)
SORTED = BEST.ravel()[ORDER]
COUNTS = np.bincount(BEST.ravel(), minlength=EXPERTS).astype(np.int32)
EXPANDED = TOKENS[ORDER // K]
WEIGHTS = RNG.uniform(0, 1, (ROWS, K)).astype(F)

# The first version numbers pairs column by column.
BY_COLUMN = np.empty(ROWS * K, np.int32)
for place, pair in enumerate(ORDER):
    BY_COLUMN[COLUMNWISE.ravel()[pair]] = place

GROUP_SCORE = softmax(LOGITS).reshape(ROWS, 4, 2)
CHOSEN = np.argsort(-GROUP_SCORE.max(-1), 1, kind="stable")[:, :2]
MASKED = np.where((np.arange(4)[None] == CHOSEN[:, :1]) | (np.arange(4)[None] == CHOSEN[:, 1:]), 1, np.nan)
JUDGED = np.where(np.isnan(MASKED)[..., None], -np.inf, GROUP_SCORE).reshape(ROWS, EXPERTS)
GATE = np.argsort(-JUDGED, 1, kind="stable")[:, :K].astype(np.int32)

ROUTING = {"activeNumOptional": 0, "expertCapacityOptional": 0, "expertNumOptional": EXPERTS, "dropPadModeOptional": 0,
           "expertTokensCountOrCumsumFlagOptional": 0, "expertTokensBeforeCapacityFlagOptional": False}  # fmt: skip
CASES = [
    Direct("aclnnMoeGatingTopKSoftmax", {"x": LOGITS, "k": K},
           {"yOut": SHARES, "expertIdxOut": BEST, "rowIdxOut": COLUMNWISE}),
    Direct("aclnnMoeGatingTopKSoftmax", {"x": LOGITS, "k": K, "finishedOptional": np.array([1, 0, 0, 0, 0], bool)},
           {"yOut": SHARES, "expertIdxOut": np.where(np.arange(ROWS)[:, None] == 0, EXPERTS, BEST).astype(np.int32),
            "rowIdxOut": COLUMNWISE}),
    Direct("aclnnMoeGatingTopKSoftmaxV2", {"x": LOGITS, "k": K, "renorm": 0, "outputSoftmaxResultFlag": True},
           {"yOut": SHARES, "expertIdxOut": BEST, "softmaxResultOutOptional": softmax(LOGITS).astype(F)}),
    Direct("aclnnMoeGatingTopKSoftmaxV2", {"x": LOGITS, "k": K, "renorm": 1, "outputSoftmaxResultFlag": False},
           {"yOut": AMONG, "expertIdxOut": BEST}),
    Direct("aclnnMoeGatingTopK", {"x": LOGITS, "k": K, "kGroup": 2, "groupCount": 4, "groupSelectMode": 0, "renorm": 0,
                                  "normType": 0, "outFlag": True, "routedScalingFactor": 2.0, "eps": 0.0},
           {"yOut": (2 * np.take_along_axis(softmax(LOGITS), GATE, 1)).astype(F), "expertIdxOut": GATE,
            "outOut": softmax(LOGITS).astype(F)}),
    Direct("aclnnMoeInitRouting", {"x": TOKENS, "rowIdx": COLUMNWISE, "expertIdx": BEST, "activeNum": ROWS},
           {"expandedXOut": EXPANDED, "expandedRowIdxOut": BY_COLUMN, "expandedExpertIdxOut": SORTED}),
    Direct("aclnnMoeInitRoutingV2", {"x": TOKENS, "expertIdx": BEST, **ROUTING},
           {"expandedXOut": EXPANDED, "expandedRowIdxOut": PLACES}),
    Direct("aclnnMoeInitRoutingV2",
           {"x": TOKENS, "expertIdx": BEST, **ROUTING, "expertTokensCountOrCumsumFlagOptional": 1},
           {"expandedXOut": EXPANDED, "expandedRowIdxOut": PLACES,
            "expertTokensCountOrCumsumOutOptional": COUNTS.cumsum().astype(np.int32)}),
    Direct("aclnnMoeInitRoutingV2Grad", {"gradExpandedX": EXPANDED, "expandedRowIdx": PLACES, "topK": K,
                                         "dropPadMode": 0, "activeNum": 0}, {"out": K * TOKENS}),
    Direct("aclnnMoeComputeExpertTokens", {"sortedExperts": SORTED, "numExperts": EXPERTS},
           {"out": COUNTS.cumsum().astype(np.int32)}),
    Direct("aclnnMoeFinalizeRouting", {"expandedX": EXPANDED, "x1": TOKENS, "bias": np.zeros((EXPERTS, H), F),
                                       "scales": WEIGHTS, "expandedRowIdx": BY_COLUMN, "expandedExpertIdx": BEST},
           {"out": TOKENS + TOKENS * WEIGHTS.sum(1, keepdims=True)}, free_shapes=("out",)),
    Direct("aclnnMoeFinalizeRoutingV2", {"expandedX": EXPANDED, "expandedRowIdx": PLACES, "scalesOptional": WEIGHTS,
                                         "dropPadMode": 0}, {"out": TOKENS * WEIGHTS.sum(1, keepdims=True)}),
    Direct("aclnnMoeTokenPermute", {"tokens": TOKENS, "indices": BEST, "numOutTokens": 0, "paddedMode": False},
           {"permuteTokensOut": EXPANDED, "sortedIndicesOut": PLACES}),
    Direct("aclnnMoeTokenPermuteGrad", {"permutedOutputGrad": EXPANDED, "sortedIndices": PLACES, "numTopk": K,
                                        "paddedMode": False}, {"out": K * TOKENS}),
    Direct("aclnnMoeTokenUnpermute", {"permutedTokens": EXPANDED, "sortedIndices": PLACES, "probsOptional": WEIGHTS,
                                      "paddedMode": False}, {"out": TOKENS * WEIGHTS.sum(1, keepdims=True)}),
    Direct("aclnnMoeTokenUnpermuteGrad",
           {"permuteTokensOptional": EXPANDED, "unpermutedTokensGrad": 2 * TOKENS, "sortedIndices": PLACES,
            "probsOptional": WEIGHTS, "paddedMode": False},
           {"permutedTokensGradOut": (2 * TOKENS[:, None] * WEIGHTS[..., None]).reshape(-1, H)[ORDER],
            "probsGradOut": np.broadcast_to((2 * TOKENS * TOKENS).sum(1, keepdims=True), (ROWS, K)).copy()}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_experts_with_little_room() -> None:
    """Capacity 1: the first pair of each expert stays, others are dropped, unused places are zero."""
    values = {"x": TOKENS, "expertIdx": BEST, **ROUTING, "dropPadModeOptional": 1, "expertCapacityOptional": 1,
              "expertTokensBeforeCapacityFlagOptional": True}  # fmt: skip
    rows, places, counts = call("aclnnMoeInitRoutingV2", **values, expandedXOut=Out((EXPERTS, 1, H)),
                                expandedRowIdxOut=Out((ROWS * K,), "int32"),
                                expertTokensBeforeCapacityOutOptional=Out((EXPERTS,), "int32"))  # fmt: skip
    assert counts.tolist() == COUNTS.tolist()
    for expert in range(EXPERTS):
        pairs = np.flatnonzero(BEST.ravel() == expert)
        want = TOKENS[pairs[0] // K] if len(pairs) else np.zeros(H, F)
        assert rows[expert, 0].tolist() == want.tolist()
        assert places[pairs].tolist() == [expert] * min(1, len(pairs)) + [-1] * max(0, len(pairs) - 1)


@pytest.mark.parametrize("wrong", [{"k": 9}, {"kGroup": 5}, {"groupCount": 3}, {"normType": 2}, {"renorm": 2}])
def test_wrong_gates(wrong: dict[str, Any]) -> None:
    case = CASES[4]
    values = {**case.given, **wrong}
    outs = {"yOut": Out((ROWS, values["k"])), "expertIdxOut": Out((ROWS, values["k"]), "int32")}
    assert refused(case.name, **values, **outs, outOut=Out((ROWS, EXPERTS))) == 161002
