"""`torch.autograd._functions.tensor`: a reshape with a gradient of its own."""

from __future__ import annotations

import math
from typing import Any

from ..function import Function


class Resize(Function):
    """Another shape of as many elements; the gradient gets the old one."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Any) -> Any:
        ctx.sizes = sizes
        ctx.numel = math.prod(sizes)
        if tensor.numel() != ctx.numel:
            raise RuntimeError(
                "requested resize to {} ({} elements in total), but the given tensor has a size of {} ({} elements). "
                "autograd's resize can only change the shape of a given tensor, while preserving the number of "
                "elements. ".format(
                    "x".join(map(str, sizes)), ctx.numel, "x".join(map(str, tensor.size())), tensor.numel()
                )
            )
        ctx.input_sizes = tensor.size()
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        if grad_output.numel() != ctx.numel:
            raise AssertionError(f"expected {ctx.numel} elements, got {grad_output.numel()}")
        return grad_output.contiguous().view(ctx.input_sizes), None
