"""`torch.cond`: one of two functions, by a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._batching.level import stands_for_many
from .._tensor_base import TensorBase
from ..utils import _pytree as pytree


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` where `pred`, a number or a tensor with one element, is true; else `false_fn(*operands)`."""
    if not isinstance(pred, (bool, int, float)):
        if not isinstance(pred, TensorBase):
            raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
        if pred.numel() != 1:
            raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
        if not callable(true_fn) or not callable(false_fn):
            raise RuntimeError("Expect both branches to be callable.")
        if not isinstance(operands, (tuple, list)) or pytree.tree_any(
            lambda t: not isinstance(t, TensorBase), operands
        ):
            raise RuntimeError(
                "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
                f"consists of tensor leaves, but got {operands}."
            )
        if stands_for_many(pred):
            return _of_each(pred, true_fn(*operands), false_fn(*operands))
    return true_fn(*operands) if pred else false_fn(*operands)


def _of_each(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Inside `vmap` each of the many has a predicate of its own: both functions run, and each takes what is its own."""
    left, spec = pytree.tree_flatten(on_true)
    right, other = pytree.tree_flatten(on_false)
    if spec != other:
        raise RuntimeError(
            f"Unmatched output spec from torch.cond branches: true branch {spec} vs false branch {other}."
        )
    return pytree.tree_unflatten([torch.where(pred, a, b) for a, b in zip(left, right)], spec)


cond.__module__ = cond.__module__.partition(".")[0]
# What handlers of PyTorch's operator compare with: nothing is traced, so that it is the function itself.
cond_op = cond
