"""Packed attention whose scores are shifted and dropped, against PyTorch's derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, assert_same, call, refused
from .test_kernels_microscaled import BF

RNG = np.random.default_rng(97)
F = np.float32
HEADS, KV, SIZE, TURNED = 4, 2, 6, 4
Q_ENDS, K_ENDS = [3, 5], [4, 9]
SHARES = [(0, 3, 0, 4), (3, 5, 4, 9)]  # of each sequence: its queries, its keys
SCORES = HEADS * sum((b - a) * (d - c) for a, b, c, d in SHARES)
KEEP = 0.75


def floats(*shape: int) -> np.ndarray:
    """Numbers that BF16 has too."""
    return RNG.uniform(-1, 1, shape).astype(BF).astype(F)


Q, DY = floats(5, HEADS, SIZE), floats(5, HEADS, SIZE)
K, V = floats(9, KV, SIZE), floats(9, KV, SIZE)
Q2, K2 = floats(5, HEADS, TURNED), floats(9, KV, TURNED)
DROPPED = RNG.integers(0, 256, (SCORES + 127) // 128 * 16).astype(np.uint8)
OPTIONS: dict[str, Any] = {
    "actualSeqQLenOptional": Q_ENDS, "actualSeqKvLenOptional": K_ENDS, "scaleValue": 0.25, "preTokens": 65536,
    "nextTokens": 65536, "headNum": HEADS, "inputLayout": "TND", "innerPrecise": 0, "sparseMode": 0,
    "qStartIdxOptional": [5], "kvStartIdxOptional": [2],
}  # fmt: skip


def reference(kind: int, shift: np.ndarray | None, drops: bool, turned: bool) -> tuple[list[Any], list[Any]]:
    """The result, largest scores and sums; gradients of query, key, value and the rotary parts."""
    torch = pytest.importorskip("torch")
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (Q, K, V, Q2, K2)]
    q, k, v, q2, k2 = leaves
    k, v, k2 = (x.repeat_interleave(HEADS // KV, 1) for x in (k, v, k2))
    given = None if shift is None else torch.tensor(shift, dtype=torch.float64)
    bits = torch.tensor(np.unpackbits(DROPPED, bitorder="little"), dtype=torch.float64)
    outs, tops, sums, before = [], [], [], 0
    for b, (q0, q1, k0, k1) in enumerate(SHARES):
        n, m = q1 - q0, k1 - k0
        dot = torch.einsum("ihd,jhd->hij", q[q0:q1], k[k0:k1])
        if turned:
            dot = dot + torch.einsum("ihd,jhd->hij", q2[q0:q1], k2[k0:k1])
        own = slice(before, before + HEADS * n * m)
        score = dot * 0.25
        if given is not None and kind < 2:
            part = given[own].reshape(HEADS, n, m)
            score = (dot + part) * 0.25 if kind == 1 else score + part
        elif given is not None:
            apart = (3 + torch.arange(n)[:, None] - torch.arange(m)).abs().to(torch.float64)
            slopes = given.expand(2, HEADS)[b, :, None, None]
            score = score - (apart.sqrt() if kind == 3 else apart) * slopes
        top = score.max(-1, keepdim=True).values
        e = (score - top).exp()
        weights = e / e.sum(-1, keepdim=True)
        if drops:
            weights = weights * bits[own].reshape(HEADS, n, m) / KEEP
        outs.append(torch.einsum("hij,jhd->ihd", weights, v[k0:k1]))
        tops.append(top[..., 0])
        sums.append(e.sum(-1))
        before += HEADS * n * m
    out = torch.cat(outs)
    out.backward(torch.tensor(DY, dtype=torch.float64))
    results = [torch.cat(tops, 1), torch.cat(sums, 1), out]
    return [x.detach().numpy() for x in results], [
        np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves
    ]


def shift_of(kind: int) -> np.ndarray:
    return floats(SCORES) if kind < 2 else np.abs(floats(HEADS)) if kind == 2 else np.abs(floats(2, HEADS))


@pytest.mark.oracle
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, None])
@pytest.mark.parametrize("version", ["VarLenScoreV2", "VarLenScoreV3", "ScoreV4"])
def test_shifted_and_dropped(version: str, kind: int | None, drops: bool) -> None:
    shift = None if kind is None else shift_of(kind)
    turned, fourth = version != "VarLenScoreV2", version == "ScoreV4"
    dtype = BF if turned else F
    (top, total, out), grads = reference(1 if kind is None else kind, shift, drops, turned)
    q, k, v, dy, q2, k2 = (x.astype(dtype) for x in (Q, K, V, DY, Q2, K2))
    if shift is not None and kind in (0, 1):
        shift = shift.astype(dtype)
    options = {**OPTIONS, "keepProb": KEEP if drops else 1.0, "pseType": 1 if kind is None else kind}
    options |= {"dropMaskOptional": DROPPED} if drops else {}
    ends = "Optional" if fourth else ""
    forward = {"realShiftOptional": shift, **({f"queryRope{ends}": q2, f"keyRope{ends}": k2} if turned else {})}
    stats = Out((HEADS, 5, 8))
    more = {"outDtype": 0, "seed": 0, "offset": 0} if fourth else {}
    got = call(
        f"aclnnFlashAttention{version}", query=q, key=k, value=v, **options, **forward, **more, softmaxMaxOut=stats,
        softmaxSumOut=stats, attentionOutOut=Out(Q.shape, q.dtype.name),
    )  # fmt: skip
    copies = [np.repeat(s[..., None], 8, -1).astype(F) for s in (top, total)]
    for g, want in zip((got[0], got[1], got[-1]), (*copies, out.astype(dtype))):
        assert_same(g, want, 16 if dtype is F else 2)
    back = {"ScoreV4": "ScoreGradV4"}.get(version, f"UnpaddingScoreGrad{version[-2:]}")
    rope = {f"queryRope{ends}": q2, ("keyRopeOptional" if fourth else "keyInRope"): k2} if turned else {}
    names = {"dqOut": 0, "dkOut": 1, "dvOut": 2, **({"dqRopeOut": 3, "dkRopeOut": 4} if turned else {})}
    order = ["dqOut", "dqRopeOut", "dkOut", "dkRopeOut", "dvOut"] if version == "VarLenScoreV3" else list(names)
    found = call(
        f"aclnnFlashAttention{back}", query=q, keyIn=k, value=v, dy=dy, pseShiftOptional=shift, **options, **rope,
        **more, softmaxMaxOptional=got[0], softmaxSumOptional=got[1], attentionInOptional=out.astype(dtype),
        **{n: Out(grads[i].shape, q.dtype.name) for n, i in names.items()},
    )  # fmt: skip
    for name, g in zip(order, found):
        want = grads[names[name]]
        if dtype is F:
            assert_same(g, want.astype(F), 32)
        else:  # the result that comes back is rounded
            np.testing.assert_allclose(g.astype(float), want, rtol=0.02, atol=0.02 * np.abs(want).max())


def test_refusals() -> None:
    name, stats = "aclnnFlashAttentionVarLenScoreV2", Out((HEADS, 5, 8))
    given = {"query": Q, "key": K, "value": V, **OPTIONS, "pseType": 1, "keepProb": 1.0, "softmaxMaxOut": stats,
             "softmaxSumOut": stats, "attentionOutOut": Out(Q.shape)}  # fmt: skip
    for wrong in (
        {"keepProb": 0.5}, {"keepProb": 0.0}, {"pseType": 4}, {"pseType": 2}, {"realShiftOptional": floats(SCORES - 1)},
        {"keepProb": 0.5, "dropMaskOptional": DROPPED[:4]}, {"pseType": 3, "realShiftOptional": floats(3)},
        {"qStartIdxOptional": [1, 2]}, {"actualSeqQLenOptional": [-1, 5]},
    ):  # fmt: skip
        assert refused(name, **{**given, **wrong}) == 161002, wrong
