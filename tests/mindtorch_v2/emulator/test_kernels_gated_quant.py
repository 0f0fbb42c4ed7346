"""Gated rows with bounds, groups and weights, and those that become small integers, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, refused
from .test_kernels_quantized_norm import F, dynamic, make, numeric, to_bytes, wide

RNG = np.random.default_rng(12)
X = make(5, 8, dtype=F)
G = make(5, 4, dtype=F)
WEIGHT = RNG.uniform(0.5, 2, 5).astype(F)
GROUPS = np.array([2, 3], np.int64)
LIMIT = 0.75


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def bounded(x: np.ndarray, limit: float = LIMIT) -> np.ndarray:
    return silu(np.minimum(x[..., :4], limit)) * np.clip(x[..., 4:], -limit, limit)


def clipped(x: np.ndarray, interleaved: bool = False) -> np.ndarray:
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :4], x[..., 4:])
    a, b = np.minimum(a, LIMIT), np.clip(b, -LIMIT, LIMIT)
    return a / (1 + np.exp(-1.5 * a)) * (b + 0.25)


HALF = make(6, 8)
GATED = silu(wide(HALF)[:, :4]) * wide(HALF)[:, 4:]
GATED_RIGHT = silu(wide(HALF)[:, 4:]) * wide(HALF)[:, :4]
SMOOTH = RNG.uniform(0.5, 2, (2, 4)).astype(F)
BY_ROW = wide(SMOOTH)[[0, 0, 1, 1, 1, 1]]
BYTES, SCALE = dynamic(GATED * BY_ROW)
WHOLE = RNG.integers(-60, 60, (6, 8)).astype(np.int32)
COLUMN, ROW = RNG.uniform(0.01, 0.05, (2, 8)).astype(F), RNG.uniform(0.5, 1, 6).astype(F)
OPENED = WHOLE * wide(COLUMN)[[0, 0, 1, 1, 1, 1]] * wide(ROW)[:, None]
OPENED_GATED = silu(OPENED[:, 4:]) * OPENED[:, :4]
OPENED_BYTES, OPENED_SCALE = dynamic(OPENED_GATED * BY_ROW)


def paired(x: np.ndarray, limit: float, alpha: float, bias: float) -> np.ndarray:
    """Gates in even columns, factors in odd ones, both bounded."""
    a, b = np.minimum(x[..., ::2], limit), np.clip(x[..., 1::2], -limit, limit)
    return np.asarray(a / (1 + np.exp(-alpha * a)) * (b + bias))


PAIRED_BYTES, PAIRED_SCALE = dynamic(paired(OPENED, 0.5, 1.702, 1.0) * BY_ROW)
GELU_X = make(3, 4, dtype=F)
GELU = 0.5 * wide(GELU_X) * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide(GELU_X) + 0.044715 * wide(GELU_X) ** 3)))
GELU_BYTES, GELU_SCALE = dynamic(GELU)
CLIP: dict[str, Any] = {"dim": -1, "alpha": 1.5, "limit": LIMIT, "bias": 0.25}
DEQUANT: dict[str, Any] = {
    "x": WHOLE, "weightScaleOptional": COLUMN, "activationScaleOptional": ROW, "quantScaleOptional": SMOOTH,
    "groupIndexOptional": np.array([2, 4]), "activateLeft": False, "quantModeOptional": "dynamic",
}  # fmt: skip
SECOND: dict[str, Any] = {
    "dstType": 2, "roundModeOptional": "rint", "activateDim": -1, "swigluMode": 0, "clampLimit": 7.0, "gluAlpha": 1.702,
    "gluBias": 1.0,
}  # fmt: skip

CASES = [
    Direct("aclnnSwigluGroup", {"x": X, "weightOptional": WEIGHT, "groupIndexOptional": GROUPS, "clampLimit": LIMIT},
           {"out": (bounded(wide(X)) * wide(WEIGHT)[:, None]).astype(F)}),
    Direct("aclnnSwigluGroup", {"x": X, "clampLimit": 0.0},
           {"out": (silu(wide(X)[:, :4]) * wide(X)[:, 4:]).astype(F)}),
    *(Direct(name, {"gradY": G, "x": X, "weightOptional": WEIGHT, "groupIndexOptional": GROUPS, "clampLimit": LIMIT},
             {"gradXOut": numeric(lambda v: bounded(v) * wide(WEIGHT)[:, None], wide(X), wide(G)).astype(F),
              "gradWeightOutOptional": (bounded(wide(X)) * wide(G)).sum(-1).astype(F)}, 50)
      for name in ("aclnnSwigluGroupGrad", "aclnnSwigluGroupQuantGrad")),
    *(Direct("aclnnClippedSwigluV2", {"x": X, **CLIP, "interleaved": mixed, "clampMode": 0},
             {"out": clipped(wide(X), mixed).astype(F)}) for mixed in (False, True)),
    *(Direct("aclnnClippedSwigluGrad", {"gradY": G, "x": X, "groupIndexOptional": GROUPS, **CLIP, "interleaved": mixed},
             {"gradXOut": numeric(lambda v, m=mixed: clipped(v, m), wide(X), wide(G)).astype(F)}, 50)
      for mixed in (False, True)),
    Direct("aclnnSwigluClamp", {"x": X, "limit": LIMIT}, {"y": bounded(wide(X)).astype(F)}),
    Direct("aclnnSwiGluQuantV2", {"x": HALF, "smoothScalesOptional": SMOOTH, "groupListType": 0, "dstType": 2,
                                  "groupIndexOptional": np.array([2, 6], np.int32), "activateLeft": True,
                                  "quantModeOptional": "dynamic"}, {"yOut": BYTES, "scaleOut": SCALE}),
    Direct("aclnnSwiGluQuantV2", {"x": HALF, "smoothScalesOptional": np.full(1, 20, F), "groupListType": 0,
           "dstType": 2,
                                  "offsetsOptional": np.full(1, 3, F), "activateLeft": False,
                                  "quantModeOptional": "static"}, {"yOut": to_bytes(GATED_RIGHT * 20 + 3)}),
    Direct("aclnnDequantSwigluQuant", DEQUANT, {"yOut": OPENED_BYTES, "scaleOut": OPENED_SCALE}),
    Direct("aclnnDequantSwigluQuantV2", {**DEQUANT, **SECOND}, {"yOut": OPENED_BYTES, "scaleOut": OPENED_SCALE}),
    Direct("aclnnDequantSwigluQuantV2", {**DEQUANT, **SECOND, "swigluMode": 1, "clampLimit": 0.5},
           {"yOut": PAIRED_BYTES, "scaleOut": PAIRED_SCALE}),
    Direct("aclnnGeluQuant", {"self": GELU_X, "approximate": "tanh", "quantMode": "dynamic", "roundMode": "rint",
                              "dstType": 2}, {"y": GELU_BYTES, "outScaleOptional": GELU_SCALE}),
    Direct("aclnnGeluQuant", {"self": GELU_X, "inputScaleOptional": np.full(4, 20, F), "approximate": "tanh",
                              "inputOffsetOptional": np.full(4, 3, F), "quantMode": "static", "roundMode": "rint",
                              "dstType": 2}, {"y": to_bytes(GELU * 20 + 3)}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_what_is_not_computed_is_named() -> None:
    outs = {"yOut": Out((6, 4), "int8"), "scaleOut": Out((6,))}
    assert refused("aclnnDequantSwigluQuantV2", **{**DEQUANT, **SECOND, "swigluMode": 2}, **outs) == 161002
    assert refused("aclnnDequantSwigluQuant", **{**DEQUANT, "weightScaleOptional": None}, **outs) == 161002
    assert refused("aclnnDequantSwigluQuant", **{**DEQUANT, "quantModeOptional": "other"}, **outs) == 161002
    assert refused("aclnnClippedSwigluV2", x=X, **{**CLIP, "limit": 0.0}, interleaved=False, clampMode=0,
                   out=Out((5, 4))) == 161002  # fmt: skip
