"""Attention with several heads.

Invariant: sequences come first, then the batch, as in PyTorch; masks are additive once they are inside.
"""

import math
from typing import Any

import mindtorch_v2 as torch

from ... import _warn
from ..._tensor import Tensor
from ._activations import softmax
from ._layers import dropout, pad, scaled_dot_product_attention
from ._rows import here


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


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:
    """A mask to be added to scores: minus infinity where a bool mask holds."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype is not torch.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        _warn.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead."
        )
    return mask if floating else torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Any) -> Any:
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _masks(query: Tensor, padding: Any, mask: Any, is_causal: bool, need_weights: bool) -> tuple[Any, Any, bool]:
    """Both masks as numbers to be added, and whether the attention may be told that it is causal instead."""
    padding = _canonical_mask(padding, "key_padding_mask", _none_or_dtype(mask), "attn_mask", query.dtype)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return None, None, True
    mask = _canonical_mask(mask, "attn_mask", None, "", query.dtype, False)
    return padding, mask, is_causal and padding is None


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, packed: Any, apart: Any) -> None:
    if query.shape[2] != width:
        raise AssertionError(f"was expecting embedding dimension of {width}, but got {query.shape[2]}")
    if width // heads * heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {heads}")
    if apart is None:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if packed is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return
    if key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    for weight, name in zip(apart, "qkv"):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")


def _projected(query: Tensor, key: Tensor, value: Tensor, packed: Any, bias: Any, apart: Any) -> list[Any]:
    """Queries, keys and values from one packed weight or from three."""
    weights = list(packed.chunk(3)) if apart is None else list(apart)
    biases: list[Any] = [None, None, None] if bias is None else list(bias.chunk(3))
    if apart is None and query is key and key is value:
        # One product instead of three.
        joined = here("linear")(query, packed, bias)
        return [part.contiguous() for part in joined.chunk(3, -1)]
    return [here("linear")(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


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
    padding, mask, is_causal = _masks(query, key_padding_mask, attn_mask, is_causal, need_weights)
    apart = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, apart)
    length, batch, width = query.shape
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, apart)
    mask = _for_every_head(mask, length, key.shape[0], batch * num_heads)
    k, v, longer = _with_bias(k, v, bias_k, bias_v, static_k, static_v)
    each = width // num_heads
    q = _by_head(q, batch * num_heads, each)
    k = _by_head(k, batch * num_heads, each) if static_k is None else _given(static_k, "k", batch * num_heads, each)
    v = _by_head(v, batch * num_heads, each) if static_v is None else _given(static_v, "v", batch * num_heads, each)
    if add_zero_attn:
        nothing = k.new_zeros((batch * num_heads, 1, each))
        k, v = torch.cat([k, nothing], dim=1), torch.cat([v, nothing], dim=1)
        longer += 1
    if longer:
        mask = None if mask is None else pad(mask, (0, longer))
        padding = None if padding is None else pad(padding, (0, longer))
    mask = _merged(mask, padding, batch, num_heads, k.shape[1])
    rate = dropout_p if training else 0.0
    if need_weights:
        out, weights = _weighed(q, k, v, mask, rate, batch, num_heads, average_attn_weights)
    else:
        out, weights = _attended(q, k, v, mask, rate, batch, num_heads, is_causal), None
    out = here("linear")(out, out_proj_weight, out_proj_bias)
    out = out.view(length, batch, out.shape[1])
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


def _for_every_head(mask: Any, length: int, source: int, heads: int) -> Any:
    """A mask with three dimensions: the first is one, or the heads of all sequences."""
    if mask is None:
        return None
    wanted = (length, source) if mask.dim() == 2 else (heads, length, source)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _with_bias(k: Any, v: Any, bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> tuple[Any, Any, int]:
    """Keys and values with one that is learnt, and by how much they grew."""
    if bias_k is None and bias_v is None:
        return k, v, 0
    if bias_k is None or bias_v is None:
        there, missing = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{there} is set but {missing} is None")
    for static, name in ((static_k, "key"), (static_v, "value")):
        if static is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    batch = k.shape[1]
    return torch.cat([k, bias_k.repeat(1, batch, 1)]), torch.cat([v, bias_v.repeat(1, batch, 1)]), 1


def _by_head(t: Any, heads: int, each: int) -> Any:
    return t.contiguous().view(t.shape[0], heads, each).transpose(0, 1)


def _given(t: Tensor, name: str, heads: int, each: int) -> Tensor:
    for dim, wanted in ((0, heads), (2, each)):
        if t.shape[dim] != wanted:
            raise AssertionError(f"expecting static_{name}.size({dim}) of {wanted}, but got {t.shape[dim]}")
    return t


def _merged(mask: Any, padding: Any, batch: int, heads: int, source: int) -> Any:
    """What is hidden from some queries, and what from all."""
    if padding is None:
        return mask
    for dim, wanted in enumerate((batch, source)):
        if padding.shape[dim] != wanted:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {padding.shape[dim]}")
    spread = padding.view(batch, 1, 1, source).expand(-1, heads, -1, -1).reshape(batch * heads, 1, source)
    return spread if mask is None else mask + spread


def _weighed(q: Any, k: Any, v: Any, mask: Any, rate: float, batch: int, heads: int, average: bool) -> tuple[Any, Any]:
    """Attention with its weights."""
    _, length, each = q.shape
    scaled, turned = q * math.sqrt(1.0 / each), k.transpose(-2, -1)
    scores = torch.bmm(scaled, turned) if mask is None else torch.baddbmm(mask, scaled, turned)
    weights: Any = softmax(scores, dim=-1)
    if rate > 0.0:
        weights = dropout(weights, rate)
    out = torch.bmm(weights, v).transpose(0, 1).reshape(length * batch, heads * each)
    weights = weights.view(batch, heads, length, k.shape[1])
    return out, weights.mean(dim=1) if average else weights


def _attended(q: Any, k: Any, v: Any, mask: Any, rate: float, batch: int, heads: int, is_causal: bool) -> Any:
    """Attention alone."""
    _, length, each = q.shape
    source = k.shape[1]
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, heads, mask.shape[1], source)
    q, k, v = (t.reshape(batch, heads, t.shape[1], each) for t in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, mask, rate, is_causal)
    return out.permute(2, 0, 1, 3).reshape(batch * length, heads * each)
