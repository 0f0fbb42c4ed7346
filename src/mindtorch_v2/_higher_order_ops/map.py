"""`map`: a function applied to each slice along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._tensor_base import TensorBase
from ..utils import _pytree as pytree


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice `x` of the tensors of `xs` along their first dimension, stacked."""
    leaves, spec = pytree.tree_flatten(xs)
    if not all(isinstance(t, TensorBase) for t in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [t.shape for t in leaves]
    if not shapes or not shapes[0] or shapes[0][0] == 0:
        raise RuntimeError(f"Leading dimensions of mapped xs cannot be 0. Got shapes {shapes}.")
    if any(not s or s[0] != shapes[0][0] for s in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    return _fake_map(f, xs, *args)


def _fake_map(f: Callable[..., Any], x: Any, *args: Any) -> Any:
    """The same by its definition, slice after slice, without checks."""
    leaves, spec = pytree.tree_flatten(x)
    results = [f(pytree.tree_unflatten([t[i] for t in leaves], spec), *args) for i in range(leaves[0].shape[0])]
    flat = [pytree.tree_leaves(r) for r in results]
    return pytree.tree_unflatten(
        [torch.stack(list(column)) for column in zip(*flat)], pytree.tree_structure(results[0])
    )
