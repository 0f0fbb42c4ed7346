"""The usual call of a mapped function: its arguments are tensors, mapped over the same dimension, and so is its result.

Invariant: whatever else is given or returned is left to `func/_vmap`, which sees it as it was.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.keys import NESTED
from .._tensor_base import TensorBase
from .level import enter, leave
from .steps import add_batch_dim, remove_batch_dim


def common_size(args: tuple[Any, ...], dim: int) -> int:
    """The size of the mapped dimension of all arguments; -1 where one of them is no plain tensor, or is refused."""
    size = -1
    for a in args:
        if not isinstance(a, TensorBase) or a._keys & NESTED:
            return -1
        rank = len(a._shape)
        if dim >= rank or dim < -rank:
            return -1
        found = a._shape[dim]
        if size >= 0 and found != size:
            return -1
        size = found
    return size


def map_tensors(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    size: int,
    dim: int,
    out_dim: int,
    randomness: str,
    outputs: Any,
) -> Any:
    """`func` for all; `outputs(found, out_dim, level, func)` serves results that are no single tensor."""
    level = enter(size, randomness)
    try:
        given = [add_batch_dim(a, dim, level) for a in args]
        found = func(*given, **kwargs) if kwargs else func(*given)
        if fits(found, out_dim):
            return remove_batch_dim(found, out_dim, level)
        return outputs(found, out_dim, level, func)
    finally:
        leave()


def fits(found: Any, dim: int) -> bool:
    if not isinstance(found, TensorBase) or found._keys & NESTED:
        return False
    return -len(found._shape) <= dim + 1 and dim <= len(found._shape)
