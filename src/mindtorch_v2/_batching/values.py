"""Values of batched tensors: what Python asks of one of them has as many answers as there are.

Invariant: a value that all share may be asked for.
"""

from __future__ import annotations

from typing import Any

from .._core_operators import CORE
from .dims import add_batch_dim, remove_batch_dim
from .level import batch_of, inside, levels_of, share

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)
_TRUTH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)


def _value(t: Any, refusal: str) -> Any:
    top = batch_of(t)
    if top is None:
        return t.item()
    if not top.shared:
        raise RuntimeError(refusal)
    return _value(inside(t, top.level), refusal)


def item_of(t: Any) -> Any:
    return _value(t, _ITEM)


def truth_of(t: Any) -> bool:
    return bool(_value(t, _TRUTH))


def all_of(t: Any) -> Any:
    """The values of all, outside of every level."""
    top = batch_of(t)
    return t if top is None else all_of(inside(t, top.level))


def at_levels_of(t: Any, like: Any) -> Any:
    """A new tensor, without history, at all levels of another one: it may have a gradient for each of the many."""
    for level in reversed(levels_of(like)):
        t = share(t, level)
    return t


def many_like(t: Any, like: Any) -> Any:
    """A copy of `t` that has a value of its own for each of the many that `like` stands for."""
    for level in reversed(levels_of(like)):
        t = add_batch_dim(CORE.clone.call((remove_batch_dim(t, 0, level), None)), 0, level)
    return t


def shown(t: Any) -> str:
    """A batched tensor as PyTorch prints it: its level, and what it wraps."""
    top = batch_of(t)
    assert top is not None
    value = repr(inside(t, top.level))
    if top.shared:
        return value
    inner = value.replace("\n", "\n    ")
    return f"BatchedTensor(lvl={top.level.depth}, bdim=0, value=\n    {inner}\n)"
