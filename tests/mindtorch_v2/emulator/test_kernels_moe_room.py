"""Routing by a map where each expert has room for as many tokens, against stable sorts of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, refused
from .test_kernels_quantized_norm import F, make, wide

TOKENS, EXPERTS, ROOM, WIDTH = 5, 3, 2, 4
ROWS = EXPERTS * ROOM
MAP = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 1]], bool)
X, PROBS = make(TOKENS, WIDTH, dtype=F), np.abs(make(TOKENS, EXPERTS, dtype=F))
# Own tokens first: expert 0 has too many, expert 1 too few.
OF = np.argsort(~MAP.T, axis=1, kind="stable")[:, :ROOM].reshape(-1).astype(np.int32)
EXPERT = np.repeat(np.arange(EXPERTS), ROOM)
WEIGHT = PROBS[OF, EXPERT]
BACK_ROWS, GRAD_ROWS, GRAD_PROBS = make(ROWS, WIDTH, dtype=F), make(ROWS, WIDTH, dtype=F), make(ROWS, dtype=F)
GRAD = make(TOKENS, WIDTH, dtype=F)
ORDER = np.argsort(OF, kind="stable").astype(np.int32)


def added(rows: np.ndarray) -> np.ndarray:
    out = np.zeros((TOKENS, WIDTH))
    np.add.at(out, OF, rows)
    return out


def met(rows: np.ndarray) -> np.ndarray:
    out = np.zeros((TOKENS, EXPERTS))
    out[OF, EXPERT] = rows
    return out


OUT: dict[str, Any] = {"tokens": X, "routingMap": MAP, "probsOptional": PROBS, "numOutTokens": ROWS, "dropAndPad": True}
BACK: dict[str, Any] = {
    "permutedTokens": BACK_ROWS, "sortedIndices": OF, "routingMapOptional": MAP, "probsOptional": PROBS,
    "paddedMode": True, "restoreShapeOptional": [TOKENS, WIDTH],
}  # fmt: skip
CASES = [
    Direct("aclnnMoeTokenPermuteWithRoutingMap", OUT,
           {"permuteTokensOut": X[OF], "permuteProbsOutOptional": WEIGHT, "sortedIndicesOut": OF}),
    Direct("aclnnMoeTokenPermuteWithRoutingMapGrad",
           {"permutedTokenOutputGrad": GRAD_ROWS, "permutedProbsOutputGradOptional": GRAD_PROBS, "sortedIndices": OF,
            "routingMapOptional": MAP, "numExperts": EXPERTS, "tokensNum": TOKENS, "dropAndPad": True},
           {"tokensGradOut": added(wide(GRAD_ROWS)).astype(F), "probsGradOutOptional": met(GRAD_PROBS).astype(F)}),
    Direct("aclnnMoeTokenUnpermuteWithRoutingMap", BACK,
           {"unpermutedTokens": added(wide(BACK_ROWS) * wide(WEIGHT)[:, None]).astype(F), "outIndex": ORDER,
            "permuteTokenId": OF[ORDER], "permuteProbs": WEIGHT}),
    Direct("aclnnMoeTokenUnpermuteWithRoutingMapGrad",
           {"unpermutedTokensGrad": GRAD, "outIndex": ORDER, "permuteTokenId": OF[ORDER], "routingMapOptional": MAP,
            "probsOptional": PROBS, "permutedTokensOptional": BACK_ROWS, "dropAndPad": True,
            "restoreShapeOptional": [TOKENS, WIDTH]},
           {"permutedTokensGradOut": (wide(GRAD)[OF] * wide(WEIGHT)[:, None]).astype(F),
            "probsGradOutOptional": met((wide(GRAD)[OF] * wide(BACK_ROWS)).sum(1)).astype(F)}),
]  # fmt: skip

test_values, test_refusals = checked(CASES)


def test_room_for_no_more_than_there_are() -> None:
    for rows in (0, 4, 3 * (TOKENS + 1)):
        outs = {"permuteTokensOut": Out((rows, WIDTH)), "permuteProbsOutOptional": Out((rows,)),
                "sortedIndicesOut": Out((rows,), "int32")}  # fmt: skip
        assert refused("aclnnMoeTokenPermuteWithRoutingMap", **{**OUT, "numOutTokens": rows}, **outs) == 161002
    outs = {"unpermutedTokens": Out((TOKENS, WIDTH)), "permuteProbs": Out((ROWS,)),
            **{name: Out((ROWS,), "int32") for name in ("outIndex", "permuteTokenId")}}  # fmt: skip
    for wrong in (TOKENS, -1):
        index = OF.copy()
        index[2] = wrong
        assert refused("aclnnMoeTokenUnpermuteWithRoutingMap", **{**BACK, "sortedIndices": index}, **outs) == 507015
