"""Products with what follows them fused, losses over a spread vocabulary, and sampling, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from ._chips import on_chip
from ._direct import Direct, check, check_refusals, checked
from ._kernels import Out, call, refused
from .test_kernels_quantized_norm import F, H, make, numeric, to_bytes, wide

RNG = np.random.default_rng(15)
BF = ml_dtypes.bfloat16
A, B, C = (make(3, 4, dtype=F) for _ in range(3))
X1, X2, BIAS, X3 = make(3, 4, dtype=F), make(4, 5, dtype=F), make(5, dtype=F), make(3, 5, dtype=F)
PRODUCT = wide(X1) @ wide(X2) + wide(BIAS)
erf = np.vectorize(math.erf)


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


LINEAR_X, LINEAR_W, LINEAR_B = make(2, 3, 4, dtype=F), make(5, 4, dtype=F), make(5, dtype=F)
GATE_UP, DOWN = make(4, 6, dtype=F), make(3, 5, dtype=F)
BOTH = wide(X1) @ wide(GATE_UP)
HIGH, LOW = make(4, 5, dtype=BF), make(4, 5, dtype=BF)
LORA_Y, LORA_X, LORA_A, LORA_B = make(4, 9), make(4, 6), make(3, 2, 2, 6), make(3, 2, 5, 2)
ADAPTERS = np.array([2, -1, 0, 2], np.int32)


def lora() -> np.ndarray:
    out = wide(LORA_Y).copy()
    for i, a in enumerate(ADAPTERS):
        if a >= 0:
            out[i, 3:8] += 0.5 * (wide(LORA_B)[a, 1] @ (wide(LORA_A)[a, 1] @ wide(LORA_X)[i]))
    return out.astype(H)


QX, QW = make(4, 6), RNG.integers(-20, 20, (5, 6)).astype(np.int8)
QSCALE, QSMOOTH = RNG.uniform(0.01, 0.03, 5).astype(F), RNG.uniform(0.5, 1.5, 6).astype(H)
ROWS = wide(QX) * wide(QSMOOTH)
STEP = np.abs(ROWS).max(-1) / 127
QOUT = to_bytes(ROWS / STEP[:, None]).astype(float) @ QW.T.astype(float) * STEP[:, None] * wide(QSCALE)
GW, GSCALE = RNG.integers(-20, 20, (2, 6, 5)).astype(np.int8), RNG.uniform(0.01, 0.03, (2, 5)).astype(F)
FIXED = to_bytes(wide(QX) / 0.05).astype(float)
GOUT = np.concatenate([FIXED[:1] @ GW[0], FIXED[1:] @ GW[1]]) * 0.05 * wide(GSCALE)[[0, 1, 1, 1]]

VX, VW = make(5, 4), make(6, 4)
TARGET = np.array([10, 3, 15, 12, 99], np.int32)  # this device has 10 to 15
LOGITS = wide(VX) @ wide(VW).T
TOP = LOGITS.max(-1)
SUM = np.exp(LOGITS - TOP[:, None]).sum(-1)
MASK = (TARGET < 10) | (TARGET > 15)
LOCAL = np.where(MASK, 0, TARGET - 10)
PICKED = np.where(MASK, 0, LOGITS[np.arange(5), LOCAL])
SOFT = np.exp(LOGITS - TOP[:, None]) / SUM[:, None]
GRAD = make(5, dtype=F)
PACKED_MASK = np.packbits(MASK, bitorder="little")


def loss(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    logits = x @ w.T
    soft = np.log(np.exp(logits).sum(-1))
    return soft - np.where(MASK, 0, logits[np.arange(5), LOCAL])


TOPK = {"logits": make(3, 8), "topK": np.array([3, 8, 5], np.int32), "topP": np.array([0.9, 0.6, 0.5], H)}
NOISE = RNG.exponential(1, (3, 8)).astype(F)


def sampled(noise: Any) -> tuple[np.ndarray, np.ndarray]:
    kept, picks = np.full((3, 8), -np.inf), []
    for row in range(3):
        x = wide(TOPK["logits"][row])
        order = np.argsort(-x, kind="stable")[: TOPK["topK"][row]]
        p = np.exp(x[order]) / np.exp(x[order]).sum()
        before = np.cumsum(p) - p
        stay = order[(before < float(TOPK["topP"][row])) | (np.arange(len(order)) == 0)]
        kept[row, stay] = x[stay]
        chance = np.exp(kept[row]) / np.exp(kept[row]).sum() / (1 if noise is None else wide(noise[row]) + 1e-8)
        picks.append(chance.argmax())
    return np.array(picks, np.int64), kept


SAMPLE: dict[str, Any] = {**TOPK, "eps": 1e-8, "topKGuess": 32}
LORA: dict[str, Any] = {"y": LORA_Y, "x": LORA_X, "weightB": LORA_B, "indices": ADAPTERS, "weightAOptional": LORA_A,
                        "layerIdx": 1, "scale": 0.5, "yOffset": 3, "ySliceSize": 5}  # fmt: skip
CASES = [
    Direct("aclnnAddMatMatElements", {"a": A, "b": B, "c": C, "alpha": 2.0, "beta": 0.5},
           {"cOut": (0.5 * wide(C) + 2 * wide(A) * wide(B)).astype(F)}),
    Direct("aclnnAddMatMatElementsPlus", {"a": A, "b": B, "c": C, "alpha": np.array([2], F),
           "beta": np.array([0.5], F)},
           {"cOut": (0.5 * wide(C) + 2 * wide(A) * wide(B)).astype(F)}),
    *(Direct("aclnnFusedMatmul", {"x1": X1, "x2": X2, "bias": BIAS, "fusedOpType": kind, "cubeMathType": 0,
                                  **({"x3": X3} if kind in ("add", "mul") else {})}, {"y": want.astype(F)})
      for kind, want in (("relu", np.maximum(PRODUCT, 0)), ("add", PRODUCT + X3), ("mul", PRODUCT * X3),
                         ("gelu_erf", gelu(PRODUCT)))),
    Direct("aclnnFusedMatmulGelu", {"x": LINEAR_X, "weight": LINEAR_W, "bias": LINEAR_B, "approximate": 0},
           {"y": gelu(wide(LINEAR_X) @ wide(LINEAR_W).T + wide(LINEAR_B)).astype(F)}),
    Direct("aclnnSwigluGatedMlp", {"x": X1, "gateUpWeight": GATE_UP, "downWeight": DOWN, "cubeMathType": 0},
           {"y": ((BOTH[:, :3] / (1 + np.exp(-BOTH[:, :3])) * BOTH[:, 3:]) @ wide(DOWN)).astype(F)}),
    Direct("aclnnMatmulEmuSplitWeight", {"x": make(3, 4, dtype=BF), "wHigh": HIGH, "wLow": LOW, "wLowScale": 0.25,
                                         "yDtype": 0}, {"y": np.zeros((3, 5), F)}),
    Direct("aclnnAddLora", LORA, {"out": lora()}),
    Direct("aclnnQuantMatmulDequant", {"x": QX, "weight": QW, "weightScale": QSCALE, "smoothScaleOptional": QSMOOTH,
                                       "xQuantMode": "pertoken", "transposeWeight": True}, {"out": QOUT.astype(H)}),
    Direct("aclnnQuantGroupedMatmulDequant",
           {"x": QX, "weight": GW, "weightScale": GSCALE, "groupList": np.array([1, 4]), "xQuantMode": "pertensor",
            "xScaleOptional": np.array([0.05], F), "transposeWeight": False}, {"out": GOUT.astype(H)}),
    Direct("aclnnFusedLinearOnlineMaxSum",
           {"input": VX, "weight": VW, "target": TARGET, "vocabStartIndex": 10, "vocabEndIndex": 15},
           {"logitsMaxLocalOut": TOP.astype(F), "sumExpLogitsLocalOut": SUM.astype(F),
            "predictedLogitsLocalOut": PICKED.astype(F), "targetMaskOut": PACKED_MASK,
            "maskedTargetOut": LOCAL.astype(np.int32), "vocabParallelLogitsOutOptional": LOGITS.astype(H)}),
    Direct("aclnnFusedCrossEntropyLossWithMaxSum",
           {"logitsMax": TOP.astype(F), "sumExpLogits": SUM.astype(F), "predictedLogits": PICKED.astype(F),
            "labelSmoothing": 0.0, "vocabParallelLogitsOptional": LOGITS.astype(F)},
           {"vocabParallelLogitsOptional": LOGITS.astype(F), "lossOut": (np.log(SUM) - PICKED).astype(F),
            "softMaxOutOptional": SOFT.astype(F)}, 10),
    *(Direct("aclnnFusedLinearCrossEntropyLossGrad",
             {"grad": GRAD, "input": VX, "weight": VW, "targetMask": PACKED_MASK,
             "maskedTarget": LOCAL.astype(np.int32),
              "labelSmoothing": 0.0, **extra},
             {"inputGradOut": numeric(lambda x: loss(x, wide(VW)), wide(VX), wide(GRAD)).astype(H),
              "weightGradOut": numeric(lambda w: loss(wide(VX), w), wide(VW), wide(GRAD)).astype(H)})
      for extra in ({"softmaxOptional": SOFT.astype(F)},
                    {"logitsMaxOptional": TOP.astype(F), "sumExpLogitsOptional": SUM.astype(F)})),
    Direct("aclnnTopKTopPSample", {**SAMPLE, "q": NOISE, "isNeedLogits": True},
           {"logitsSelectIdx": sampled(NOISE)[0], "logitsTopKPSelect": sampled(NOISE)[1].astype(F).reshape(-1)}),
    Direct("aclnnTopKTopPSample", {**SAMPLE, "isNeedLogits": True},
           {"logitsSelectIdx": sampled(None)[0], "logitsTopKPSelect": sampled(None)[1].astype(F).reshape(-1)}),
]  # fmt: skip
SPLIT = next(c for c in CASES if c.name == "aclnnMatmulEmuSplitWeight")
SPLIT.want["y"] = (wide(SPLIT.given["x"]) @ (wide(HIGH) + 0.25 * wide(LOW))).astype(F)


ELSEWHERE = ("aclnnQuantMatmulDequant", "aclnnQuantGroupedMatmulDequant")  # documented for one chip only
HERE = [case for case in CASES if case.name not in ELSEWHERE]


test_values, test_refusals = checked(HERE)


def check_elsewhere() -> None:
    for case in CASES:
        if case.name in ELSEWHERE:
            check(case)
            check_refusals(case)
    small = {"x": QX, "weight": QW, "weightScale": QSCALE, "transposeWeight": True, "out": Out((4, 5), "float16")}
    assert refused("aclnnQuantMatmulDequant", **small, xQuantMode="pertensor") == 161002
    assert refused("aclnnQuantMatmulDequant", **small, xQuantMode="other") == 161002


def test_on_310p() -> None:
    on_chip("310P", check_elsewhere)


def test_more_refusals() -> None:
    fused: dict[str, Any] = {"x1": X1, "x2": X2, "cubeMathType": 0, "y": Out((3, 5))}
    assert refused("aclnnFusedMatmul", **fused, fusedOpType="other") == 161002
    assert refused("aclnnFusedMatmul", **fused, fusedOpType="add") == 161002  # x3 is missing
    assert refused("aclnnAddLora", **{**LORA, "layerIdx": 2}, out=Out((4, 9), "float16")) == 161002
    wrong = {**LORA, "indices": np.array([3, 0, 0, 0], np.int32)}
    assert refused("aclnnAddLora", **wrong, out=Out((4, 9), "float16")) == 507015


def test_an_adapter_without_its_first_matrix() -> None:
    got = call(
        "aclnnAddLora", **{**LORA, "x": LORA_X[:, :2].copy(), "weightAOptional": None}, out=Out((4, 9), "float16")
    )
    want = wide(LORA_Y).copy()
    for i, a in enumerate(ADAPTERS):
        if a >= 0:
            want[i, 3:8] += 0.5 * wide(LORA_B)[a, 1] @ wide(LORA_X)[i, :2]
    np.testing.assert_allclose(wide(got), want, rtol=2e-3, atol=2e-3)
