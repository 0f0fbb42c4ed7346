"""What flows back through attention of small floats whose blocks have scales, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ._kernels import Out, call, refused
from .test_kernels_microscaled import BF, E4M3
from .test_kernels_quantized_norm import F, wide

RNG = np.random.default_rng(83)
N, M, S, T, D = 4, 2, 130, 260, 4  # heads, heads of keys, queries, keys, size of a head


def numbers(heads: int, tokens: int) -> np.ndarray:
    return RNG.uniform(-2, 2, (1, heads, tokens, D)).astype(F).astype(E4M3)


def scales(heads: int) -> np.ndarray:
    return RNG.uniform(0.5, 1, (1, heads, 2, 1)).astype(F)


def opened(x: np.ndarray, scale: np.ndarray, block: int) -> np.ndarray:
    return np.asarray(x.astype(float) * np.repeat(wide(scale), block, 2)[:, :, : x.shape[2]])


def passed(x: np.ndarray, by: float) -> np.ndarray:
    return np.asarray((x * by).astype(F).astype(E4M3).astype(float) / by)


@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
@pytest.mark.parametrize("mode", [0, 2, 3])
def test_gradients(layout: str, mode: int) -> None:
    q, dy, k, v = numbers(N, S), numbers(N, S), numbers(M, T), numbers(M, T)
    of_q, of_dy, of_k, of_v = scales(N), scales(N), scales(M), scales(M)
    mask = RNG.random((S, T)) < 0.3
    a, g = opened(q, of_q, 128), opened(dy, of_dy, 128)
    b, c = (np.repeat(opened(x, s, 256), N // M, 1) for x, s in ((k, of_k), (v, of_v)))
    hidden = mask if mode == 0 else np.triu(np.ones((S, T), bool), 1 if mode == 2 else T - S + 1)
    score = np.where(hidden, -np.inf, a @ b.swapaxes(2, 3) * 0.5)
    top = score.max(-1, keepdims=True).astype(F)
    total = np.exp(score - top).sum(-1, keepdims=True).astype(F)
    p = np.exp(score - wide(top)) / wide(total)
    out = (p @ c).astype(BF)
    ds = passed(p * (g @ c.swapaxes(2, 3) - (g * wide(out)).sum(-1, keepdims=True)), 8) * 0.5

    def joined(x: np.ndarray) -> np.ndarray:
        return np.asarray(x.reshape(1, M, N // M, T, D).sum(2))

    want = (ds @ b, joined(ds.swapaxes(2, 3) @ a), joined(passed(p, 64).swapaxes(2, 3) @ g))

    def laid(x: np.ndarray) -> np.ndarray:
        return x if layout == "BNSD" else np.ascontiguousarray(x.swapaxes(1, 2))

    given = {
        "query": laid(q), "keyIn": laid(k), "value": laid(v), "dy": laid(dy),
        "attenMaskOptional": mask if mode == 0 else None, "softmaxMax": np.repeat(top, 8, -1),
        "softmaxSum": np.repeat(total, 8, -1), "attentionIn": laid(out), "dScaleQ": of_q, "dScaleK": of_k,
        "dScaleV": of_v, "dScaleDy": of_dy, "dsScale": np.array([8], F), "pScale": np.array([64], F),
        "scaleValue": 0.5, "preTokens": 65536, "nextTokens": 65536, "headNum": N, "inputLayout": layout,
        "sparseMode": mode, "outDtype": 1,
        **{f"d{n}Out": Out(laid(w).shape, "float32") for n, w in zip("qkv", want)},
    }  # fmt: skip
    for got, w in zip(call("aclnnQuantFlashAttentionScoreGrad", **given), want):
        # A weight beside the middle of two small floats may go either way.
        np.testing.assert_allclose(wide(got), laid(w), rtol=0.02, atol=0.02 * np.abs(w).max())
        assert np.median(np.abs(wide(got) - laid(w))) < 1e-4 * np.abs(w).max()
    for wrong in (
        {"sparseMode": 1}, {"headNum": 3}, {"dScaleDy": np.ones((1, N, 3, 1), F)}, {"dsScale": np.ones(2, F)},
        {"softmaxSum": np.repeat(total, 4, -1)}, {"dkOut": Out(laid(want[0]).shape)},
    ):  # fmt: skip
        assert refused("aclnnQuantFlashAttentionScoreGrad", **{**given, **wrong}) == 161002, wrong
