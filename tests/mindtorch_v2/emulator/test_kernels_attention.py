"""The emulator's attention, rotary embedding, recurrent cell and alignment loss against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ._cases import FLOATS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, Refused, assert_same, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
SCALE = 0.5
FAR = 2147483647
B, N, S, T, D = 2, 4, 3, 5, 6
COMPRESSED = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def like(x: Any, *values: Any) -> list[Any]:
    return [v.to(x.dtype).contiguous() for v in values]


def attention(q: Any, k: Any, v: Any, hidden: Any = None, shift: Any = 0.0, keep: Any = None) -> Any:
    """Of (batch, heads, sequence, size), in float64."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = SCALE * (q @ k.mT + shift)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    weights = scores.softmax(-1)
    return (weights if keep is None else weights * keep) @ v


ORDERS = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}


def laid_out(x: Any, layout: str) -> Any:
    """A tensor of (batch, heads, sequence, size) as the layout has it."""
    y = x.permute(ORDERS[layout])
    return y.flatten(2) if len(layout) == 3 else y


def mask_of(mode: int, t: Maker, before: int, after: int) -> tuple[Any, Any]:
    """What is passed as the mask, and which scores it hides."""
    distance = torch.arange(T)[None, :] - torch.arange(S)[:, None]
    shifted = distance - (T - S)
    if mode in (0, 1):
        given = t(B, 1, S, T, dtype="bool") & (torch.arange(T) > 0)  # no query sees nothing
        band = (distance > after) | (-distance > before) if mode == 0 else torch.zeros_like(distance).bool()
        return given, given | band
    if mode == 2:
        return COMPRESSED, distance > 0
    if mode == 3:
        return COMPRESSED, shifted > 0
    return COMPRESSED, (shifted > after) | (shifted < -before)


