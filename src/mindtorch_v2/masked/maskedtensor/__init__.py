"""`torch.masked.maskedtensor`: tensors of which a mask says which elements count."""

from __future__ import annotations

from .binary import _apply_native_binary, _is_native_binary
from .core import MaskedTensor, is_masked_tensor
from .passthrough import _apply_pass_through_fn, _is_pass_through_fn
from .reductions import _apply_reduction, _is_reduction
from .unary import _apply_native_unary, _is_native_unary

__all__ = [
    "MaskedTensor",
    "_apply_native_binary",
    "_apply_native_unary",
    "_apply_pass_through_fn",
    "_apply_reduction",
    "_is_native_binary",
    "_is_native_unary",
    "_is_pass_through_fn",
    "_is_reduction",
    "is_masked_tensor",
]
