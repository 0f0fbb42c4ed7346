"""Functions that belong to no family, each against its definition in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, assert_same, call, refused

RNG = np.random.default_rng(19)
F = np.float32


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


X, Y = floats(3, 4), floats(3, 4)
WINDOWS, MASK, BIAS = floats(2, 3, 2, 4, 5), floats(3, 4, 5), floats(2, 4, 5)
JOINED = softmax(wide(WINDOWS) * 0.5 + MASK[None, :, None] + BIAS[None, None])
STATE: dict[str, np.ndarray] = {n: floats(6) for n in ("grad", "varRef", "mRef", "sRef")} | {"vRef": np.abs(floats(6))}


def averaged(mode: int) -> dict[str, np.ndarray]:
    g, x, m, v, s = (wide(STATE[n]) for n in ("grad", "varRef", "mRef", "vRef", "sRef"))
    g = g + (0.1 * x if mode == 0 else 0)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
    update = m / (1 - 0.9**3) / (np.sqrt(v / (1 - 0.99**3)) + 1e-6) + (0.1 * x if mode == 1 else 0)
    x = x - 0.01 * update
    done = {"varRef": x, "mRef": m, "vRef": v, "sRef": 0.5 * s + 0.5 * x}
    return {n: a.astype(F) for n, a in done.items()}


CASES = [
    Direct("aclnnMaskedSoftmaxWithRelPosBias", {"x": WINDOWS, "attenMaskOptional": MASK, "relativePosBias": BIAS,
                                                "scaleValue": 0.5, "innerPrecisionMode": 0}, {"out": JOINED.astype(F)}),
    Direct("aclnnMaskedSoftmaxWithRelPosBias", {"x": WINDOWS, "relativePosBias": BIAS[None, None], "scaleValue": 1.0,
                                                "innerPrecisionMode": 0},
           {"out": softmax(wide(WINDOWS) + BIAS).astype(F)}),
    *(Direct("aclnnMaskedSoftmaxWithRelPosBias",
             {"x": WINDOWS.reshape(-1, *WINDOWS.shape[2:]), "relativePosBias": BIAS, "scaleValue": 0.5,
              "innerPrecisionMode": 0, **mask}, {"out": out.reshape(-1, *WINDOWS.shape[2:]).astype(F)})
      for mask, out in (({"attenMaskOptional": MASK}, JOINED), ({}, softmax(wide(WINDOWS) * 0.5 + BIAS)))),
    *(Direct("aclnnApplyFusedEmaAdam", {**STATE, "step": np.array([3]), "lr": 0.01, "emaDecay": 0.5, "beta1": 0.9,
                                        "beta2": 0.99, "eps": 1e-6, "mode": mode, "biasCorrection": True,
                                        "weightDecay": 0.1}, averaged(mode)) for mode in (0, 1)),
    Direct("aclnnDiagPart", {"x": np.arange(36, dtype=F).reshape(2, 3, 2, 3)},
           {"y": np.arange(36, dtype=F).reshape(6, 6).diagonal().reshape(2, 3).copy()}),
    Direct("aclnnLogSoftmaxV2", {"self": X, "dim": 1}, {"out": np.log(softmax(wide(X))).astype(F)}),
    Direct("aclnnMseLossOut", {"self": X, "target": Y, "reduction": 0}, {"out": (X - Y) ** 2}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_a_doubly_stochastic_matrix() -> None:
    """Rows and columns of the answer have equal sums, and it is the cost's exponential scaled by rows and columns."""
    got = wide(call("aclnnSinkhorn", cost=X, tol=1e-6, p=Out((3, 4))))
    np.testing.assert_allclose(got.sum(1), np.full(3, 1 / 3), atol=1e-4)
    np.testing.assert_allclose(got.sum(0), np.full(4, 1 / 4), atol=1e-4)
    ratio = got / np.exp(wide(X))
    np.testing.assert_allclose(ratio * ratio[0, 0], ratio[:, :1] * ratio[:1], rtol=1e-4)
    assert refused("aclnnSinkhorn", cost=X, tol=1e-6, p=Out((3, 5))) == 161002


def test_attention_along_a_ring() -> None:
    """Two halves of the keys, one after the other: the same as all at once."""
    steps, batch, heads, size = 2, 1, 2, 4
    scores, v = wide(floats(heads, steps, 6)), wide(floats(heads, 6, size))
    parts: list[Any] = []
    for keys in (slice(0, 2), slice(2, 6), slice(0, 6)):
        top = scores[:, :, keys].max(-1)
        e = np.exp(scores[:, :, keys] - top[..., None])
        out = e / e.sum(-1, keepdims=True) @ v[:, keys]  # (heads, steps, size)
        statistics = [np.repeat(a[None, ..., None], 8, -1).astype(F) for a in (top, e.sum(-1))]
        parts.append((out.transpose(1, 0, 2).reshape(steps, batch, heads * size).astype(F), *statistics))
    names = ("AttnOut", "SoftmaxMax", "SoftmaxSum")
    given = {f"{when}{n}": a for when, part in zip(("prev", "cur"), parts) for n, a in zip(names, part)}
    outs = {"attnOutOut": Out((2, 1, 8)), "softmaxMaxOut": Out((1, 2, 2, 8)), "softmaxSumOut": Out((1, 2, 2, 8))}
    got = call("aclnnRingAttentionUpdate", **given, inputLayoutOptional="SBH", **outs)
    for g, want in zip(got, parts[2]):
        assert_same(g, want, 8)
    assert refused("aclnnRingAttentionUpdate", **given, inputLayoutOptional="BSH", **outs) == 161002
    assert refused("aclnnRingAttentionUpdate", **{**given, "curAttnOut": None}, **outs) == 161001
