"""The functions behind the layers: PyTorch's signatures over the rows of the operator tables.

Invariant: a function here only completes arguments; shapes, dtypes, values and derivatives come from the row it calls.
"""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch_v2 as torch

from .._dispatch import registry
from .._tensor import Tensor
from . import _reduction

# Rows that are no function of `torch`; they take their arguments in the order of the schema.
_linear = registry.get("linear").call
_gelu = registry.get("gelu").call
_silu = registry.get("silu").call
_silu_ = registry.get("silu_").call
_nll_loss = registry.get("nll_loss_nd").call
_cross_entropy = registry.get("cross_entropy_loss").call
_mse_loss = registry.get("mse_loss").call

# Functions that are those of `torch`, made when first asked for.
_OF_TORCH = frozenset(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split()
)


def __getattr__(name: str) -> Any:
    if name not in _OF_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(torch, name)
    return found


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return registry.get("linear.out").call((input, weight, bias, out))
    return _linear((input, weight, bias))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)


def relu_(input: Tensor) -> Tensor:
    return torch.relu_(input)


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    if out is not None:
        return registry.get("gelu.out").call((input, approximate, out))
    return _gelu((input, approximate))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return _silu_((input,)) if inplace else _silu((input,))


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return registry.get("leaky_relu_" if inplace else "leaky_relu").call((input, negative_slope))


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return leaky_relu(input, negative_slope, inplace=True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return registry.get("elu_" if inplace else "elu").call((input, alpha, 1, 1))


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return elu(input, alpha, inplace=True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.celu_(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)


def selu_(input: Tensor) -> Tensor:
    return torch.selu_(input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return registry.get("softplus.out").call((input, beta, threshold, out))
    return registry.get("softplus").call((input, beta, threshold))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return registry.get("hardtanh_" if inplace else "hardtanh").call((input, min_val, max_val))


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return registry.get("hardtanh_").call((input, min_val, max_val))


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("relu6_" if inplace else "relu6").call((input,))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("hardsigmoid_" if inplace else "hardsigmoid").call((input,))


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("hardswish_" if inplace else "hardswish").call((input,))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("mish_" if inplace else "mish").call((input,))


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return registry.get("log_sigmoid.out").call((input, out))
    return registry.get("log_sigmoid").call((input,))


def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _get_softmax_dim("softmax", input.ndim, _stacklevel)
    return torch.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.ndim, _stacklevel)
    return torch.log_softmax(input, dim, dtype)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    return registry.get("one_hot").call((tensor, num_classes))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    # norm_type says how max_norm measures; without max_norm it has no meaning, in PyTorch neither.
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    return _nll_loss((input, target, weight, _reduction.get_enum(reduction), ignore_index))


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    return _cross_entropy((input, target, weight, _reduction.get_enum(reduction), ignore_index, label_smoothing))


def _same_size(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        "This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    input, target = torch.broadcast_tensors(input, target)
    return input, target


def _reduction_code(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    return _reduction.get_enum(reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    input, target = _same_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if weight is None:
        return _mse_loss((input, target, _reduction.get_enum(reduction)))
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    errors = (input - target).pow(2) * weight
    if reduction == "none":
        return errors
    if reduction == "sum":
        return errors.sum()
    if reduction == "mean":
        return errors.sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    size = input.shape
    input, target = _same_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if weight is None:
        return registry.get("l1_loss").call((input, target, _reduction.get_enum(reduction)))
    if weight.shape != size:
        raise ValueError("Weights and input must have the same size.")
    errors = (input - target).abs() * weight
    if reduction == "none":
        return errors
    if reduction == "sum":
        return errors.sum()
    if reduction == "mean":
        return errors.sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    input, target = _same_size(input, target)
    code = _reduction_code(size_average, reduce, reduction)
    return registry.get("smooth_l1_loss").call((input, target, code, beta))


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    size = input.shape
    input, target = _same_size(input, target)
    if weight is None:
        return registry.get("huber_loss").call((input, target, _reduction.get_enum(reduction), delta))
    if weight.shape != size:
        raise ValueError("Weights and input must have the same size.")
    errors = registry.get("huber_loss").call((input, target, _reduction.get_enum("none"), delta)) * weight
    if reduction == "none":
        return errors
    if reduction == "sum":
        return errors.sum()
    if reduction == "mean":
        return errors.mean()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    code = _reduction_code(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(torch.broadcast_shapes(target.shape, weight.shape))
    return registry.get("binary_cross_entropy").call((input, target, weight, code))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    code = _reduction_code(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    per_batch = reduction == "batchmean"
    if size_average is None and reduce is None and reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    code = _reduction_code(size_average, reduce, "sum" if per_batch else reduction)
    reduced: Tensor = torch.kl_div(input, target, code, log_target=log_target)
    return reduced / input.shape[0] if per_batch and input.ndim != 0 else reduced
