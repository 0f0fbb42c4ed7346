"""The two ways to a masked tensor: one that begins a history, and one that goes on with that of its data."""

from __future__ import annotations

from typing import Any

from .core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> Any:
    """A masked tensor of copies of data and mask; a leaf."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> Any:
    """A masked tensor that keeps the history of its data."""
    return MaskedTensor._from_values(data, mask)
