"""What the rules of expanded weights share: checks of a call, and adding to a parameter's `grad_sample`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import mindtorch_v2 as torch

from ...._tensor import Tensor
from .expanded_weights_impl import ExpandedWeight

__all__ = [
    "forward_helper",
    "is_batch_first",
    "maybe_scale_by_batch_size",
    "set_grad_sample_if_exists",
    "standard_kwargs",
    "sum_over_all_but_batch_and_last_n",
    "unpack_expanded_weight_or_tensor",
]


def is_batch_first(expanded_args_and_kwargs: Iterable[Any]) -> bool | None:
    """What the expanded weights of one call say of the batch's dimension; None where there is none of them."""
    answers = {arg.batch_first for arg in expanded_args_and_kwargs if isinstance(arg, ExpandedWeight)}
    if len(answers) > 1:
        raise RuntimeError("Got conflicting batch_first arguments in the same layer")
    return next(iter(answers), None)


def standard_kwargs(kwarg_names: Sequence[str], expanded_args: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """The last values of `expanded_args` are those of `kwarg_names`: the others, and a dictionary of these."""
    first = len(expanded_args) - len(kwarg_names)
    return expanded_args[:first], dict(zip(kwarg_names, expanded_args[first:], strict=True))


def check_input(name: str, given: Any, weights: Iterable[ExpandedWeight]) -> None:
    """Refuse a first argument that has no batch, or another one than the weights were made for."""
    if isinstance(given, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. "
            f"Input must be a Tensor, got {type(given).__name__} in function {name}"
        )
    if not isinstance(given, Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch dimension, "
            f"got {type(given).__name__} in function {name}"
        )
    if given.dim() == 0:
        raise RuntimeError(f"Expanded Weights requires a batch dimension but got an input of size 0 in function {name}")
    if given.shape[0] == 0:
        raise RuntimeError(
            f"0 is not a valid batch size for Expanded Weights but got input tensor of {given} in function {name}"
        )
    for weight in weights:
        size = given.shape[0 if weight.batch_first else 1]
        fits = size <= weight.batch_size if weight.allow_smaller_batches else size == weight.batch_size
        if not fits:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {size} with ExpandedWeight of batch size {weight.batch_size}"
            )


def check_reductions(weights: Iterable[ExpandedWeight]) -> None:
    """One call has one way of adding up losses."""
    known: list[str] = []
    for weight in weights:
        if known and weight.loss_reduction != known[0]:
            raise RuntimeError(
                "Expected ExpandedWeights to all have the same loss_reduction argument but got one"
                f"with {known[0]} and one with {weight.loss_reduction}"
            )
        known.append(weight.loss_reduction)


def _plain(value: Any) -> Any:
    return value.orig_weight if isinstance(value, ExpandedWeight) else value


def forward_helper(func: Any, expanded_args: Sequence[Any], expanded_kwargs: Mapping[str, Any]) -> Any:
    """`func` of the parameters themselves, after the checks; the first argument is the input with the batch."""
    weights = [v for v in (*expanded_args, *expanded_kwargs.values()) if isinstance(v, ExpandedWeight)]
    check_input(func.__name__, expanded_args[0], weights)
    check_reductions(weights)
    return func(*[_plain(v) for v in expanded_args], **{k: _plain(v) for k, v in expanded_kwargs.items()})


def maybe_scale_by_batch_size(grad_sample: Any, expanded_weight: ExpandedWeight) -> Any:
    """A mean over the batch has divided each sample's gradient by its size; a sum has not."""
    return grad_sample * expanded_weight.batch_size if expanded_weight.loss_reduction == "mean" else grad_sample


def set_grad_sample_if_exists(maybe_expanded_weight: Any, per_sample_grad_fn: Callable[[Any], Any]) -> None:
    """Add what the function gives for the parameter to its `grad_sample`; nothing for plain values."""
    weight = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    part = maybe_scale_by_batch_size(per_sample_grad_fn(weight), maybe_expanded_weight)
    missing = maybe_expanded_weight.batch_size - part.shape[0]
    if missing > 0:
        part = torch.cat([part, part.new_zeros(missing, *part.shape[1:])])
    before = getattr(weight, "grad_sample", None)
    weight.grad_sample = part if before is None else before + part


def unpack_expanded_weight_or_tensor(maybe_expanded_weight: Any, func: Callable[[Any], Any] = lambda x: x) -> Any:
    """`func` of the parameter, or of a tensor that needs no gradient; None for what is no tensor."""
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters "
            "and normal Parameters. Please file and issue with pytorch/pytorch"
        )
    return func(maybe_expanded_weight)


def sum_over_all_but_batch_and_last_n(tensor: Any, n_dims: int) -> Any:
    """The sum over every dimension but the first and the last `n_dims`."""
    between = list(range(1, tensor.dim() - n_dims))
    return tensor.sum(dim=between) if between else tensor
