"""Weights of parallel streams and doubly stochastic mixtures, against NumPy; gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import Out, call, refused
from .test_kernels_quantized_norm import F, H, make, numeric, wide

N, WIDTH, ROUNDS, EPS = 3, 4, 3, 1e-3
SHAPE = (1, 2, N, WIDTH)
WEIGHTS = N * N + 2 * N
X, GAMMA = make(*SHAPE), make(N, WIDTH, dtype=F)
PHI, BIAS, ALPHA = make(WEIGHTS, N * WIDTH, dtype=F), make(WEIGHTS, dtype=F), make(3, dtype=F)
SQUARE = make(2, 2, N, N, dtype=F)


def sinkhorn(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mixture, and what is kept: quotients and divisors of each step."""
    e = np.exp(x - x.max(-1, keepdims=True))
    quotients, divisors = [e / e.sum(-1, keepdims=True)], [e.sum(-1)]
    y = quotients[0] + EPS
    for step in range(1, 2 * ROUNDS):
        total = y.sum(-2 if step % 2 else -1, keepdims=True) + EPS
        y = y / total
        quotients.append(y)
        divisors.append(total.reshape(divisors[0].shape))
    return y, np.stack(quotients), np.stack(divisors)


def weights(
    x: np.ndarray, phi: np.ndarray, alpha: np.ndarray, bias: np.ndarray, gamma: np.ndarray
) -> dict[str, np.ndarray]:
    flat = x.reshape(*x.shape[:-2], -1)
    inverse = 1 / np.sqrt((flat**2).mean(-1) + 1e-6)
    mix = (flat * gamma.reshape(-1)) @ phi.T
    z = np.repeat(alpha, [N, N, N * N]) * mix * inverse[..., None] + bias
    pre = 1 / (1 + np.exp(-z[..., :N])) + EPS
    return {
        "in": (pre[..., None] * x).sum(-2),
        "post": 2 / (1 + np.exp(-z[..., N : 2 * N])),
        "pre": pre,
        "mix": mix,
        "res": z[..., 2 * N :].reshape(*x.shape[:-2], N, N),
        "inverse": inverse,
    }


PLACES = {"x": wide(X), "phi": wide(PHI), "alpha": wide(ALPHA), "bias": wide(BIAS), "gamma": wide(GAMMA)}
ONES = np.ones((N, WIDTH))
PLAIN, MIXED = weights(**PLACES), weights(**{**PLACES, "gamma": ONES})
MIXTURE, QUOTIENTS, DIVISORS = sinkhorn(MIXED["res"])
G_IN, G_POST, G_RES = make(1, 2, WIDTH), make(1, 2, N, dtype=F), make(1, 2, N, N, dtype=F)
MORE = make(*SHAPE)


def gradient(of: str, gamma: np.ndarray, mixed: bool) -> np.ndarray:
    """Of all three results together."""

    def value(v: np.ndarray) -> np.ndarray:
        got = weights(**{**PLACES, "gamma": gamma, of: v})
        res = sinkhorn(got["res"])[0] if mixed else got["res"]
        parts = (got["in"] * wide(G_IN), got["post"] * wide(G_POST), res * wide(G_RES))
        return np.array(sum(float(part.sum()) for part in parts))

    at = gamma if of == "gamma" else PLACES[of]
    return numeric(value, at, np.array(1.0), 1e-5)


