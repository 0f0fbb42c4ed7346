"""`call_for_per_sample_grads`: a module whose backward pass leaves each parameter's gradients by sample."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ...func import functional_call
from ...utils._pytree import arg_tree_leaves
from ..modules.module import Module
from ._expanded_weights import ExpandedWeight

__all__ = ["call_for_per_sample_grads"]


def _batch_of(dim: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    found: int | None = None
    for value in arg_tree_leaves(*args, **kwargs):
        if not isinstance(value, Tensor):
            continue
        size = int(value.shape[dim])
        if found is not None and size != found:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {found} and one with batch size "
                f"{size}. Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
        found = size
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights "
            "cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    return found


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """The module's forward; after `backward()` each parameter has `grad_sample`, with the batch in front.

    `loss_reduction` says whether the loss adds the samples up or averages them, `batch_first` whether the inputs' first
    dimension is the batch (or the second). Without `batch_size` it is that of the inputs.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                f"without clearing gradients. Please clear out the grad_sample parameter of {weight} or "
                "post an issue to pytorch/pytorch to prioritize correct behavior"
            )

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = _batch_of(0 if batch_first else 1, args, kwargs) if batch_size is None else batch_size
        held = {
            name: ExpandedWeight(p, size, loss_reduction) if p.requires_grad else p
            for name, p in module.named_parameters()
        }
        return functional_call(module, held, args, kwargs)

    return wrapper
