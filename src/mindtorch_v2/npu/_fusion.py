"""What libraries call of `torch_npu` besides `torch.npu`: attention in Ascend's layouts.

Invariant: everything is public operators, so that it is recorded, and runs wherever they do; on an NPU
`scaled_dot_product_attention` is the vendor's fused function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_LAYOUTS = ("BSND", "BNSD", "BSH", "SBH", "TND")
_NO_MASK, _TOP_LEFT, _DOWN_RIGHT = 0, 2, 3
_FAR = 2147483647


def npu_fusion_attention(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _FAR,
    next_tockens: int = _FAR,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
) -> tuple[Any, ...]:
    """Attention; a mask is True where nothing is seen. The first of the results is the output; of the others, which
    the vendor's function keeps for its backward pass, none is needed here, and each is None."""
    if input_layout not in _LAYOUTS:
        raise ValueError(f"npu_fusion_attention: input_layout is one of {', '.join(_LAYOUTS)}, not {input_layout!r}")
    refused = {"pse": pse, "padding_mask": padding_mask, "prefix": prefix}
    for name, given in refused.items():
        if given is not None:
            raise NotImplementedError(f"npu_fusion_attention: {name} is not supported; use atten_mask")
    if sparse_mode not in (_NO_MASK, _TOP_LEFT, _DOWN_RIGHT) or (pre_tockens, next_tockens) != (_FAR, _FAR):
        raise NotImplementedError("npu_fusion_attention: bands (pre_tockens, next_tockens, sparse_mode) are masks here")
    if input_layout == "TND":
        out = _by_sequences(
            query, key, value, actual_seq_qlen, actual_seq_kvlen, atten_mask, scale, keep_prob, sparse_mode
        )
    else:
        width = query.shape[-1] // head_num
        q, k, v = (_split(t, input_layout, width) for t in (query, key, value))
        out = _merge(_attend(q, k, v, atten_mask, scale, keep_prob, sparse_mode), input_layout)
    return (out, None, None, None, None, None, None)


def _attend(q: Any, k: Any, v: Any, mask: Any, scale: float, keep: float, mode: int) -> Any:
    """Of (batch, heads, length, width)."""
    import mindtorch_v2 as torch

    if mode != _NO_MASK:
        rows, columns = q.shape[-2], k.shape[-2]
        shift = columns - rows if mode == _DOWN_RIGHT else 0
        mask = torch.ones(rows, columns, dtype=torch.bool, device=q.device).triu(1 + shift)
    return torch.nn.functional.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=None if mask is None else mask.bool().logical_not(),
        dropout_p=1.0 - keep,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )


def _by_sequences(
    q: Any, k: Any, v: Any, q_ends: Any, k_ends: Any, mask: Any, scale: float, keep: float, mode: int
) -> Any:
    """Sequences one after the other in one dimension, by where each ends."""
    import mindtorch_v2 as torch

    if q_ends is None or k_ends is None:
        raise ValueError("npu_fusion_attention: layout TND needs actual_seq_qlen and actual_seq_kvlen")
    parts, q_from, k_from = [], 0, 0
    for q_to, k_to in zip(q_ends, k_ends):
        one, two, three = (t.transpose(0, 1).unsqueeze(0) for t in (q[q_from:q_to], k[k_from:k_to], v[k_from:k_to]))
        parts.append(_attend(one, two, three, mask, scale, keep, mode)[0].transpose(0, 1))
        q_from, k_from = q_to, k_to
    return torch.cat(parts)


def _split(t: Any, layout: str, width: int) -> Any:
    """As (batch, heads, length, width). Keys may have fewer heads than queries, each of the same width."""
    if layout == "BNSD":
        return t
    if layout == "BSND":
        return t.transpose(1, 2)
    if layout == "SBH":
        t = t.transpose(0, 1)
    return t.unflatten(2, (-1, width)).transpose(1, 2)


def _merge(t: Any, layout: str) -> Any:
    if layout == "BNSD":
        return t
    t = t.transpose(1, 2)
    if layout == "BSND":
        return t
    t = t.flatten(2)
    return t.transpose(0, 1) if layout == "SBH" else t
