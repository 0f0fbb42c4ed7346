"""Folding a batch norm in evaluation mode into the layer before it.

Invariant: the layers that are given stay as they are; the fused one computes what both did.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

M = TypeVar("M", bound=Module)


def _check_modes(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_statistics(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A convolution that computes `bn(conv(x))`; `transpose` says that it is a transposed one."""
    _check_modes(conv, bn)
    fused: Any = copy.deepcopy(conv)
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    result: M = fused
    return result


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the fused convolution, in the dtypes of the convolution's own."""
    bias: Any = torch.zeros_like(bn_rm) if conv_b is None else conv_b
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    scale: Any = torch.ones_like(bn_rm) if bn_w is None else bn_w
    shift: Any = torch.zeros_like(bn_rm) if bn_b is None else bn_b
    deviation = torch.rsqrt(bn_rv + bn_eps)
    channels = [1, -1] if transpose else [-1, 1]
    shape = channels + [1] * (conv_w.dim() - 2)
    weight = (conv_w * (scale * deviation).reshape(shape)).to(dtype=conv_w.dtype)
    moved = ((bias - bn_rm) * deviation * scale + shift).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(moved, bias.requires_grad)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A linear layer that computes `bn(linear(x))`."""
    _check_modes(linear, bn)
    fused: Any = copy.deepcopy(linear)
    # Batch norm runs over channels and the layer over the last dimension: they agree when one broadcasts to the other.
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    result: M = fused
    return result


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the fused linear layer, in the dtypes of the layer's own."""
    bias: Any = torch.zeros_like(bn_rm) if linear_b is None else linear_b
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    scale = bn_w * torch.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    moved = ((bias - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(moved, bias.requires_grad)
