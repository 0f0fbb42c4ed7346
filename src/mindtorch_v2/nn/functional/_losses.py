"""Losses.

Invariant: a function here only completes arguments; shapes, dtypes, values and derivatives come from the row it calls.
"""

import warnings

import mindtorch_v2 as torch

from ..._dispatch import registry
from ..._tensor import Tensor
from .. import _reduction
from ._rows import eager

_nll_loss = eager("nll_loss_nd").call
_cross_entropy = eager("cross_entropy_loss").call
_mse_loss = registry.get("mse_loss").call


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
    if target.size() == input.size():
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
    size = input.size()
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
    return eager("smooth_l1_loss").call((input, target, code, beta))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    size = input.size()
    input, target = _same_size(input, target)
    if weight is None:
        return eager("huber_loss").call((input, target, _reduction.get_enum(reduction), delta))
    if weight.shape != size:
        raise ValueError("Weights and input must have the same size.")
    errors = eager("huber_loss").call((input, target, _reduction.get_enum("none"), delta)) * weight
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
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        size = torch.broadcast_shapes(target.size(), weight.size())
        weight = weight.expand(size)
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
    if target.size() != input.size():
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
