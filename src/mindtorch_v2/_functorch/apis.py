"""`vmap`, `grad` and `grad_and_value` where PyTorch has them, and `vmap` in a number of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..func import grad, grad_and_value, vmap
from ..utils._pytree import tree_leaves

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def _mapped_size(in_dims: Any, args: tuple[Any, ...]) -> int:
    """How many elements there are along the first dimension that is mapped."""
    each = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
    for dim, arg in zip(each, args):
        for tensor, d in zip(tree_leaves(arg), tree_leaves(dim) * len(tree_leaves(arg))):
            if isinstance(d, int):
                return int(tensor.size(d))
    return 1


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` that computes so many parts of the mapped dimension one after the other."""
    if chunks == 1:
        return vmap(func, in_dims=in_dims, out_dims=out_dims, randomness=randomness)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        size = max(-(-_mapped_size(in_dims, args) // chunks), 1)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return mapped
