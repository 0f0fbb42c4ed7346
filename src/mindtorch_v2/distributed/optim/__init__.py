"""`torch.distributed.optim`: an optimizer whose state is split over the ranks of a group."""

from __future__ import annotations

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
