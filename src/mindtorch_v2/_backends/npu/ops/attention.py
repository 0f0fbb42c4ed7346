"""NPU lines of attention: the vendor's fused function and its gradient.

Invariant: a mask says what is hidden, and is given in one of the documented shapes; numbers that are added to scores,
and dropout, go by the composition.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dtype import bool as bool_
from ...._dtype import float32
from ...common.runtime import empty_contiguous
from ..lines import accepts_dtype, call, fused, npu

FORWARD, BACKWARD = "aclnnFlashAttentionScore", "aclnnFlashAttentionScoreGrad"
# Tokens before and after that may be seen: all of them.
_ALL = 2147483647
# Values of sparseMode: a mask of every score, and one for all that are above the diagonal, of that size.
_GIVEN, _LEFT_UP, _COMPRESSED = 0, 2, 2048
# How often the vendor stores the statistics of a query.
_COPIES = 8
# Values of innerPrecise: plain, and with queries that may look at nothing.
_PLAIN, _SOME_SEE_NOTHING = 0, 2


def _fits(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None,
          enable_gqa: bool) -> bool:
    q, k, v = query._shape, key._shape, value._shape
    n = len(q)
    if n not in (3, 4) or len(k) != n or len(v) != n or dropout_p != 0 or (n == 3 and enable_gqa):
        return False
    if not accepts_dtype(FORWARD, query) or key._dtype is not query._dtype or value._dtype is not query._dtype:
        return False
    if k[:-1] != v[:-1] or q[-1] != k[-1] or q[-1] != v[-1] or q[0] != k[0] or 0 in (*q, *k):
        return False
    if n == 4 and q[1] != k[1] and (not enable_gqa or q[1] % k[1]):
        return False
    if attn_mask is None:
        return True
    return not is_causal and attn_mask._dtype is bool_ and _mask_fits(attn_mask._shape, q, k)


def _mask_fits(shape: Any, q: Any, k: Any) -> bool:
    """Whether a mask can be expanded to every score."""
    scores = (*q[:-1], k[-2])
    short = len(scores) - len(shape)
    return 2 <= len(shape) <= len(scores) and all(m in (1, s) for m, s in zip(shape, scores[short:]))


def _by_head(t: Any) -> Any:
    """(batch, heads, tokens, width)"""
    return t.unsqueeze(1) if len(t._shape) == 3 else t


def _hidden(query: Any, key: Any, attn_mask: Any, is_causal: bool) -> tuple[Any, int]:
    """What may not be seen, and how it is written down."""
    rows, columns = query._shape[-2], key._shape[-2]
    if is_causal:
        if max(rows, columns) <= _COMPRESSED:
            return query.new_ones((rows, columns), dtype=bool_).triu(1), _GIVEN
        return query.new_ones((_COMPRESSED, _COMPRESSED), dtype=bool_).triu(1), _LEFT_UP
    if attn_mask is None:
        return None, _GIVEN
    out = attn_mask.logical_not()
    if len(query._shape) == 3 and len(out._shape) == 3:
        out = out.unsqueeze(1)
    if len(out._shape) == 3:
        out = out.unsqueeze(0)
    if len(out._shape) == 2:
        return out.expand((rows, columns)), _GIVEN
    batch, heads = _by_head(query)._shape[:2]
    if out._shape[1] == 1:
        return out.expand((out._shape[0], 1, rows, columns)), _GIVEN
    return out.expand((batch, heads, rows, columns)), _GIVEN


def _factor(query: Any, scale: float | None) -> float:
    return 1.0 / math.sqrt(query._shape[-1]) if scale is None else float(scale)


def _attention(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool,
               scale: float | None, enable_gqa: bool) -> Any:
    hidden, mode = _hidden(query, key, attn_mask, is_causal)
    q, k, v = _by_head(query), _by_head(key), _by_head(value)
    batch, heads, rows = q._shape[:3]
    dev = query._device
    top, total = (empty_contiguous((batch, heads, rows, _COPIES), float32, dev) for _ in range(2))
    out = empty_contiguous(query._shape, query._dtype, dev)
    call(FORWARD, "scaled_dot_product_attention", q, k, v, None, None, None, hidden, None, _factor(query, scale), 1.0,
         _ALL, _ALL, heads, "BNSD", _PLAIN if attn_mask is None else _SOME_SEE_NOTHING, mode, top, total,
         empty_contiguous((0,), query._dtype, dev), _by_head(out))
    return out, (out, top, total, *(() if hidden is None else (hidden,)))


def _back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    query, key, value, attn_mask, _, is_causal, scale, _ = args
    result, top, total = kept[:3]
    hidden = kept[3] if len(kept) > 3 else None
    compressed = is_causal and max(query._shape[-2], key._shape[-2]) > _COMPRESSED
    grads = [empty_contiguous(t._shape, t._dtype, t._device) for t in (query, key, value)]
    call(BACKWARD, "scaled_dot_product_attention_backward", *(_by_head(t) for t in (query, key, value, grad)), None,
         None, None, hidden, top, total, None, _by_head(result), None, _factor(query, scale), 1.0, _ALL, _ALL,
         _by_head(query)._shape[1], "BNSD", _PLAIN if attn_mask is None else _SOME_SEE_NOTHING,
         _LEFT_UP if compressed else _GIVEN, *(_by_head(t) for t in grads),
         empty_contiguous((0,), query._dtype, query._device))
    return (*(t if need else None for t, need in zip(grads, needs)), None, None, None, None, None)


npu("scaled_dot_product_attention", fused((FORWARD, BACKWARD), _fits, _attention, _back))
