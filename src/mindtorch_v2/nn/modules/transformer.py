"""Transformers: encoder, decoder, and both.

Invariant: in evaluation, where nothing is recorded, an encoder answers as PyTorch's fast way does: a layer is one
operator, masks say what is hidden whatever their dtype, and what a padding mask hides from a stack of layers is zero.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..._warn import warn_once
from ...backends.mha import get_fastpath_enabled
from .. import functional as F
from .. import init
from .activation import GELU, MultiheadAttention, ReLU, recorded
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _get_clones(module: Module, N: int) -> ModuleList:
    clones: list[Any] = [None] * len(range(N))  # a number of layers that no memory holds is refused here, not tried
    for i in range(N):
        clones[i] = copy.deepcopy(module)
    return ModuleList(clones)


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    return torch.triu(torch.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """What the caller says, or whether the mask hides exactly what comes later."""
    if is_causal is not None or mask is None:
        return is_causal is True
    rows = mask.size(-2) if size is None else size
    causal = _generate_square_subsequent_mask(rows, mask.device, mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _length(t: Tensor, batch_first: bool) -> int:
    return t.size(1 if batch_first and t.dim() != 2 else 0)


class Transformer(Module):
    """An encoder and a decoder that looks at what the encoder gives."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        width = d_model, nhead, dim_feedforward
        options: Any = {
            "dropout": dropout,
            "activation": activation,
            "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first,
            "norm_first": norm_first,
            "bias": bias,
            "device": device,
            "dtype": dtype,
        }

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            encoder = TransformerEncoderLayer(*width, **options)
            custom_encoder = TransformerEncoder(encoder, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder = TransformerDecoderLayer(*width, **options)
            custom_decoder = TransformerDecoder(decoder, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        across = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(across) != tgt.size(across):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        output: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return output

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask to be added, that hides from each token those after it."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)


class TransformerEncoder(Module):
    """A stack of encoder layers."""

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why_not = _why_not_nested(encoder_layer)
        if enable_nested_tensor and why_not:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = F._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(mask), "mask", src.dtype
        )
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, False)
        hidden = self._hidden(src, mask, padding)
        is_causal = _detect_is_causal_mask(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding if hidden is None else hidden
            )
        if hidden is not None:
            output = output.masked_fill(hidden.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _hidden(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Which tokens PyTorch leaves out of a nested tensor, where it makes one: results have zeros there."""
        first = self.layers[0]
        if (
            padding is None
            or mask is not None
            or first.training
            or not getattr(self, "use_nested_tensor", False)
            or src.dim() != 3
            or not get_fastpath_enabled()
            or src.is_meta
            or recorded((src, *_tensors(first)))
        ):
            return None
        seen = padding.logical_not()
        number = torch.arange(src.shape[1], device=src.device)
        hidden = number >= seen.sum(1, keepdim=True)
        if getattr(self, "mask_check", True) and bool((hidden == seen).any()):
            return None
        if bool(hidden.all()):
            raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
        warn_once(
            "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend "
            "specifying layout=torch.jagged when constructing a nested tensor, as this layout receives active "
            "development, has better operator coverage, and works with torch.compile."
        )
        return hidden


def _why_not_nested(layer: Any) -> str:
    """Why a stack of such layers never leaves padding out; empty if it may."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, ".norm_first was True"),
        (
            not attention.batch_first,
            ".self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (not attention._qkv_same_embed_dim, ".self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, ".self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, ".activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, ".norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, ".self_attn.num_heads is odd"),
    )
    return next(("encoder_layer" + text for holds, text in reasons if holds), "")


def _tensors(layer: Any) -> tuple[Any, ...]:
    """The parameters of an encoder layer in the order of its operator."""
    attention = layer.self_attn
    return (
        attention.in_proj_weight,
        attention.in_proj_bias,
        attention.out_proj.weight,
        attention.out_proj.bias,
        layer.norm1.weight,
        layer.norm1.bias,
        layer.norm2.weight,
        layer.norm2.bias,
        layer.linear1.weight,
        layer.linear1.bias,
        layer.linear2.weight,
        layer.linear2.bias,
    )


class TransformerDecoder(Module):
    """A stack of decoder layers."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        tgt_is_causal = _detect_is_causal_mask(
            tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first)
        )
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with its normalization and a way around it."""

    __constants__ = ["norm_first"]
    activation_relu_or_gelu: int
    activation: Any

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made: Any = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        if activation is F.relu or isinstance(activation, ReLU):
            self.activation_relu_or_gelu = 1
        elif activation is F.gelu or isinstance(activation, GELU):
            self.activation_relu_or_gelu = 2
        else:
            self.activation_relu_or_gelu = 0
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        padding = F._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(src_mask), "src_mask", src.dtype
        )
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        if self._fast(src):
            return self._at_once(src, mask, padding)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
        output: Tensor = self.norm2(x + self._ff_block(x))
        return output

    def _fast(self, src: Tensor) -> bool:
        """Whether the layer can be one operator, as in PyTorch where nothing is recorded."""
        attention = self.self_attn
        if (
            not get_fastpath_enabled()
            or src.dim() != 3
            or self.training
            or not attention.batch_first
            or attention.in_proj_bias is None
            or not attention._qkv_same_embed_dim
            or not self.activation_relu_or_gelu
            or self.norm1.eps != self.norm2.eps
            or attention.num_heads % 2 == 1
            or any(module._forward_hooks or module._forward_pre_hooks for module in self.modules())
        ):
            return False
        tensors = (src, *_tensors(self))
        return not any(t.is_meta for t in tensors) and not recorded(tensors)

    def _at_once(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        attention = self.self_attn
        merged, kind = attention.merge_masks(mask, padding, src)
        weights = _tensors(self)
        output: Tensor = torch._transformer_encoder_layer_fwd(
            src,
            attention.embed_dim,
            attention.num_heads,
            *weights[:4],
            self.activation_relu_or_gelu == 2,
            self.norm_first,
            self.norm1.eps,
            *weights[4:],
            merged,
            kind,
        )
        return output

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False) -> Tensor:
        found = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )
        output: Tensor = self.dropout1(found[0])
        return output

    def _ff_block(self, x: Tensor) -> Tensor:
        output: Tensor = self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        return output


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, and a feed-forward network."""

    __constants__ = ["norm_first"]
    activation: Any

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made: Any = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("activation", F.relu)
        super().__setstate__(state)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        others = memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *own)
            x = x + self._mha_block(self.norm2(x), memory, *others)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *own))
        x = self.norm2(x + self._mha_block(x, memory, *others))
        output: Tensor = self.norm3(x + self._ff_block(x))
        return output

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False) -> Tensor:
        found = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )
        output: Tensor = self.dropout1(found[0])
        return output

    def _mha_block(
        self, x: Tensor, mem: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        found = self.multihead_attn(
            x, mem, mem, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )
        output: Tensor = self.dropout2(found[0])
        return output

    def _ff_block(self, x: Tensor) -> Tensor:
        output: Tensor = self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        return output
