"""Attention with several heads.

Invariant: sequences come first, then the batch, as in PyTorch; masks are additive once they are inside.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ._activations import softmax
from ._layers import dropout, linear, pad, scaled_dot_product_attention


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any, heads: int) -> bool:
    """Whether the inputs are batched."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != query.dim() - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D but found "
            f"{padding.dim()}-D tensor instead"
        )
    if mask is not None:
        if mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor "
                "instead"
            )
        if not batched and mask.dim() == 3:
            expected = (heads, query.shape[0], key.shape[0])
            if tuple(mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return batched


def _additive(mask: Any, name: str, other: Any, other_name: str, dtype: Any) -> Any:
    """Where a bool mask holds, minus infinity."""
    if mask is None:
        return None
    if mask.dtype is not torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


def _projected(query: Tensor, key: Tensor, value: Tensor, packed: Any, bias: Any, apart: Any) -> list[Any]:
    """Queries, keys and values from one packed weight or from three."""
    weights = list(packed.chunk(3)) if apart is None else list(apart)
    biases: list[Any] = [None, None, None] if bias is None else list(bias.chunk(3))
    if apart is None and query is key and key is value:
        # One product instead of three.
        joined = linear(query, packed, bias)
        return [part.contiguous() for part in joined.chunk(3, -1)]
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        alike = query is key, key is value
        query = query.unsqueeze(1)
        key = query if alike[0] else key.unsqueeze(1)
        value = key if alike[1] else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    padding = _additive(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        mask: Any = None
    else:
        mask = _additive(attn_mask, "attn_mask", None, "", query.dtype)
        is_causal = is_causal and padding is None
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    each = width // num_heads
    if each * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        apart: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
        for weight, name in zip(apart, "qkv"):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        apart = None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, apart)
    if mask is not None:
        wanted = (length, key.shape[0]) if mask.dim() == 2 else (batch * num_heads, length, key.shape[0])
        if tuple(mask.shape) != wanted:
            raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
        mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
    if (bias_k is None) != (bias_v is None):
        there, missing = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{there} is set but {missing} is None")
    longer = 0
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        longer += 1

    def by_head(t: Any) -> Any:
        return t.contiguous().view(t.shape[0], batch * num_heads, each).transpose(0, 1)

    q = by_head(q)
    k = by_head(k) if static_k is None else _given(static_k, "static_k", batch * num_heads, each)
    v = by_head(v) if static_v is None else _given(static_v, "static_v", batch * num_heads, each)
    if add_zero_attn:
        nothing = k.new_zeros((batch * num_heads, 1, each))
        k, v = torch.cat([k, nothing], dim=1), torch.cat([v, nothing], dim=1)
        longer += 1
    if longer:
        mask = None if mask is None else pad(mask, (0, longer))
        padding = None if padding is None else pad(padding, (0, longer))
    source = k.shape[1]
    if padding is not None:
        if tuple(padding.shape) != (batch, source):
            raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {padding.shape}")
        spread = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        spread = spread.reshape(batch * num_heads, 1, source)
        mask = spread if mask is None else mask + spread
    rate = dropout_p if training else 0.0
    if need_weights:
        q, k = q * math.sqrt(1.0 / each), k.transpose(-2, -1)
        weights: Any = softmax(torch.bmm(q, k) if mask is None else torch.baddbmm(mask, q, k), dim=-1)
        if rate > 0.0:
            weights = dropout(weights, rate)
        out = torch.bmm(weights, v).transpose(0, 1).reshape(length * batch, width)
        weights = weights.view(batch, num_heads, length, source)
        weights = weights.mean(dim=1) if average_attn_weights else weights
    else:
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, num_heads, -1, source)
        q, k, v = (t.reshape(batch, num_heads, -1, each) for t in (q, k, v))
        out = scaled_dot_product_attention(q, k, v, mask, rate, is_causal)
        out = out.permute(2, 0, 1, 3).reshape(batch * length, width)
        weights = None
    out = linear(out, out_proj_weight, out_proj_bias)
    out = out.view(length, batch, out.shape[1])
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


def _given(t: Tensor, name: str, rows: int, width: int) -> Tensor:
    for dim, wanted in ((0, rows), (2, width)):
        if t.shape[dim] != wanted:
            raise AssertionError(f"expecting {name}.size({dim}) of {wanted}, but got {t.shape[dim]}")
    return t
