"""The ways into a level and out of it, as operators with derivatives.

Invariant: a gradient of a tensor that lives at a level is one for each of the many. What comes from outside (`lift`)
gets the sum of theirs, what is handed in (`add_batch_dim`) each its own.
"""

from __future__ import annotations

from typing import Any

from .._autograd.record import Formulas
from .._core_operators import CORE
from .._dispatch.op import Op
from .level import Level, batch_of, handed, levels_of
from .steps import STEPS, WAYS, add_batch_dim, lift, remove_batch_dim

__all__ = ["STEPS", "add_batch_dim", "lift", "remove_batch_dim", "summed", "unwrapped"]


def _operator(schema: str, grad: Any, node: str) -> Op:
    op = Op(schema.partition("(")[0], schema)
    op.is_view = True
    op.derivative = Formulas(op.name, op.schema, {"self": grad}, node, ())
    op.composite = None
    return op


WAYS.add = _operator(
    "_add_batch_dim(Tensor(a) self, int batch_dim, int level) -> Tensor(a)",
    lambda g, batch_dim, level: remove_batch_dim(g, batch_dim, level),
    "AddBatchDimBackward0",
)
WAYS.remove = _operator(
    "_remove_batch_dim(Tensor(a) self, int out_dim, int level) -> Tensor(a)",
    lambda g, out_dim, level: add_batch_dim(g, out_dim, level),
    "RemoveBatchDimBackward0",
)
WAYS.lift = _operator(
    "_lift_to_level(Tensor(a) self, int level) -> Tensor(a)", lambda g, level: summed(g, level), "LiftToLevelBackward0"
)


def summed(g: Any, level: Level) -> Any:
    """The sum of the many values of a gradient, outside of the level."""
    if level not in levels_of(g):
        return CORE.mul.call((g, level.size))
    return CORE.sum.call((remove_batch_dim(g, 0, level), (0,), False, None))


def unwrapped(t: Any) -> Any:
    """What a batched tensor wraps, for those who look inside."""
    top = batch_of(t)
    return t if top is None else handed(t, top.level)
