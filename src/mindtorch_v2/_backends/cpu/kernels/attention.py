"""Launches of attention: one native function in blocks of queries and keys, and its gradient.

Invariant: dropout, masks that want gradients, and shapes that have to be broadcast go by the composition.
"""
from __future__ import annotations

import math
from typing import Any, Final

from .... import _native
from ...._dtype import bool as bool_
from ...._dtype import dtype
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, requires_grad
from .dense import deliver, fresh, target, wide_dtype

_attention: Final[Any] = _native.attention
_attention_backward: Final[Any] = _native.attention_backward
_FLOATS: Final = ("float32", "float64", "float16", "bfloat16")


def fits(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None,
          enable_gqa: bool) -> bool:
    q, k, v = query._shape, key._shape, value._shape
    if len(q) != 4 or len(k) != 4 or len(v) != 4 or dropout_p != 0 or query._dtype.name not in _FLOATS:
        return False
    if key._dtype is not query._dtype or value._dtype is not query._dtype:
        return False
    if k[:3] != v[:3] or q[0] != k[0] or q[3] != k[3] or 0 in q or 0 in k or v[3] == 0:
        return False
    if q[1] != k[1] and (not enable_gqa or q[1] % k[1]):
        return False
    return attn_mask is None or _mask_fits(attn_mask, query._dtype, (*q[:3], k[2]))


def _mask_fits(mask: Any, dt: dtype, scores: tuple[int, ...]) -> bool:
    shape = mask._shape
    if mask._dtype is not bool_ and mask._dtype is not dt or requires_grad(mask) or not 2 <= len(shape) <= 4:
        return False
    for m, s in zip(shape, scores[4 - len(shape):]):
        if m != 1 and m != s:
            return False
    return True


def _operand(t: TensorBase) -> tuple[Any, ...]:
    return t._storage, int(t._offset), t._stride, t._dtype.code


def _job(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float | None) -> tuple[Any, ...]:
    """What both functions are told first."""
    batch, heads, queries, width = query._shape
    _, key_heads, keys, value_width = value._shape
    mask: tuple[Any, ...] = (None, 0, (), 0)
    if attn_mask is not None:
        strides = expand_strides(attn_mask, (batch, heads, queries, keys))
        mask = (attn_mask._storage, int(attn_mask._offset), strides, attn_mask._dtype.code)
    return (batch, heads, key_heads, queries, keys, width, value_width, is_causal,
            1.0 / math.sqrt(width) if scale is None else float(scale),
            *_operand(query), *_operand(key), *_operand(value), *mask)


def forward(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool,
             scale: float | None, enable_gqa: bool) -> Any:
    out = fresh((*query._shape[:3], value._shape[3]), query._dtype)
    sums = fresh(query._shape[:3], wide_dtype(query._dtype))
    _attention(*_job(query, key, value, attn_mask, is_causal, scale), *_operand(out), *_operand(sums))
    return out, (out, sums)


def backward(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    query, key, value, attn_mask, _, is_causal, scale, _ = args
    out, sums = kept
    results = [fresh(t._shape, t._dtype) for t in (query, key, value)]
    written = [target(t, wide_dtype(t._dtype)) for t in results]
    _attention_backward(*_job(query, key, value, attn_mask, is_causal, scale), *_operand(grad), *_operand(out),
                               *_operand(sums), *_operand(written[0]), *_operand(written[1]), *_operand(written[2]))
    for result, made in zip(results, written):
        deliver(result, made)
    return (*(t if need else None for t, need in zip(results, needs)), None, None, None, None, None)
