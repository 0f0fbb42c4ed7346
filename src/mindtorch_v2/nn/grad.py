"""Gradients of convolutions as functions of their own.

Invariant: the tensor whose gradient is asked for is never needed, only its size.
"""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ._tuples import each
from .functional._rows import row


def _backward(
    rank: int, grad_output: Tensor, input: Tensor, weight: Tensor, options: tuple[Any, ...], wanted: int
) -> Tensor:
    """One of the two gradients; `options` are stride, padding, dilation and groups."""
    stride, padding, dilation, groups = options
    geometry = (each(stride, rank), each(padding, rank), each(dilation, rank), False, (0,) * rank, groups)
    mask = (wanted == 0, wanted == 1, False)
    grads: tuple[Tensor, ...] = row("conv", "convolution_backward").call(
        (grad_output, input, weight, None, *geometry, mask)
    )
    return grads[wanted]


def _of_input(rank: int, input_size: Any, weight: Tensor, grad_output: Tensor, *options: Any) -> Tensor:
    return _backward(rank, grad_output, grad_output.new_empty(1).expand(input_size), weight, options, 0)


def _of_weight(rank: int, input: Tensor, weight_size: Any, grad_output: Tensor, *options: Any) -> Tensor:
    return _backward(rank, grad_output, input, grad_output.new_empty(1).expand(weight_size), options, 1)


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its input."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its weight."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input."""
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its weight."""
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its input."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its weight."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