SOME = sinkhorn(wide(SQUARE))
G = make(2, 2, N, N, dtype=F)
COMMON: dict[str, Any] = {"x": X, "phi": PHI, "alpha": ALPHA, "bias": BIAS}
CASES = [
    Direct(
        "aclnnMhcSinkhorn",
        {"x": SQUARE, "eps": EPS, "numIters": ROUNDS},
        {"output": SOME[0].astype(F), "normOut": SOME[1].astype(F), "sumOut": SOME[2].astype(F)},
    ),
    Direct(
        "aclnnMhcSinkhornBackward",
        {"gradOutput": G, "normOut": SOME[1].astype(F), "sumOut": SOME[2].astype(F)},
        {"out": numeric(lambda x: sinkhorn(x)[0], wide(SQUARE), wide(G)).astype(F)},
        400,
    ),
    Direct(
        "aclnnMhcPre",
        {**COMMON, "gammaOptional": GAMMA, "normEps": 1e-6, "hcEps": EPS},
        {
            "hIn": PLAIN["in"].astype(H),
            "hPost": PLAIN["post"].astype(F),
            "hRes": PLAIN["res"].astype(F),
            "invRmsOptional": PLAIN["inverse"].astype(F),
            "hMixOptional": PLAIN["mix"].astype(F),
            "hPreOptional": PLAIN["pre"].astype(F),
        },
    ),
    Direct(
        "aclnnMhcPreSinkhorn",
        {**COMMON, "hcMult": N, "numIters": ROUNDS, "hcEps": EPS, "normEps": 1e-6, "needBackward": True},
        {
            "hin": MIXED["in"].astype(H),
            "hPost": MIXED["post"].astype(F),
            "hRes": MIXTURE.reshape(1, 2, N * N).astype(F),
            "hPre": MIXED["pre"].astype(F),
            "hcBeforeNorm": MIXED["mix"].astype(F),
            "invRms": MIXED["inverse"][..., None].astype(F),
            "sumOut": DIVISORS.astype(F),
            "normOut": QUOTIENTS.astype(F),
        },
    ),
    Direct(
        "aclnnMhcPreBackward",
        {
            "x": X,
            "phi": PHI,
            "alpha": ALPHA,
            "gradHIn": G_IN,
            "gradHPost": G_POST,
            "gradHRes": G_RES,
            "invRms": PLAIN["inverse"].astype(F),
            "hMix": PLAIN["mix"].astype(F),
            "hPre": PLAIN["pre"].astype(F),
            "hPost": PLAIN["post"].astype(F),
            "gamma": GAMMA,
            "gradXPostOptional": MORE,
            "hcEps": EPS,
        },
        {
            "gradX": (gradient("x", wide(GAMMA), False) + wide(MORE)).astype(H),
            **{
                f"grad{name.capitalize()}": gradient(name, wide(GAMMA), False).astype(F)
                for name in ("phi", "alpha", "bias", "gamma")
            },
        },
        400,
    ),
    Direct(
        "aclnnMhcPreSinkhornBackward",
        {
            **COMMON,
            "gradHin": G_IN,
            "gradHPost": G_POST,
            "gradHRes": G_RES.reshape(1, 2, N * N),
            "hPre": MIXED["pre"].astype(F),
            "hcBeforeNorm": MIXED["mix"].astype(F),
            "invRms": MIXED["inverse"][..., None].astype(F),
            "sumOut": DIVISORS.astype(F),
            "normOut": QUOTIENTS.astype(F),
            "hcEps": EPS,
        },
        {
            "gradX": gradient("x", ONES, True).astype(H),
            **{f"grad{name.capitalize()}": gradient(name, ONES, True).astype(F) for name in ("phi", "alpha", "bias")},
        },
        400,
    ),
]


@each(CASES)
def test_results(case: Direct) -> None:
    check(case)


# What is kept may have longer rows: other shapes of it are accepted.
@each([Direct(c.name, c.given, c.want, c.scale, ("normOut", "sumOut")) for c in CASES])
def test_refusals(case: Direct) -> None:
    check_refusals(case)


def test_rows_of_eight() -> None:
    outs = {"output": Out((2, 2, N, N)), "normOut": Out((2 * ROUNDS * 4, N, 8)), "sumOut": Out((2 * ROUNDS * 4, 8))}
    _, norms, sums = call("aclnnMhcSinkhorn", x=SQUARE, eps=EPS, numIters=ROUNDS, **outs)
    np.testing.assert_allclose(norms[..., :N].reshape(SOME[1].shape), SOME[1], rtol=1e-5)
    np.testing.assert_allclose(sums[..., :N].reshape(SOME[2].shape), SOME[2], rtol=1e-5)
    assert not norms[..., N:].any() and not sums[..., N:].any()


WRONG: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = [
    ("aclnnMhcSinkhorn", lambda v: {**v, "numIters": 0}),
    ("aclnnMhcSinkhorn", lambda v: {**v, "sumOut": None}),
    ("aclnnMhcPreSinkhorn", lambda v: {**v, "hcMult": N + 1}),
    ("aclnnMhcPreSinkhorn", lambda v: {**v, "normOut": None, "sumOut": None}),
    ("aclnnMhcPre", lambda v: {**v, "phi": PHI[:-1]}),
    ("aclnnMhcPre", lambda v: {**v, "gammaOptional": GAMMA[:-1]}),
]


@pytest.mark.parametrize(("name", "change"), WRONG)
def test_what_is_refused(name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    case = next(c for c in CASES if c.name == name)
    outs = {n: Out(a.shape, a.dtype.name) for n, a in case.want.items()}
    assert refused(name, **change({**case.given, **outs})) == 161002
