"""`torch.while_loop`: a function applied to its own results while a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dtype import bool as bool_
from .._tensor_base import TensorBase
from ..utils import _pytree as pytree


def _holds(pred: Any) -> bool:
    if isinstance(pred, bool) or (isinstance(pred, TensorBase) and not pred._shape and pred._dtype is bool_):
        return bool(pred)
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`; tensors that no step replaced are copied."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    leaves = pytree.tree_leaves(carried_inputs)
    if not all(isinstance(t, (TensorBase, int)) for t in leaves):
        kinds = tuple(type(t) for t in leaves)
        raise AssertionError(f"{leaves} can only be of {(TensorBase, int)} but got {kinds}")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    if not _holds(cond_fn(*carried_inputs)):
        return tuple(pytree.tree_map_only(TensorBase, lambda t: t.clone(), carried_inputs))
    carried = carried_inputs
    going = True
    while going:
        carried = body_fn(*carried)
        if not isinstance(carried, tuple):
            raise AssertionError(f"body_fn should return a tuple but got {type(carried)}")
        if len(carried) != len(carried_inputs):
            raise AssertionError(
                "body_fn should return the same number of elements as carried_inputs, "
                f"got {len(carried)} vs {len(carried_inputs)}"
            )
        _check_kept(carried_inputs, carried)
        going = bool(cond_fn(*carried))
    return carried


def _check_kept(before: Any, after: Any) -> None:
    """What a step returns is what the next one takes: the same tensors by shape, dtype and device."""
    for i, (was, now) in enumerate(zip(pytree.tree_leaves(before), pytree.tree_leaves(after))):
        if not (isinstance(was, TensorBase) and isinstance(now, TensorBase)):
            continue
        if (was._shape, was._dtype, was._device) != (now._shape, now._dtype, now._device):
            raise RuntimeError(
                f"Expected body_fn_output and carried_inputs to have same metadata but found:\nleaf {i}: "
                f"{tuple(was._shape)} {was._dtype} {was._device} became {tuple(now._shape)} {now._dtype} {now._device}"
            )
