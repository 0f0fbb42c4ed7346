"""`scan`: a function that carries a state along the slices of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._ops.rules.base import wrap_dim
from .._tensor_base import TensorBase
from ..utils import _pytree as pytree

_SHORT = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"


def _check(combine_fn: Any, init: list[Any], xs: list[Any], dim: Any, reverse: Any) -> None:
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if not init:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, leaves in (("init", init), ("xs", xs)):
        for t in leaves:
            if not isinstance(t, TensorBase):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {t}")
    if any(t.ndim <= dim or t.shape[dim] == 0 for t in xs):
        raise RuntimeError(_SHORT)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """The last carry and all outputs of `carry, y = combine_fn(carry, x)` over the slices of `xs` along `dim`."""
    start = pytree.tree_leaves(init)
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        return init, []
    if isinstance(dim, int) and isinstance(leaves[0], TensorBase):
        dim = wrap_dim(dim, leaves[0].ndim)
    _check(combine_fn, start, leaves, dim, reverse)
    return _fake_scan(combine_fn, init, xs, dim, reverse)


def _fake_scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """The same by its definition, slice after slice, with no other check than that of the carry."""
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        return init, []
    start = pytree.tree_leaves(init)
    steps = leaves[0].shape[dim]
    carry: Any = init
    outputs = []
    for i in range(steps - 1, -1, -1) if reverse else range(steps):
        found = combine_fn(carry, pytree.tree_unflatten([t.select(dim, i) for t in leaves], spec))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise RuntimeError(
                f"scan(): combine_fn must return a pair of the next carry and an output, got {type(found)}"
            )
        carry, y = found
        for was, now in zip(start, pytree.tree_leaves(carry)):
            if not isinstance(now, TensorBase) or (was._shape, was._dtype) != (now._shape, now._dtype):
                raise RuntimeError(
                    "Expected init and carry to have same metadata but found:\n"
                    f"{tuple(was._shape)} {was._dtype} became {getattr(now, 'shape', now)} {getattr(now, 'dtype', '')}"
                )
        if len(pytree.tree_leaves(carry)) != len(start):
            raise RuntimeError(
                f"The tree structure of the carry has to match init: {pytree.tree_structure(init)}, "
                f"got {pytree.tree_structure(carry)}"
            )
        outputs.append(y)
    if reverse:
        outputs.reverse()
    columns = zip(*(pytree.tree_leaves(y) for y in outputs))
    stacked = [torch.stack(list(c)) for c in columns]
    placed = [torch.movedim(t, 0, dim) if 0 < dim < t.ndim else t for t in stacked]
    return carry, pytree.tree_unflatten(placed, pytree.tree_structure(outputs[0]))
