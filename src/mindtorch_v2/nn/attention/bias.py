"""Causal masks that are not written out: attention is told what they mean.

Invariant: a bias only stands for a mask; its memory holds nothing, and every operator but attention sees that.
"""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..functional import scaled_dot_product_attention
from . import _raise_kernel_warnings
from ._utils import _validate_sdpa_input

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """In which corner the diagonal of a mask that is not square ends."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A causal mask for `scaled_dot_product_attention(..., attn_mask=bias)`."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        super().__init__()
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask itself: true where a query may look."""
        shift = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        whole = torch.ones(self.seq_len_q, self.seq_len_kv, device=device or "cpu", dtype=torch.bool)
        mask: Tensor = torch.tril(whole, diagonal=shift)
        return mask

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        if square or attn_mask.variant == CausalVariant.UPPER_LEFT:
            mask, is_causal = None, True
        else:
            _validate_sdpa_input(query, key, value)
            _raise_kernel_warnings(None)
            mask = attn_mask._materialize(query.device)
        return scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    # A value and not a method: mypy cannot compare the keyword arguments of two `__repr__`.
    __repr__: Any = lambda self, **_: repr(self._materialize())


def _of_size(variant: CausalVariant, size: tuple[Any, ...], name: str) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """A mask of that size in which query i sees keys up to i."""
    return _of_size(CausalVariant.UPPER_LEFT, size, "causal_upper_left")


def causal_lower_right(*size: int) -> CausalBias:
    """A mask of that size in which the last query sees all keys, the one before it all but the last, ..."""
    return _of_size(CausalVariant.LOWER_RIGHT, size, "causal_lower_right")
