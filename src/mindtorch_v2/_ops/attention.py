"""Attention by scaled dot products.

Invariant: a query that may look at nothing gets zeros, never NaN.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch.op import Op, Spec
from .._dtype import DEFAULTS, float32
from .._dtype import bool as bool_
from .._dtype_names import cpp_name
from . import dropout
from .composites.formulas import narrow, wide
from .rules.base import like, wrap_dim
from .rules.pointwise import broadcast_shapes
from .table import composite, op

_dropout = dropout.DROPOUT


def check(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool) -> None:
    if query._device.type != key._device.type or query._device.type != value._device.type:
        raise RuntimeError("Expected query, key, and value to have the same device type, but got query.device: "
                           f"{query._device} key.device: {key._device} and value.device: {value._device} instead.")
    if query._dtype is not key._dtype or query._dtype is not value._dtype:
        q, k, v = (cpp_name(t._dtype) for t in (query, key, value))
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got query.dtype: "
                           f"{q} key.dtype: {k} and value.dtype: {v} instead.")
    if min(len(t._shape) for t in (query, key, value)) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                           f"{len(query._shape)} key.dim: {len(key._shape)} and value.dim: {len(value._shape)} "
                           "instead.")
    if attn_mask is not None:
        if attn_mask._dtype not in (bool_, float32, query._dtype):
            raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                               f"attn_mask.dtype: {cpp_name(attn_mask._dtype)} and  query.dtype: "
                               f"{cpp_name(query._dtype)} instead.")
        if is_causal:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                               "is_causal=True")


def grouped(query: Any, t: Any) -> Any:
    """Heads of keys and values serve several heads of queries."""
    heads, mine = query.size(-3), t.size(-3)
    if mine == 0 or heads % mine:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    return t if heads == mine else t.repeat_interleave(heads // mine, -3)


def composed(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool,
             scale: float | None, enable_gqa: bool) -> Any:
    # PyTorch's kernel for the CPU takes both; its composition does not.
    both = attn_mask is not None and len(query._shape) == 4 and query._device.type == "cpu" and dropout_p == 0
    check(query, key, value, attn_mask, is_causal and not both)
    if both and len(attn_mask._shape) < 2:
        attn_mask.size(-2)
    if enable_gqa:
        key, value = grouped(query, key), grouped(query, value)
    q, k, v = wide(query), wide(key), wide(value)
    width = query._shape[-1]
    factor = (1.0 / math.sqrt(width) if width else 1.0) if scale is None else scale
    scores = q.matmul(k.transpose(-2, -1)) * factor
    if attn_mask is not None:
        together = broadcast_shapes(scores._shape, attn_mask._shape)
        if together != tuple(scores._shape):
            raise RuntimeError(f"output with shape {list(scores._shape)} doesn't match the broadcast shape "
                               f"{list(together)}")
    hidden: Any = None
    if is_causal:
        rows, columns = query._shape[-2], key._shape[-2]
        hidden = query.detach().new_ones((rows, columns), dtype=bool_).tril().logical_not()
    if attn_mask is not None and attn_mask._dtype is bool_:
        outside = attn_mask.logical_not()
        hidden = outside if hidden is None else outside.logical_or(hidden)
    elif attn_mask is not None:
        scores = scores + attn_mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    weights = scores.softmax(-1)
    if hidden is not None or attn_mask is not None:
        nowhere = (scores.detach() == -math.inf).all(-1, True)
        weights = weights.masked_fill(nowhere, 0)
    if dropout_p > 0:
        weights = _dropout.call((weights, dropout_p, True))
    return narrow(weights.matmul(v), query)


def _safe_softmax(self: Any, dim: int, dtype: Any) -> Any:
    """Softmax whose rows of nothing but -inf are zero."""
    nothing = (self == -math.inf).all(dim, True)
    out = self.softmax(dim, dtype)
    return out.masked_fill(nothing, 0)


def _safe_softmax_meta(self: Any, dim: int, dtype: Any) -> Spec:
    wrap_dim(dim, self.dim())
    wanted = dtype if dtype is not None else self._dtype if self._dtype.is_inexact else DEFAULTS.dtype
    return like(self, None, wanted)


op("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", meta=_safe_softmax_meta,
   kernel=_safe_softmax, method=False,
   grad=dict(self=lambda g, result, dim: (g - (g * result).sum((dim,), True)) * result))
ATTENTION: Op = composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    composed, function=False, method=False)