def drop_mask(t: Maker, keep: float) -> tuple[Any, Any]:
    """Which scores dropout keeps: a bit each, and as factors."""
    size = B * N * S * T
    flat = torch.rand(-(-size // 128) * 128, generator=t.generator) < keep
    bits = torch.from_numpy(np.packbits(flat.numpy(), bitorder="little"))
    return bits, flat[:size].reshape(B, N, S, T).double() / keep


def scored(
    layout: str,
    kv_heads: int = N,
    mode: int | None = None,
    before: int = FAR,
    after: int = FAR,
    shift: bool = False,
    keep: float = 1.0,
    version: str = "",
) -> list[Case]:
    common: dict[str, Any] = {
        "scaleValue": SCALE,
        "keepProb": keep,
        "preTokens": before,
        "nextTokens": after,
        "headNum": N,
        "inputLayout": layout,
        "innerPrecise": 0,
        "sparseMode": mode or 0,
    }
    if version:
        common |= {"pseType": 1, "qStartIdxOptional": None, "kvStartIdxOptional": None}

    def build(t: Maker, backward: bool) -> Built:
        q, k, v = t(B, N, S, D), t(B, kv_heads, T, D), t(B, kv_heads, T, D)
        mask, hidden = (None, None) if mode is None else mask_of(mode, t, before, after)
        pse = t(B, N, S, T) if shift else None
        bits, kept = (None, None) if keep >= 1 else drop_mask(t, keep)
        wide = [x.double().requires_grad_() for x in (q, k, v)]
        extra = 0.0 if pse is None else pse.double()
        out = attention(*wide, hidden, extra, kept)
        scores = SCALE * (wide[0] @ wide[1].repeat_interleave(N // kv_heads, 1).mT + extra).detach()
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        top = scores.amax(-1, keepdim=True)
        total = (scores - top).exp().sum(-1, keepdim=True)
        statistics = [x.float().expand(B, N, S, 8).contiguous() for x in (top, total)]
        given = {
            "query": laid_out(q, layout),
            "value": laid_out(v, layout),
            "dropMaskOptional": bits,
            "attenMaskOptional": mask,
            "prefixOptional": None,
            **common,
        }
        answer = laid_out(like(q, out.detach())[0], layout).contiguous()
        unused = torch.zeros(0)
        if not backward:
            return (
                {**given, "key": laid_out(k, layout), "realShiftOptional": pse},
                {
                    "softmaxMaxOut": statistics[0],
                    "softmaxSumOut": statistics[1],
                    "softmaxOutOut": unused,
                    "attentionOutOut": answer,
                },
            )
        g = t(B, N, S, D)
        want = like(q, *torch.autograd.grad(out, wide, g.double()))
        names = ("dqOut", "dkOut", "dvOut")
        return (
            {
                **given,
                "keyIn": laid_out(k, layout),
                "dy": laid_out(g, layout),
                "pseShiftOptional": pse,
                "softmaxMaxOptional": statistics[0],
                "softmaxSumOptional": statistics[1],
                "softmaxInOptional": None,
                "attentionInOptional": answer,
            },
            {**{n: laid_out(w, layout).contiguous() for n, w in zip(names, want)}, "dpseOut": unused},
        )

    return [
        Case(f"aclnnFlashAttentionScore{version}", FLOATS, lambda t: build(t, False), 2),
        Case(f"aclnnFlashAttentionScoreGrad{version}", FLOATS, lambda t: build(t, True), 8),
    ]


def prompt(layout: str, kv_heads: int, masked: bool, after: int) -> Case:
    def build(t: Maker) -> Built:
        q, k, v = t(B, N, S, D), t(B, kv_heads, T, D), t(B, kv_heads, T, D)
        mask: Any
        mask, hidden = mask_of(0, t, FAR, after) if masked else (None, None)
        want = like(q, attention(q.double(), k.double(), v.double(), hidden))[0]
        inner, outer = layout.split("_")[0], layout.split("_")[-1]
        return (
            {
                "query": laid_out(q, inner).contiguous(),
                "key": laid_out(k, inner).contiguous(),
                "value": laid_out(v, inner).contiguous(),
                "pseShift": None,
                "attenMask": mask.contiguous() if masked else None,
                "actualSeqLengths": None,
                "numHeads": N,
                "scaleValue": SCALE,
                "preTokens": FAR,
                "nextTokens": after,
                "inputLayout": layout,
                "numKeyValueHeads": kv_heads if kv_heads != N else 0,
            },
            {"attentionOut": laid_out(want, outer).contiguous()},
        )

    return Case("aclnnPromptFlashAttention", FLOATS[1:], build, 2)


def step(layout: str, kv_heads: int, lengths: list[int] | None) -> Case:
    def build(t: Maker) -> Built:
        q, k, v = t(B, N, 1, D), t(B, kv_heads, T, D), t(B, kv_heads, T, D)
        hidden = None if lengths is None else torch.arange(T) >= torch.tensor(lengths)[:, None, None, None]
        want = like(q, attention(q.double(), k.double(), v.double(), hidden))[0]
        return (
            {
                "query": laid_out(q, layout).contiguous(),
                "key": [laid_out(k, layout).contiguous()],
                "value": [laid_out(v, layout).contiguous()],
                "pseShift": None,
                "attenMask": None,
                "actualSeqLengths": lengths,
                "numHeads": N,
                "scaleValue": SCALE,
                "inputLayout": layout,
                "numKeyValueHeads": kv_heads,
            },
            {"attentionOut": laid_out(want, layout).contiguous()},
        )

    return Case("aclnnIncreFlashAttention", FLOATS[1:], build, 2)


# -- rotary embedding ------------------------------------------------------------------------------------------------
def turned(x: Any, cos: Any, sin: Any, mode: int) -> Any:
    if mode == 0:
        a, b = x.chunk(2, -1)
        y = torch.cat((-b, a), -1)
    else:
        y = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + y * sin


def rotary(mode: int) -> list[Case]:
    def forward(t: Maker) -> Built:
        x, cos, sin = t(2, 3, 4, 6), t(1, 3, 1, 6), t(1, 3, 1, 6)
        return (
            {"x": x, "cos": cos, "sin": sin, "mode": mode},
            {"out": like(x, turned(x.double(), cos.double(), sin.double(), mode))[0]},
        )

    def backward(t: Maker) -> Built:
        x, cos, sin, g = t(2, 3, 4, 6), t(1, 3, 1, 6), t(1, 3, 1, 6), t(2, 3, 4, 6)
        wide = [v.double().requires_grad_() for v in (x, cos, sin)]
        want = like(x, *torch.autograd.grad(turned(*wide, mode), wide, g.double()))
        return (
            {"dy": g, "cos": cos, "sin": sin, "xOptional": x, "mode": mode},
            dict(zip(("dxOut", "dcosOut", "dsinOut"), want)),
        )

    return [
        Case("aclnnRotaryPositionEmbedding", FLOATS, forward, 2),
        Case("aclnnRotaryPositionEmbeddingGrad", FLOATS, backward, 4),
    ]


def apply_rotary(layout: int, *lead: int) -> Case:
    def build(t: Maker) -> Built:
        q, k, cos, sin = t(*lead, 4, 64), t(*lead, 2, 64), t(*lead, 1, 64), t(*lead, 1, 64)
        want = [like(x, turned(x.double(), cos.double(), sin.double(), 0))[0] for x in (q, k)]
        return (
            {"queryRef": q, "keyRef": k, "cos": cos, "sin": sin, "layout": layout},
            {"queryRef": want[0], "keyRef": want[1]},
        )

    return Case("aclnnApplyRotaryPosEmb", FLOATS, build, 2)


# -- recurrent cell --------------------------------------------------------------------------------------------------
def cell(gates: Any, c: Any) -> tuple[Any, Any, Any]:
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    after = f * c + i * g
    return o * after.tanh(), after, torch.cat((i, f, g, o), 1)


def lstm(biased: bool) -> list[Case]:
    def forward(t: Maker) -> Built:
        x, h, c, b, d = t(3, 8), t(3, 8), t(3, 2), t(8), t(8)
        gates = x.double() + h.double() + (b.double() + d.double() if biased else 0)
        want = like(x, *cell(gates, c.double()))
        return (
            {
                "inputGates": x,
                "hiddenGates": h,
                "cx": c,
                "inputBiasOptional": b if biased else None,
                "hiddenBiasOptional": d if biased else None,
            },
            dict(zip(("hyOut", "cyOut", "storageOut"), want)),
        )

    def backward(t: Maker) -> Built:
        gates, c, dh, dc = t(3, 8), t(3, 2), t(3, 2), t(3, 2)
        wide = [gates.double().requires_grad_(), c.double().requires_grad_()]
        h, after, storage = cell(*wide)
        grads = torch.autograd.grad((h, after), wide, (dh.double(), dc.double()))
        saved = like(gates, after.detach(), storage.detach())
        want = like(gates, grads[0], grads[1], grads[0].sum(0))
        return (
            {"gradHyOptional": dh, "gradCOptional": dc, "cx": c, "cy": saved[0], "storage": saved[1], "hasBias": True},
            dict(zip(("gradGatesOut", "gradCxOut", "gradBiasOut"), want)),
        )

    return [
        Case("aclnnThnnFusedLstmCell", FLOATS[:2], forward),
        Case("aclnnThnnFusedLstmCellBackward", FLOATS[:2], backward, 4),
    ]


# -- alignment loss --------------------------------------------------------------------------------------------------
def alignment(joined: bool, blank: int) -> list[Case]:
    times, lengths = [6, 5, 1], [3, 2, 2]  # the last has no alignment

    def build(t: Maker, backward: bool) -> Built:
        x = t(6, 3, 5).double().log_softmax(-1).to(getattr(torch, t.dtype))
        labels = (t.index(4, 3, 3) + (blank == 0)).clone()
        given = torch.cat([labels[n, :s] for n, s in enumerate(lengths)]) if joined else labels
        loss, alpha = torch.ops.aten._ctc_loss(x.double(), given, times, lengths, blank, True)
        loss, alpha = loss.to(x.dtype), alpha.to(x.dtype)
        common = {"logProbs": x, "targets": given, "inputLengths": times, "blank": blank, "zeroInfinity": True}
        if not backward:
            # PyTorch leaves what no alignment reaches unwritten.
            for n, (time, size) in enumerate(zip(times, lengths)):
                alpha[n, time:] = -torch.inf
                alpha[n, :, 2 * size + 1 :] = -torch.inf
            return {**common, "targetlengths": lengths}, {"negLogLikelihoodOut": loss, "logAlphaOut": alpha}
        g = t(3)
        want = torch.ops.aten._ctc_loss_backward(
            g.double(), x.double(), given, times, lengths, loss.double(), alpha.double(), blank, True
        )
        return (
            {**common, "targetLengths": lengths, "gradOut": g, "negLogLikelihood": loss, "logAlpha": alpha},
            {"out": want.to(x.dtype)},
        )

    return [
        Case("aclnnCtcLoss", ("float32", "float64"), lambda t: build(t, False), 4),
        Case("aclnnCtcLossBackward", ("float32", "float64"), lambda t: build(t, True), 8),
    ]


CASES = [
    *(case for layout in ORDERS for case in scored(layout)),
    *scored("BNSD", 2),
    *scored("BSH", 1, 0),
    *scored("BSND", 2, 1),
    *scored("BNSD", N, 0, before=2, after=1),
    *scored("BNSD", N, 2),
    *scored("BSH", N, 3),
    *scored("SBH", N, 4, 1, 1),
    *scored("BNSD", N, 0, shift=True),
    *scored("BSND", 2, 3, shift=True, version="V2"),
    *scored("BNSD", N, None, keep=0.75),
    prompt("BNSD", N, False, FAR),
    prompt("BSH", 2, True, FAR),
    prompt("BSND", N, True, 1),
    prompt("BNSD_BSND", 2, True, FAR),
    step("BNSD", 2, None),
    step("BSH", N, [3, 5]),
    step("BSND", 1, [4, 2]),
    *rotary(0),
    *rotary(1),
    apply_rotary(1, 2, 3),
    apply_rotary(4, 5),
    *lstm(True),
    *lstm(False),
    *alignment(False, 0),
    *alignment(True, 0),
    *alignment(False, 4),
]


@each(CASES)
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


def score_arguments(**changed: Any) -> dict[str, Any]:
    x = torch.ones(1, 2, 3, 4)
    return {
        "query": x,
        "key": x,
        "value": x,
        "scaleValue": 1.0,
        "keepProb": 1.0,
        "preTokens": FAR,
        "nextTokens": FAR,
        "headNum": 2,
        "inputLayout": "BNSD",
        "innerPrecise": 0,
        "sparseMode": 0,
        "softmaxMaxOut": Out((1, 2, 3, 8)),
        "softmaxSumOut": Out((1, 2, 3, 8)),
        "softmaxOutOut": Out((0,)),
        "attentionOutOut": Out((1, 2, 3, 4)),
        **changed,
    }


def test_a_query_that_sees_nothing_gives_zero() -> None:
    hidden = torch.zeros(3, 3, dtype=torch.bool)
    hidden[1] = True
    out = call("aclnnFlashAttentionScore", **score_arguments(attenMaskOptional=hidden, sparseMode=1))[-1]
    assert_same(out, torch.tensor([1.0, 0.0, 1.0])[:, None].expand(1, 2, 3, 4))


@pytest.mark.parametrize(
    "changed",
    [
        {"inputLayout": "BDSN"},
        {"keepProb": 0.0},
        {"keepProb": 1.5},
        {"sparseMode": 7},
        {"sparseMode": 2},
        {"headNum": 3},
        {"sparseMode": 3, "attenMaskOptional": torch.ones(3, 3, dtype=torch.bool)},
        {"attenMaskOptional": torch.ones(4, 3, dtype=torch.bool)},
        {"softmaxMaxOut": Out((1, 2, 3, 1))},
        {"attentionOutOut": Out((1, 2, 3, 5))},
        {"key": torch.ones(1, 2, 3, 5)},
    ],
)
def test_attention_refuses(changed: dict[str, Any]) -> None:
    assert refused("aclnnFlashAttentionScore", **score_arguments(**changed)) == 161002


def test_attention_needs_its_inputs() -> None:
    assert refused("aclnnFlashAttentionScore", **score_arguments(query=None)) == 161001


def test_other_refusals() -> None:
    x = torch.ones(2, 3, 4, 64)
    for layout, size in ((2, 64), (1, 32)):
        y = x[..., :size].contiguous()
        assert refused("aclnnApplyRotaryPosEmb", queryRef=y, keyRef=y, cos=y, sin=y, layout=layout) == 161002
    assert refused("aclnnRotaryPositionEmbedding", x=x, cos=x, sin=x, mode=9, out=Out((2, 3, 4, 64))) == 161002


def test_a_label_out_of_range_is_a_fault_of_the_device() -> None:
    with pytest.raises(Refused, match="out of range") as caught:
        call(
            "aclnnCtcLoss",
            logProbs=torch.zeros(4, 1, 3),
            targets=torch.tensor([[3]]),
            inputLengths=[4],
            targetlengths=[1],
            blank=0,
            zeroInfinity=False,
            negLogLikelihoodOut=Out((1,)),
            logAlphaOut=Out((1, 4, 3)),
        )
    assert caught.value.code == 507015
