"""Attention with several heads, and transformers."""
from __future__ import annotations

from typing import Any

from ._case import Case


def _x(torch: Any) -> dict[str, Any]:
    return dict(x=torch.ones(2, 3, 4))


def _attend(torch: Any, query: Any, key: Any = None, value: Any = None, **options: Any) -> Any:
    key = query if key is None else key
    return torch.nn.MultiheadAttention(4, 2)(query, key, key if value is None else value, **options)


def _forward(torch: Any, x: Any, width: int = 4, heads: int = 2, **options: Any) -> Any:
    given: dict[str, Any] = dict(in_proj_weight=torch.ones(12, 4), in_proj_bias=torch.ones(12), bias_k=None,
                                 bias_v=None, add_zero_attn=False, dropout_p=0.0, out_proj_weight=torch.ones(4, 4),
                                 out_proj_bias=torch.ones(4))
    return torch.nn.functional.multi_head_attention_forward(x, x, x, width, heads, **(given | options))


def _native(torch: Any, query: Any, key: Any = None, width: int = 4, heads: int = 2, rows: int = 12, mask: Any = None,
            kind: Any = None) -> Any:
    key = query if key is None else key
    with torch.no_grad():
        return torch._native_multi_head_attention(query, key, key, width, heads, torch.ones(rows, 4), torch.ones(12),
                                                  torch.ones(4, 4), torch.ones(4), mask, True, True, kind)


_CAUSAL = ("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
           "`generate_square_subsequent_mask` to create this mask.")

