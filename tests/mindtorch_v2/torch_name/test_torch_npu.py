"""The module `torch_npu` that libraries look for: `torch.npu`, and attention in Ascend's layouts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from .. import _npu
from .._subject import mindtorch_only
from .._subject import subject as torch
from ._process import answer

pytestmark = mindtorch_only
HEADS, WIDTH = 4, 8


def plain(q: Any, k: Any, v: Any, hidden: Any) -> Any:
    """Attention of (batch, heads, length, width), written out."""
    k, v = (t.repeat_interleave(HEADS // t.shape[1], 1) for t in (k, v))
    scores = q @ k.mT / math.sqrt(WIDTH)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v


def laid_out(t: Any, layout: str) -> Any:
    if layout == "BNSD":
        return t
    t = t.transpose(1, 2)
    if layout == "BSND":
        return t
    return t.flatten(2) if layout == "BSH" else t.flatten(2).transpose(0, 1)


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("layout", ["BSND", "BNSD", "BSH", "SBH"])
@pytest.mark.parametrize("mode", ["none", "mask", "top left", "down right", "fewer keys"])
def test_attention_in_every_layout(device: str, layout: str, mode: str) -> None:
    from mindtorch_v2.npu._fusion import npu_fusion_attention

    if device == "npu":
        _npu.start()
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, HEADS, n, WIDTH) for n in (5, 7, 7))
    if mode == "fewer keys":
        k, v = k[:, :2], v[:, :2]
    hidden, options = None, {}
    if mode == "mask":
        hidden = torch.rand(5, 7) > 0.7
        options = {"atten_mask": hidden.to(device)}
    elif mode in ("top left", "down right"):
        hidden = torch.ones(5, 7, dtype=torch.bool).triu(1 if mode == "top left" else 3)
        options = {"sparse_mode": 2 if mode == "top left" else 3}
    given = [laid_out(t, layout).to(device).requires_grad_() for t in (q, k, v)]
    out = npu_fusion_attention(*given, HEADS, layout, scale=1 / math.sqrt(WIDTH), **options)[0]
    torch.testing.assert_close(out.cpu(), laid_out(plain(q, k, v, hidden), layout), rtol=2e-5, atol=2e-5)
    out.sum().backward()
    assert all(t.grad is not None for t in given)


def test_attention_of_sequences_one_after_the_other() -> None:
    from mindtorch_v2.npu._fusion import npu_fusion_attention

    torch.manual_seed(0)
    q, k, v = (torch.randn(9, HEADS, WIDTH) for _ in range(3))
    out = npu_fusion_attention(
        *(q, k, v, HEADS, "TND"),
        scale=1 / math.sqrt(WIDTH),
        actual_seq_qlen=(4, 9),
        actual_seq_kvlen=(4, 9),
        sparse_mode=3,
    )[0]
    for a, b in ((0, 4), (4, 9)):
        own = [t[a:b].transpose(0, 1)[None] for t in (q, k, v)]
        hidden = torch.ones(b - a, b - a, dtype=torch.bool).triu(1)
        torch.testing.assert_close(out[a:b], plain(*own, hidden)[0].transpose(0, 1))


def test_what_is_refused_is_named() -> None:
    from mindtorch_v2.npu._fusion import npu_fusion_attention

    t = torch.ones(1, 2, HEADS, WIDTH)
    for options, kind, word in (
        ({"pse": t}, NotImplementedError, "pse"),
        ({"sparse_mode": 4}, NotImplementedError, "sparse_mode"),
        ({"pre_tockens": 3}, NotImplementedError, "pre_tockens"),
        ({"input_layout": "BSX"}, ValueError, "BSX"),
        ({"input_layout": "TND"}, ValueError, "actual_seq_qlen"),
    ):
        with pytest.raises(kind, match=word):
            npu_fusion_attention(t, t, t, HEADS, **{"input_layout": "BSND", **options})


def test_the_module_is_found_where_torch_is_this_package() -> None:
    assert answer(
        "import json, torch, torch_npu; from torch_npu import npu_fusion_attention as f; "
        "print(json.dumps([torch_npu.npu is torch.npu, torch_npu.is_available is torch.npu.is_available, "
        "callable(f), hasattr(torch_npu, 'nothing')]))"
    ) == [True, True, True, False]
