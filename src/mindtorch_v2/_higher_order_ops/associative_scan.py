"""`associative_scan`: running results of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._ops.rules.base import wrap_dim
from .._tensor_base import TensorBase
from ..utils import _pytree as pytree
from .scan import _SHORT


def _check(combine_fn: Any, xs: list[Any], dim: Any, reverse: Any, combine_mode: Any) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise" and any(t.device.type in ("cpu", "meta") for t in xs):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if not xs:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(t, TensorBase) for t in xs):
        raise ValueError("xs leaves must be a Tensor")
    if any(t.ndim <= dim or t.shape[dim] == 0 for t in xs):
        raise ValueError(_SHORT)


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Slice `i` of the result along `dim` is that of `xs` combined with all before it (after it, if `reverse`)."""
    leaves, spec = pytree.tree_flatten(xs)
    if isinstance(dim, int) and leaves and isinstance(leaves[0], TensorBase):
        dim = wrap_dim(dim, leaves[0].ndim)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    return _fake_associative_scan(combine_fn, xs, dim, reverse)


def _fake_associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False) -> Any:
    """The same by its definition, slice after slice, without checks."""
    leaves, spec = pytree.tree_flatten(xs)
    steps = leaves[0].shape[dim]
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    results: list[Any] = []
    for i in order:
        x = pytree.tree_unflatten([t.select(dim, i) for t in leaves], spec)
        results.append(combine_fn(results[-1], x) if results else x)
    if reverse:
        results.reverse()
    columns = zip(*(pytree.tree_leaves(r) for r in results))
    return pytree.tree_unflatten([torch.stack(list(c), dim) for c in columns], spec)