CASES: list[Case] = [
    Case("mha_heads", lambda torch: {}, lambda torch, v: torch.nn.MultiheadAttention(4, 3),
         "AssertionError", "embed_dim must be divisible by num_heads"),
    Case("mha_sizes", lambda torch: {}, lambda torch, v: torch.nn.MultiheadAttention(0, 2),
         "ValueError", "embed_dim and num_heads must be greater than 0, got embed_dim=0 and num_heads=2 instead"),
    Case("mha_rank", _x, lambda torch, v: _attend(torch, v.x.unsqueeze(0)),
         "AssertionError", "query should be unbatched 2D or batched 3D tensor but received 4-D query tensor",
         meta=True),
    Case("mha_key_rank", _x, lambda torch, v: _attend(torch, v.x, v.x[0]),
         "AssertionError", "For batched (3-D) `query`, expected `key` and `value` to be 3-D but found 2-D and 2-D "
         "tensors respectively", meta=True),
    Case("mha_padding_rank", _x, lambda torch, v: _attend(torch, v.x, key_padding_mask=torch.ones(2).bool()),
         "AssertionError", "For batched (3-D) `query`, expected `key_padding_mask` to be `None` or 2-D but found 1-D "
         "tensor instead"),
    Case("mha_mask_rank", _x, lambda torch, v: _attend(torch, v.x, attn_mask=torch.ones(2).bool()),
         "AssertionError", "For batched (3-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D "
         "tensor instead"),
    Case("mha_unbatched_mask", _x, lambda torch, v: _attend(torch, v.x[0], attn_mask=torch.ones(1, 3, 3).bool()),
         "AssertionError", "Expected `attn_mask` shape to be (2, 3, 3) but got torch.Size([1, 3, 3])"),
    Case("mha_mask_dtype", _x, lambda torch, v: _attend(torch, v.x, attn_mask=torch.ones(2, 2).long()),
         "AssertionError", "only bool and floating types of attn_mask are supported"),
    Case("mha_padding_dtype", _x, lambda torch, v: _attend(torch, v.x, key_padding_mask=torch.ones(3, 2).int()),
         "AssertionError", "only bool and floating types of key_padding_mask are supported"),
    Case("mha_mask_shape", _x, lambda torch, v: _attend(torch, v.x, attn_mask=torch.ones(3, 3).bool()),
         "RuntimeError", "The shape of the 2D attn_mask is torch.Size([3, 3]), but should be (2, 2)."),
    Case("mha_mask_shape_heads", _x, lambda torch, v: _attend(torch, v.x, attn_mask=torch.ones(3, 2, 2).bool()),
         "RuntimeError", "The shape of the 3D attn_mask is torch.Size([3, 2, 2]), but should be (6, 2, 2)."),
    Case("mha_padding_batch", _x, lambda torch, v: _attend(torch, v.x, key_padding_mask=torch.ones(2, 2).bool()),
         "AssertionError", "Expected key_padded_mask.shape[0] to be 3, but got 2"),
    Case("mha_padding_length", _x, lambda torch, v: _attend(torch, v.x, key_padding_mask=torch.ones(3, 3).bool()),
         "AssertionError", "Expected key_padded_mask.shape[1] to be 2, but got 3"),
    Case("mha_width", lambda torch: dict(x=torch.ones(2, 3, 5)), lambda torch, v: _attend(torch, v.x),
         "AssertionError", "was expecting embedding dimension of 4, but got 5", meta=True),
    Case("mha_key_value", _x, lambda torch, v: _attend(torch, v.x, v.x, v.x[:1]),
         "AssertionError", "key shape torch.Size([2, 3, 4]) does not match value shape torch.Size([1, 3, 4])",
         meta=True),
    Case("mha_causal", _x, lambda torch, v: _attend(torch, v.x, is_causal=True), "RuntimeError", _CAUSAL, meta=True),
    Case("mha_forward_heads", _x, lambda torch, v: _forward(torch, v.x, heads=3),
         "AssertionError", "embed_dim 4 not divisible by num_heads 3"),
    Case("mha_forward_packed", _x, lambda torch, v: _forward(torch, v.x, in_proj_weight=None),
         "AssertionError", "use_separate_proj_weight is False but in_proj_weight is None"),
    Case("mha_forward_apart", _x, lambda torch, v: _forward(torch, v.x, use_separate_proj_weight=True),
         "AssertionError", "use_separate_proj_weight is True but q_proj_weight is None"),
    Case("mha_forward_bias_k", _x, lambda torch, v: _forward(torch, v.x, bias_k=torch.ones(1, 1, 4)),
         "AssertionError", "bias_k is set but bias_v is None"),
    Case("mha_forward_bias_v", _x, lambda torch, v: _forward(torch, v.x, bias_v=torch.ones(1, 1, 4)),
         "AssertionError", "bias_v is set but bias_k is None"),
    Case("mha_forward_static_bias", _x,
         lambda torch, v: _forward(torch, v.x, bias_k=torch.ones(1, 1, 4), bias_v=torch.ones(1, 1, 4),
                                   static_v=torch.ones(6, 2, 2)),
         "AssertionError", "bias cannot be added to static value."),
    Case("mha_forward_static_rows", _x, lambda torch, v: _forward(torch, v.x, static_k=torch.ones(5, 2, 2)),
         "AssertionError", "expecting static_k.size(0) of 6, but got 5"),
    Case("mha_forward_static_width", _x, lambda torch, v: _forward(torch, v.x, static_v=torch.ones(6, 2, 3)),
         "AssertionError", "expecting static_v.size(2) of 2, but got 3"),
    Case("none_or_dtype", lambda torch: {}, lambda torch, v: torch.nn.functional._none_or_dtype(3),
         "RuntimeError", "input to _none_or_dtype() must be None or torch.Tensor"),
    # where nothing is recorded
    Case("native_mha_rank", _x, lambda torch, v: _native(torch, v.x[0]),
         "RuntimeError", "expected 3-D `query`, got 2-D tensor"),
    Case("native_mha_shapes", _x, lambda torch, v: _native(torch, v.x, v.x[:, :2]),
         "RuntimeError", "expected `query`/`key`/`value` shapes to match"),
    Case("native_mha_width", _x, lambda torch, v: _native(torch, v.x, width=6),
         "RuntimeError", "passed-in embed_dim 6 didn't match last dim of query 4"),
    Case("native_mha_heads", _x, lambda torch, v: _native(torch, v.x, heads=3),
         "RuntimeError", "`embed_dim` must divide evenly by `num_heads`"),
    Case("native_mha_weight", _x, lambda torch, v: _native(torch, v.x, rows=8),
         "RuntimeError", "expected `qkv_weight` first dim to be 3x embed_dim"),
    Case("native_mha_mask_kind", _x, lambda torch, v: _native(torch, v.x, mask=torch.ones(2, 3).bool()),
         "RuntimeError", "Mask Type should be defined"),
    Case("native_mha_mask_keys", _x, lambda torch, v: _native(torch, v.x, mask=torch.ones(3, 3).bool(), kind=1),
         "RuntimeError", "For mask_type == 1 mask shape should be (B, L)"),
    Case("native_mha_mask_pairs", _x, lambda torch, v: _native(torch, v.x, mask=torch.ones(2, 3).bool(), kind=0),
         "RuntimeError", "For mask_type == 0 mask shape should be (L, L)"),
    Case("native_mha_mask_scores", _x, lambda torch, v: _native(torch, v.x, mask=torch.ones(2, 3).bool(), kind=2),
         "RuntimeError", "For mask_type == 2 mask shape should match input shape"),
    # transformers
    Case("encoder_activation", lambda torch: {},
         lambda torch, v: torch.nn.TransformerEncoderLayer(4, 2, activation="elu"),
         "RuntimeError", "activation should be relu/gelu, not elu"),
    Case("transformer_batch", _x, lambda torch, v: torch.nn.Transformer(4, 2, 1, 1, 8)(v.x, v.x[:, :2]),
         "RuntimeError", "the batch number of src and tgt must be equal"),
    Case("transformer_batch_first", _x,
         lambda torch, v: torch.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)(v.x, v.x[:1]),
         "RuntimeError", "the batch number of src and tgt must be equal"),
    Case("transformer_width", _x, lambda torch, v: torch.nn.Transformer(6, 2, 1, 1, 8)(v.x, v.x),
         "RuntimeError", "the feature number of src and tgt must be equal to d_model"),
    Case("encoder_causal", _x, lambda torch, v: torch.nn.TransformerEncoderLayer(4, 2, 8)(v.x, is_causal=True),
         "RuntimeError", _CAUSAL),
]
