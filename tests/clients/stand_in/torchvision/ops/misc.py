"""Batch normalisation whose statistics and weights stay as they are."""

from __future__ import annotations

from typing import Any

import torch


class FrozenBatchNorm2d(torch.nn.Module):
    """`nn.BatchNorm2d` in evaluation, with buffers for parameters."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((num_features,), value))

    def forward(self, x: Any) -> Any:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)
