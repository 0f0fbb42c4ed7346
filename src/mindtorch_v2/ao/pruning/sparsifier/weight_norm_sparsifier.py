"""Tensors that lose their smallest blocks, and within blocks their smallest elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ....nn import Module
from ....nn import functional as F
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


def _grid(data: torch.Tensor, block: tuple[int, int]) -> tuple[int, int]:
    """How many blocks cover a matrix, by rows and columns."""
    return -(-data.shape[-2] // block[0]), -(-data.shape[-1] // block[1])


def _tensor_mask(data: torch.Tensor, level: float, block: tuple[int, int]) -> Any:
    """Zeros over the blocks with the smallest means, `level` of all blocks."""
    rows, columns = _grid(data, block)
    padded = rows * block[0], columns * block[1]
    if level >= 1.0:
        return torch.zeros(padded, device=data.device)
    if level <= 0.0:
        return torch.ones(padded, device=data.device)
    height, width = data.shape[-2:]
    if math.prod(block) > 1:
        data = F.avg_pool2d(data[None, None, :], kernel_size=block, stride=block, ceil_mode=True)
    means = data.flatten()
    count = max(0, min(len(means) - 1, round(level * len(means))))
    _, smallest = torch.topk(means, k=count, largest=False)
    kept = torch.ones(rows * columns, device=data.device).scatter_(0, smallest, 0).reshape(rows, columns)
    mask = kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return mask[:height, :width].contiguous()


def _block_mask(data: torch.Tensor, block: tuple[int, int], zeros: int) -> Any:
    """Zeros over the smallest elements of every block, `zeros` in each; as large as the blocks together."""
    rows, columns = _grid(data, block)
    padded = data.new_full((rows * block[0], columns * block[1]), math.nan)
    padded[: data.shape[-2], : data.shape[-1]] = data
    elements = padded.reshape(rows, block[0], columns, block[1]).transpose(1, 2).reshape(-1, math.prod(block))
    # What is beyond the matrix is not a number, and so the largest.
    _, smallest = torch.topk(elements, k=zeros, dim=1, largest=False)
    kept = torch.ones(elements.shape, device=data.device).scatter_(1, smallest, 0)
    return kept.reshape(rows, columns, *block).transpose(1, 2).reshape(padded.shape)


class WeightNormSparsifier(BaseSparsifier):
    """Makes the blocks with the smallest norms zero.

    `sparsity_level` of all blocks of `sparse_block_shape` (rows, columns) are chosen by their mean of `norm`: 1, 2 or a
    function of the tensor. In each, the `zeros_per_block` smallest elements become zero; None is all of them.
    """

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[torch.Tensor], torch.Tensor] | int | None = None,
    ) -> None:
        if zeros_per_block is None:
            zeros_per_block = math.prod(sparse_block_shape)
        self.norm_fn: Callable[[torch.Tensor], torch.Tensor]
        if callable(norm):
            self.norm_fn = norm
        elif norm == 1:
            self.norm_fn = torch.abs
        elif norm is None or norm == 2:
            self.norm_fn = torch.square
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        defaults = {"sparsity_level": sparsity_level, "sparse_block_shape": sparse_block_shape}
        super().__init__(defaults={**defaults, "zeros_per_block": zeros_per_block})

    def update_mask(  # type: ignore[override]
        self,
        module: Module,
        tensor_name: str,
        sparsity_level: float,
        sparse_block_shape: tuple[int, int],
        zeros_per_block: int,
        **kwargs: Any,
    ) -> None:
        elements = math.prod(sparse_block_shape)
        if zeros_per_block > elements:
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = torch.ones_like(mask)
            return
        if sparsity_level >= 1.0 and zeros_per_block == elements:
            mask.data = torch.zeros_like(mask)
            return
        norms = self.norm_fn(getattr(module, tensor_name))
        made = _tensor_mask(norms, sparsity_level, sparse_block_shape)
        if zeros_per_block != elements:
            made = torch.logical_or(made, _block_mask(norms, sparse_block_shape, zeros_per_block))
        mask.data = made
