"""A layer of a transformer's encoder as one operator, and its attention: what PyTorch runs where nothing is recorded.

Invariant: masks say what is hidden, whatever their dtype; a query that may look at nothing gives NaN, unlike
`scaled_dot_product_attention`, as in PyTorch.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op
from .._dtype import bool as bool_
from . import attention
from .table import composite

_linear = registry.get("linear")
_layer_norm = registry.get("layer_norm")
_gelu = registry.get("gelu")
# Kinds of masks: (queries, keys) for all, (batch, keys), and the shape of the scores.
_OF_PAIRS, _OF_KEYS, _OF_SCORES = 0, 1, 2


def _check(query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any) -> None:
    for t, name in ((query, "query"), (key, "key"), (value, "value")):
        if len(t._shape) != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {len(t._shape)}-D tensor")
    if query._shape[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query._shape[2]}")
    if not query._shape == key._shape == value._shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if len(qkv_weight._shape) != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {len(qkv_weight._shape)}-D tensor")
    if qkv_weight._shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if len(qkv_bias._shape) != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {len(qkv_bias._shape)}-D tensor")
    if qkv_bias._shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def _hidden(mask: Any, kind: int | None, shape: tuple[int, ...]) -> Any:
    """A mask that can be expanded to the scores."""
    batch, _, rows, columns = shape
    given = tuple(mask._shape)
    if kind is None and given != shape:
        # PyTorch knows this shape without being told.
        raise RuntimeError("Mask Type should be defined" if len(given) != 4
                           else "For mask_type == 2 mask shape should match input shape")
    if kind == _OF_PAIRS:
        if given != (rows, columns):
            raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
        mask = mask.view((1, 1, rows, columns))
    elif kind == _OF_KEYS:
        if given != (batch, columns):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        mask = mask.view((batch, 1, 1, columns))
    elif given != shape:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    return mask if mask._dtype is bool_ else mask.to(bool_)


def _projected(query: Any, key: Any, value: Any, num_head: int, weight: Any, bias: Any) -> list[Any]:
    """Queries, keys and values as (batch, heads, tokens, width of a head)."""
    if query is key and key is value:
        parts = _linear.call((query, weight, bias)).chunk(3, -1)
    else:
        pieces = zip((query, key, value), weight.chunk(3, 0), bias.chunk(3, 0))
        parts = [_linear.call((t, w, b)) for t, w, b in pieces]
    batch, tokens, width = query._shape
    return [part.view((batch, tokens, num_head, width // num_head)).transpose(1, 2) for part in parts]


def _attention(query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any,
               proj_weight: Any, proj_bias: Any, mask: Any, need_weights: bool, average_attn_weights: bool,
               mask_type: int | None) -> tuple[Any, Any]:
    _check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    if query.numel() == 0:
        return query.new_empty(query._shape), None
    q, k, v = _projected(query, key, value, num_head, qkv_weight, qkv_bias)
    weights = None
    if mask is None and not need_weights:
        out = attention.ATTENTION.call((q, k, v, None, 0.0, False, None, False))
    else:
        scores = (q * (1.0 / math.sqrt(embed_dim // num_head))).matmul(k.transpose(-2, -1))
        if mask is not None:
            scores = scores.masked_fill(_hidden(mask, mask_type, tuple(scores._shape)), -math.inf)
        weights = scores.softmax(-1)
        out = weights.matmul(v)
    out = _linear.call((out.transpose(1, 2).reshape(query._shape), proj_weight, proj_bias))
    if not need_weights or weights is None:
        return out, None
    return out, weights.mean((1,)) if average_attn_weights else weights


ATTENTION: Op = composite(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
    "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, "
    "bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)", _attention)


def _encoder_layer(src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
                   proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any,
                   norm_weight_2: Any, norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any,
                   ffn_bias_2: Any, mask: Any, mask_type: int | None) -> Any:
    def norm(t: Any, weight: Any, bias: Any) -> Any:
        return _layer_norm.call((t, (embed_dim,), weight, bias, eps, True))

    def forward(t: Any) -> Any:
        inner = _linear.call((t, ffn_weight_1, ffn_bias_1))
        return _linear.call((_gelu.call((inner, "none")) if use_gelu else inner.relu(), ffn_weight_2, ffn_bias_2))

    # Sums are made in place, so that under autocast they have the dtype of the products, as PyTorch's have.
    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    x = ATTENTION.call((x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True,
                        mask_type))[0].add_(src)
    if norm_first:
        return forward(norm(x, norm_weight_2, norm_bias_2)).add_(x)
    x = norm(x, norm_weight_1, norm_bias_1)
    return norm(forward(x).add_(x), norm_weight_2, norm_bias_2)


composite(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, "
    "Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, "
    "Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor", _encoder_layer)
