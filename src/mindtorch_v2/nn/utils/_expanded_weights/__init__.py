"""Parameters whose gradients are kept for each sample of a batch: `torch.nn.utils._expanded_weights`."""

from __future__ import annotations

from .expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
