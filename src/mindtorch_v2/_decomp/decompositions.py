"""Operators in terms of simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch


def addmm(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * mat1 @ mat2"""
    product = torch.mm(mat1, mat2)
    return (product if alpha == 1 else product * alpha) + (self if beta == 1 else self * beta)


def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    """self + value * tensor1 * tensor2"""
    return self + value * tensor1 * tensor2


def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    """self + value * tensor1 / tensor2"""
    return self + value * (tensor1 / tensor2)


def t(self: Any) -> Any:
    """The transpose."""
    return self.permute([1, 0]) if self.dim() == 2 else self.permute([0])


def silu(self: Any) -> Any:
    """x * sigmoid(x)"""
    return self * torch.sigmoid(self)


def hardtanh(self: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    """Cut off on both sides."""
    return torch.clamp(self, min_val, max_val)


def leaky_relu(self: Any, negative_slope: Any = 0.01) -> Any:
    """x, or a part of it below zero."""
    return torch.where(self > 0, self, self * negative_slope)


def threshold_backward(grad_output: Any, self: Any, threshold: Any) -> Any:
    """The gradient where the input was above the threshold."""
    return torch.where(self <= threshold, 0, grad_output)


def tanh_backward(grad_output: Any, output: Any) -> Any:
    """The gradient of tanh."""
    return grad_output * (1 - output * output)


def sigmoid_backward(grad_output: Any, output: Any) -> Any:
    """The gradient of sigmoid."""
    return grad_output * (output * (1 - output))


def _shifted(x: Any, dim: int) -> Any:
    """Below zero, where there is anything."""
    return x - torch.amax(x, dim, keepdim=True) if x.numel() else x


def softmax(x: Any, dim: int, half_to_float: bool) -> Any:
    """exp(x) over its sum."""
    if half_to_float:
        x = x.float()
    e = torch.exp(_shifted(x, dim))
    return e / torch.sum(e, dim, keepdim=True)


def log_softmax(x: Any, dim: int, half_to_float: bool) -> Any:
    """x minus the logarithm of the sum of exp(x)."""
    if half_to_float:
        x = x.float()
    shifted = _shifted(x, dim)
    return shifted - torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))


def softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of softmax."""
    part = grad_output * output
    return (part - output * torch.sum(part, dim, keepdim=True)).to(input_dtype)


def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Result, mean and the inverse of the deviation."""
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    mean = torch.mean(input, dims, keepdim=True)
    centred = input - mean
    rstd = torch.rsqrt(torch.mean(centred * centred, dims, keepdim=True) + eps)
    result = centred * rstd
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result, mean, rstd


def rsub(self: Any, other: Any, alpha: Any = 1) -> Any:
    """other - alpha * self"""
    return torch.neg(self if alpha == 1 else self * alpha) + other


OWN: dict[str, Callable[..., Any]] = {
    "addmm": addmm,
    "addcmul": addcmul,
    "addcdiv": addcdiv,
    "t": t,
    "silu": silu,
    "hardtanh": hardtanh,
    "leaky_relu": leaky_relu,
    "threshold_backward": threshold_backward,
    "tanh_backward": tanh_backward,
    "sigmoid_backward": sigmoid_backward,
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "_softmax_backward_data": softmax_backward,
    "native_layer_norm": native_layer_norm,
    "rsub.Scalar": rsub,
    "rsub.Tensor": rsub,
}
