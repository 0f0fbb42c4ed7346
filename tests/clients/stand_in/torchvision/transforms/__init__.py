"""Transforms of tensors; those that timm only names are not here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import functional as functional
from .functional import InterpolationMode as InterpolationMode


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x


class Normalize(torch.nn.Module):
    """Each channel less its mean, over its deviation."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__()
        self.mean, self.std = torch.as_tensor(mean), torch.as_tensor(std)

    def forward(self, x: Any) -> Any:
        return (x - self.mean.view(-1, 1, 1)) / self.std.view(-1, 1, 1)


class ToTensor:
    """An image of bytes (height, width, channels) as a tensor of [0, 1] (channels, height, width)."""

    def __call__(self, image: Any) -> Any:
        import numpy

        return torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float() / 255
