"""`torch.cond`: one of two functions, by a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    return true_fn(*operands) if pred else false_fn(*operands)


cond.__module__ = cond.__module__.partition(".")[0]
# What handlers of PyTorch's operator compare with: nothing is traced, so that it is the function itself.
cond_op = cond
