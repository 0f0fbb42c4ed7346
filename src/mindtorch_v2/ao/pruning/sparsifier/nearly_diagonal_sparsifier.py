"""Matrices that keep what is near their diagonal."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ....nn import Module
from . import base_sparsifier


class NearlyDiagonalSparsifier(base_sparsifier.BaseSparsifier):
    """Keeps the `nearliness` diagonals around the main one; an odd number of them."""

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module: Module, tensor_name: str, nearliness: int, **kwargs: Any) -> None:  # type: ignore[override]
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data = torch.zeros_like(mask)
        if nearliness <= 0:
            return
        height, width = getattr(module, tensor_name).shape
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        reach = nearliness // 2
        if reach >= min(height, width):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.data = torch.ones_like(mask).tril(reach).triu(-reach)
