"""Normalized rows that become small integers, and gradients of normalizations by other names, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, Scalar, refused

RNG = np.random.default_rng(11)
F, H, B = np.float32, np.float16, np.int8


def make(*shape: int, dtype: Any = H) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def to_bytes(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(x), -128, 127).astype(B)


def dynamic(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = np.abs(x).max(-1) / 127
    return to_bytes(x / scale[..., None]), scale.astype(F)


def layer(x: np.ndarray, gamma: Any = 1.0, beta: Any = 0.0, eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def rms(x: np.ndarray, gamma: Any, beta: Any = 0.0, eps: float = 1e-5) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gamma + beta


X, Y = make(3, 4, 8), make(3, 4, 8)
GAMMA, BETA, SCALE, SMOOTH = make(8), make(8), RNG.uniform(10, 30, 8).astype(H), RNG.uniform(0.5, 2, 8).astype(H)
SUM = wide(X) + wide(Y)
LAYER = layer(wide(X), wide(GAMMA), wide(BETA))
LAYER_SUM = layer(SUM, wide(GAMMA), wide(BETA))
LAYER_BYTES, LAYER_SCALE = dynamic(LAYER)
SUM_BYTES, SUM_SCALE = dynamic(LAYER_SUM * wide(SMOOTH))
SUM_BYTES2, SUM_SCALE2 = dynamic(LAYER_SUM * wide(SCALE))
SHIFT, GAIN = make(3, 8), make(3, 8)
ADA = LAYER * (1 + wide(GAIN)[:, None]) + wide(SHIFT)[:, None]
ADA_BYTES, ADA_SCALE = dynamic(ADA * wide(SMOOTH))
RMS = rms(wide(X), wide(GAMMA), wide(BETA))
RMS_SUM = rms(SUM, wide(GAMMA), wide(BETA))
RMS_BYTES, RMS_SCALE = dynamic(RMS_SUM * wide(SMOOTH))
RMS_BYTES2, RMS_SCALE2 = dynamic(RMS_SUM * wide(SCALE))
IMAGE = make(2, 6, 3, 2)
GROUPED = wide(IMAGE).reshape(2, 3, 12)
GROUP_GAMMA, GROUP_BETA = make(6), make(6)
GROUP_NORMAL = layer(GROUPED).reshape(2, 6, 3, 2) * wide(GROUP_GAMMA)[:, None, None] + wide(GROUP_BETA)[:, None, None]
BYTES = RNG.integers(-50, 50, (2, 3, 2, 2)).astype(B)
MEAN, VAR = make(3, dtype=F), RNG.uniform(0.5, 2, 3).astype(F)
W, BIAS = make(3, dtype=F), make(3, dtype=F)


def quantized_batch() -> np.ndarray:
    real = (BYTES - 3.0) * float(F(0.1))
    real = (real - wide(MEAN)[:, None, None]) / np.sqrt(wide(VAR) + float(F(1e-5)))[:, None, None]
    real = real * wide(W)[:, None, None] + wide(BIAS)[:, None, None]
    return np.clip(np.rint(real / float(F(0.05))) - 2, -128, 127).astype(B)


def numeric(f: Any, x: np.ndarray, g: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of sum(f(x) * g), by differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = ((f(up) - f(down)) * g).sum() / (2 * step)
    return out


G32, X32 = make(3, 2, 6, dtype=F), make(3, 2, 6, dtype=F)
W32, B32, GAIN32, SHIFT32 = make(6, dtype=F), make(6, dtype=F), make(3, 6, dtype=F), make(3, 6, dtype=F)
MEAN32 = wide(X32).mean(-1, keepdims=True)
RSTD32 = 1 / np.sqrt(wide(X32).var(-1, keepdims=True) + 1e-5)


def ada(x: np.ndarray, gain: np.ndarray, shift: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return layer(x, w, b) * (1 + gain[:, None]) + shift[:, None]


ADA_AT = [wide(a) for a in (X32, GAIN32, SHIFT32, W32, B32)]
ADA_GRADS = [
    numeric(lambda v, i=i: ada(*[v if j == i else a for j, a in enumerate(ADA_AT)]), ADA_AT[i], wide(G32)).astype(F)
    for i in range(5)
]
RMS_X, RMS_G, RMS_W = make(4, 6, dtype=F), make(4, 6, dtype=F), make(6, dtype=F)
RMS_RSTD = (1 / np.sqrt((wide(RMS_X) ** 2).mean(-1) + 1e-5)).astype(F)
RMS_DX = numeric(lambda v: rms(v, wide(RMS_W)), wide(RMS_X), wide(RMS_G))
RMS_DW = numeric(lambda v: rms(wide(RMS_X), v), wide(RMS_W), wide(RMS_G)).astype(F)
GN_X, GN_G, GN_W = (make(2, 4, 3, dtype=F) for _ in range(3))
GN_ROWS = wide(GN_X).reshape(2, 2, 6)
GN_DX = numeric(lambda v: layer(v.reshape(2, 2, 6)).reshape(2, 4, 3) * wide(GN_W), wide(GN_X), wide(GN_G)).astype(F)
BN_X, BN_G = make(2, 3, 4, dtype=F), make(2, 3, 4, dtype=F)


def batch(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    mean, var = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * w[:, None] + b[:, None]


BN_MEAN = wide(BN_X).mean((0, 2)).astype(F)
BN_RSTD = (1 / np.sqrt(wide(BN_X).var((0, 2)) + 1e-5)).astype(F)
BN_DX = numeric(lambda v: batch(v, wide(W), wide(BIAS)), wide(BN_X), wide(BN_G)).astype(F)
BN_NORMAL = batch(wide(BN_X), np.ones(3), np.zeros(3))

LAYER_CALL: dict[str, Any] = {"x": X, "gammma": GAMMA, "beta": BETA, "epsilon": 1e-5}
ADD_CALL: dict[str, Any] = {
    "x1": X, "x2": Y, "gamma": GAMMA, "beta": BETA, "epsilon": 1e-5, "additionalOutput": True, "divMode": False,
}  # fmt: skip
CASES = [
    Direct("aclnnLayerNormQuant", {**LAYER_CALL, "scale": SCALE, "quantMode": 0,
                                   "scaleOut": np.zeros((3, 4), F), "zeroPointsOptional": np.arange(8, dtype=B)},
           {"res": to_bytes(LAYER * wide(SCALE) + np.arange(8)), "scaleOut": np.zeros((3, 4), F)},
           free_shapes=("scaleOut",)),
    Direct("aclnnLayerNormQuant", {**LAYER_CALL, "scale": SCALE, "quantMode": 1},
           {"res": LAYER_BYTES, "scaleOut": LAYER_SCALE}),
    *(Direct(name, {**ADD_CALL, "scales1Optional": SMOOTH, "scales2Optional": SCALE, "quantMode": "dynamic"},
             {"y1Out": SUM_BYTES, "y2Out": SUM_BYTES2, "xOut": SUM.astype(H), **extra, "outScales1Out": SUM_SCALE,
              "outScales2Out": SUM_SCALE2})
      for name, extra in (("aclnnAddLayerNormQuant", {}),
                          ("aclnnAddLayerNormQuantV2", {"layernormRes": LAYER_SUM.astype(H)}))),
    Direct("aclnnAdaLayerNormQuant", {"x": X, "scale": GAIN, "shift": SHIFT, "weightOptional": GAMMA,
                                      "biasOptional": BETA, "smoothScalesOptional": SMOOTH, "epsilon": 1e-5,
                                      "quantMode": "dynamic"}, {"out": ADA_BYTES, "quantScale": ADA_SCALE}),
    Direct("aclnnAdaLayerNormBackward",
           {"gradOut": G32, "input": X32, "normalizedShape": [6], "rstd": RSTD32.astype(F), "mean": MEAN32.astype(F),
            "scale": GAIN32, "shift": SHIFT32, "weightOptional": W32, "biasOptional": B32},
           dict(zip(("gradInputOut", "gradScaleOut", "gradShiftOut", "gradWeightOut", "gradBiasOut"), ADA_GRADS)), 50),
    Direct("aclnnAddRmsNormDynamicQuantV2",
           {"x1": X, "x2": Y, "gamma": GAMMA, "smoothScale1Optional": SMOOTH, "betaOptional": BETA, "epsilon": 1e-5,
            "outputMask": [True, True], "smoothScale2Optional": SCALE},
           {"y1Out": RMS_BYTES, "y2Out": RMS_BYTES2, "xOut": SUM.astype(H), "scale1Out": RMS_SCALE,
            "scale2Out": RMS_SCALE2}),
    # Without smoothScale2Optional, and without a mask that asks for it, there is no second result.
    Direct("aclnnAddRmsNormDynamicQuantV2",
           {"x1": X, "x2": Y, "gamma": GAMMA, "smoothScale1Optional": SMOOTH, "betaOptional": BETA, "epsilon": 1e-5},
           {"y1Out": RMS_BYTES, "xOut": SUM.astype(H), "scale1Out": RMS_SCALE}),
    Direct("aclnnRmsNormQuantV3",
           {"x": X, "gamma": GAMMA, "scale": SCALE[:1], "offset": np.array([3], B), "beta": BETA, "epsilon": 1e-5,
            "divMode": False, "outputRstd": True},
           {"y": to_bytes(RMS * wide(SCALE[0]) + 3),
            "rstd": (1 / np.sqrt((wide(X) ** 2).mean(-1) + 1e-5)).astype(F)}, 10),
    Direct("aclnnRmsNormGradQuant",
           {"dy": RMS_G, "x": RMS_X, "rstd": RMS_RSTD, "gamma": RMS_W, "scalesX": np.array([0.02], F),
            "offsetXOptional": np.array([2], np.int32), "quantMode": "static", "divMode": True},
           {"dxOut": to_bytes(RMS_DX / float(F(0.02)) + 2), "dgammaOut": RMS_DW}, 50),
    Direct("aclnnFusedAddRmsNorm", {"x1": X32, "x2": G32, "gamma": W32, "epsilon": 1e-5, "scale": 0.5},
           {"yOut": rms(wide(X32) * 0.5 + wide(G32), wide(W32)).astype(F),
            "rstdOut": (1 / np.sqrt(((wide(X32) * 0.5 + wide(G32)) ** 2).mean(-1) + 1e-5)).astype(F),
            "xOut": (wide(X32) * 0.5 + wide(G32)).astype(F)}),
    Direct("aclnnGroupNormSiluQuant",
           {"self": IMAGE, "gamma": GROUP_GAMMA, "beta": GROUP_BETA, "quantScale": np.array([0.03], F), "group": 3,
            "eps": 1e-5, "activateSilu": True},
           {"out": to_bytes(GROUP_NORMAL / (1 + np.exp(-GROUP_NORMAL)) / float(F(0.03))),
            "meanOut": GROUPED.mean(-1).astype(H), "rstdOut": (1 / np.sqrt(GROUPED.var(-1) + 1e-5)).astype(H)}),
    Direct("aclnnGroupNormalizationGrad",
           {"x": GN_X, "dy": GN_G, "gamma": GN_W, "mean": GN_ROWS.mean(-1).astype(F),
            "rstd": (1 / np.sqrt(GN_ROWS.var(-1) + 1e-5)).astype(F)}, {"dx": GN_DX}, 50),
    Direct("aclnnQuantizedBatchNorm",
           {"input": BYTES, "mean": MEAN, "var": VAR, "inputScale": Scalar(0.1, "float32"),
            "inputZeroPoint": Scalar(3, "int32"), "outputScale": Scalar(0.05, "float32"),
            "outputZeroPoint": Scalar(-2, "int32"), "weight": W, "bias": BIAS, "epsilon": 1e-5},
            {"output": quantized_batch()}),
    Direct("aclnnFastBatchNormBackward",
           {"gradOut": BN_G, "input": BN_X, "weight": W, "runningMean": MEAN, "runningVar": VAR, "saveMean": BN_MEAN,
            "saveInvstd": BN_RSTD, "training": True, "eps": 1e-5, "outputMask": [True, True, True], "version": 0},
           {"gradInput": BN_DX, "gradWeight": (wide(BN_G) * BN_NORMAL).sum((0, 2)).astype(F),
            "gradBias": wide(BN_G).sum((0, 2)).astype(F)}, 50),
    Direct("aclnnFastBatchNormBackward",
           {"gradOut": BN_G, "input": BN_X, "weight": W, "runningMean": MEAN, "runningVar": VAR, "saveMean": BN_MEAN,
            "saveInvstd": BN_RSTD, "training": False, "eps": 1e-5, "outputMask": [True, False, False], "version": 0},
           {"gradInput": (wide(BN_G) * (wide(W) / np.sqrt(wide(VAR) + 1e-5))[:, None]).astype(F)}, 10),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_modes_that_are_not() -> None:
    outs = {"res": Out((3, 4, 8), "int8"), "scaleOut": Out((3, 4))}
    assert refused("aclnnLayerNormQuant", **LAYER_CALL, scale=SCALE, quantMode=2, **outs) == 161002
    bad = {**ADD_CALL, "quantMode": "other", "scales1Optional": SMOOTH}
    outs = {"y1Out": Out((3, 4, 8), "int8"), "y2Out": Out((3, 4, 8), "int8"), "xOut": Out((3, 4, 8), "float16"),
            "outScales1Out": Out((3, 4)), "outScales2Out": Out((3, 4))}  # fmt: skip
    assert refused("aclnnAddLayerNormQuant", **bad, **outs) == 161002
