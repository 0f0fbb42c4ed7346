"""`functorch.einops`: tensors rearranged by a pattern of named dimensions."""

from .rearrange import rearrange

__all__ = ["rearrange"]
