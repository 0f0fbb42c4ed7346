"""Functions with a backward of their own, for modules that PyTorch defines by one.

Invariant: values and gradients are PyTorch's, also where its backward is not the derivative of its forward.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ...autograd import Function


class CrossMapLRN2d(Function):
    """`input / (k + alpha / size * sums)**beta`, the sums over the squares of neighbouring channels."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        before = int((size - 1) / 2 + 1)
        scale = _window_sums(input * input, _summed_channels(input.size(1), before)).mul_(alpha / size).add_(k)
        output = torch.pow(scale, -beta).mul_(input)
        ctx.save_for_backward(input, output, scale)
        ctx.options = size, alpha, beta
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None, None]:
        input, output, scale = ctx.saved_tensors
        size, alpha, beta = ctx.options
        channels = input.size(1)
        after = int(size - (size - 1) / 2)
        if after > size - 1:
            raise RuntimeError(f"start ({after}) + length ({channels}) exceeds dimension size ({channels + size - 1}).")
        windows = [range(max(0, c - after), min(channels, c + size - after)) for c in range(channels)]
        sums = _window_sums(grad_output * output / scale, windows)
        grad = torch.pow(scale, -beta).mul_(grad_output)
        return grad.addcmul_(input, sums, value=-2 * alpha * beta / size), None, None, None, None


def _summed_channels(channels: int, before: int) -> list[Any]:
    """Which channels count for each one: a window that moves on, from which the first channel never falls out."""
    return [[0, *range(max(1, c - before + 1), min(channels, c + before))] for c in range(channels)]


def _window_sums(values: Tensor, windows: list[Any]) -> Tensor:
    """For each channel the sum over its window, as one product with a matrix of zeros and ones."""
    chosen = torch.tensor([[float(j in window) for j in range(len(windows))] for window in windows])
    chosen = chosen.to(values.device, values.dtype)
    return torch.matmul(chosen, values.flatten(2)).reshape(values.shape)
