"""`torch._functorch.vmap`: `vmap` in pieces, for what has results of many levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C._functorch import _add_batch_dim, _unwrap_batched, _vmap_decrement_nesting, _vmap_increment_nesting
from .._tensor_base import TensorBase
from ..utils._pytree import tree_flatten, tree_unflatten


def wrap_batched(args: tuple[Any, ...], bdims: Any, level: int) -> Any:
    """Tensors that stand for many, along the dimension that stands in their place in `bdims`."""
    flat, spec = tree_flatten(args)
    dims = [None] * len(flat) if bdims is None else tree_flatten(bdims, is_leaf=lambda x: x is None)[0]
    if len(dims) != len(flat):
        raise ValueError(f"wrap_batched: there are {len(flat)} values and {len(dims)} dimensions")
    made = [a if d is None else _add_batch_dim(a, d, level) for a, d in zip(flat, dims)]
    return tree_unflatten(made, spec)


def unwrap_batched(args: Any, level: int) -> tuple[Any, Any]:
    """What tensors of a level stand for, and along which dimension; None where they stand for one."""
    flat, spec = tree_flatten(args)
    pairs = [_unwrap_batched(a, level) if isinstance(a, TensorBase) else (a, None) for a in flat]
    return tree_unflatten([p[0] for p in pairs], spec), tree_unflatten([p[1] for p in pairs], spec)


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., tuple[Any, Any]]:
    """`vmap` of a function that gives the results with the dimensions that they have, instead of moving them."""

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        level = _vmap_increment_nesting(batch_size, randomness)
        try:
            return unwrap_batched(func(*wrap_batched(args, in_dims, level), **kwargs), level)
        finally:
            _vmap_decrement_nesting()

    return inner
