"""Operators that `vmap` serves as a whole, above autograd: rules of users, and composites that look at values.

Invariant: tensors leave the level and results come back by operators with derivatives, so that gradients follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.keys import BATCHED
from .._dispatch.op import Kernel, Op, Overrider
from .._dispatch.registry import get
from .._tensor_base import TensorBase
from .._warn import warn_once
from .dims import add_batch_dim, remove_batch_dim
from .kernel import tensors_of
from .level import Level, highest, is_at, is_many
from .loop import SLOW

Served = Callable[[Op, tuple[Any, ...], Level], Any]


def whole(rule: Served) -> Kernel:
    """`rule(op, args, level)` for calls in which something is many; any other goes on as it was."""

    def run(op: Op, args: tuple[Any, ...], keys: int) -> Any:
        level = highest(tensors_of(args))
        # A composite that looks at values may look at one that all share.
        if level is not None and (op.composite is None or any([is_many(t, level) for t in tensors_of(args)])):
            return rule(op, args, level)
        rest = keys & ~int(BATCHED)
        return op.below(rest, args).run(op, args, rest)

    return Overrider(run)


def _one(value: Any, outside: dict[int, Any], i: int) -> Any:
    if isinstance(value, TensorBase):
        many = outside.get(id(value))
        return value if many is None else get("select").call((many, 0, i))
    if isinstance(value, (tuple, list)):
        return tuple([_one(v, outside, i) for v in value])
    return value


def looped(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Called once for each of the many."""
    warn_once(SLOW.format(op.qualified()))
    outside = {id(t): remove_batch_dim(t, 0, level) for t in tensors_of(args) if is_at(t, level)}
    return _stacked([op.call(tuple([_one(a, outside, i) for a in args])) for i in range(level.size)], level)


def _stacked(found: list[Any], level: Level) -> Any:
    first = found[0]
    if isinstance(first, TensorBase):
        return add_batch_dim(get("stack").call((tuple(found), 0)), 0, level)
    if isinstance(first, (tuple, list)):
        return tuple([_stacked([f[k] for f in found], level) for k in range(len(first))])
    return first


def refused(text: str) -> Served:
    """What PyTorch does not map, in its words."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        raise RuntimeError(text.format(op.qualified().partition(".")[0]))

    return served


_DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {0}. Please file "
    "an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)
# Composites that look at values: how long something is, or which places to leave out.
LOOPED_WHOLE = (
    "argwhere ctc_loss.IntList ctc_loss.Tensor embedding_bag embedding_bag.padding_idx _embedding_bag "
    "multilabel_margin_loss repeat_interleave.self_Tensor repeat_interleave.Tensor bincount histogramdd "
    "histogramdd.int_bins histogramdd.TensorList_bins nonzero_static"
)
# By the operator's name; users' rules come here too.
WHOLE: dict[str, Kernel] = {
    **{name: whole(looped) for name in LOOPED_WHOLE.split()},
    **{name: whole(refused(_DYNAMIC)) for name in ("_unique", "_unique2", "unique_dim", "where.nonzero")},
    "allclose": whole(
        refused(
            "vmap over torch.allclose isn't supported yet. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    ),
    "equal": whole(refused("Batching rule not implemented for {0}. We could not generate a fallback.")),
}
