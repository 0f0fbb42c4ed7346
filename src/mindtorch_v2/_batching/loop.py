"""What has no rule: the operator is called once for each of the many, and results are stacked.

Invariant: the user is told once for each operator.
"""

from __future__ import annotations

from typing import Any, Final

from .._dispatch.keys import SPARSE
from .._dispatch.op import Op
from .._dispatch.registry import get
from .._tensor_base import TensorBase
from .._warn import warn_once
from .level import Level, inside, is_many, wrap

SLOW = (
    "There is a performance drop because we have not yet implemented the batching rule for {0}. Please file us an "
    "issue on GitHub so that we can prioritize its implementation."
)


class Fallback:
    """Whether the loop may be used at all; `displayed` is a switch of PyTorch's that changes nothing, here as there."""

    allowed: bool = True
    displayed: bool = False


FALLBACK: Final = Fallback()


def _one(value: Any, i: int, level: Level) -> Any:
    if isinstance(value, TensorBase):
        t = inside(value, level)
        return get("select").call((t, 0, i)) if is_many(value, level) else t
    if isinstance(value, (tuple, list)):
        return tuple([_one(v, i, level) for v in value])
    return value


def one_by_one(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """The loop itself; operators with results only."""
    if not FALLBACK.allowed:
        raise RuntimeError(f"{op.qualified()} hit the vmap fallback which is currently disabled")
    if op.mutates or op.is_view or not op.schema.returns:
        raise RuntimeError(
            f"Batching rule not implemented for {op.qualified()}; the fallback path doesn't work on out= or view ops."
        )
    if any(r.kind != "Tensor" for r in op.schema.returns):
        raise RuntimeError(f"Batching rule not implemented for {op.qualified()}. We could not generate a fallback.")
    if level.size == 0:
        raise RuntimeError(
            f"vmap: {op.qualified()} is served by calling it for each element, and the mapped dimension has none"
        )
    warn_once(SLOW.format(op.qualified()))
    found = [op.call(tuple([_one(a, i, level) for a in args])) for i in range(level.size)]
    return stacked(found, level)


def stacked(found: list[Any], level: Level) -> Any:
    """Results of all calls as one of the level."""
    first = found[0]
    if isinstance(first, TensorBase):
        if first._keys & SPARSE:
            raise RuntimeError(f"vmap: results of layout {first._storage.layout} cannot be mapped over")
        return wrap(get("stack").call((tuple(found), 0)), level)
    return tuple([stacked([f[k] for f in found], level) for k in range(len(first))])
