"""The ways into a level and out of it, as operators with derivatives.

Invariant: a gradient of a tensor that lives at a level is one for each of the many. What comes from outside (`lift`)
gets the sum of theirs, what is handed in (`add_batch_dim`) each its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.record import Formulas
from .._core_operators import CORE
from .._dispatch.keys import INFERENCE, TORCH_DISPATCH, VIEW
from .._dispatch.op import Kernel, Op, Overrider
from .._tensor_base import TensorBase, alias, make_view
from .level import Level, batch_of, inside, levels_of, share, spread, wrap


def _below(t: TensorBase, level: Level, fn: Callable[[TensorBase, bool], TensorBase]) -> TensorBase | None:
    """`fn` on what is inside of a higher level than `level`, and the result at that one again; None where `t` has no
    higher level. `fn` is told whether a dimension more stands in front."""
    top = batch_of(t)
    if top is None or top.level.number <= level.number:
        return None
    found = fn(inside(t, top.level), not top.shared)
    return share(found, top.level) if top.shared else wrap(found, top.level)


def _added(t: TensorBase, dim: int, level: Level) -> TensorBase:
    d = dim + len(t._shape) if dim < 0 else dim
    found = _below(t, level, lambda inner, more: _added(inner, d + more, level))
    return wrap(t, level, d) if found is None else found


def _removed(t: TensorBase, dim: int, level: Level) -> TensorBase:
    found = _below(t, level, lambda inner, more: _removed(inner, dim + more, level))
    if found is not None:
        return found
    many = spread(t, level)
    shape, stride = list(many._shape[1:]), list(many._stride[1:])
    shape.insert(dim, many._shape[0])
    stride.insert(dim, many._stride[0])
    return alias(many, tuple(shape), tuple(stride), many._offset)


def _lifted(t: TensorBase, level: Level) -> TensorBase:
    if level in levels_of(t):
        # The tangent of a tensor from outside may live at the level already.
        return alias(t, t._shape, t._stride, t._offset)
    found = _below(t, level, lambda inner, more: _lifted(inner, level))
    return share(t, level) if found is None else found


def _tracked(src: TensorBase, t: TensorBase, op: Op, args: tuple[Any, ...]) -> TensorBase:
    """`t` as a view of `src`."""
    if t._keys & INFERENCE:
        return t
    view = make_view(src, (), (), 0, op, args)
    t._base_field, t._cmeta, t._attr_version = view._base_field, view._cmeta, view._attr_version
    t._view_op, t._view_args = op, args
    t._vc = view._vc
    t._keys |= VIEW
    return t


def _step(fn: Any) -> Kernel:
    """The kernel of one of these operators: it takes tensors of any levels."""

    def run(op: Op, args: tuple[Any, ...], keys: int) -> Any:
        src = args[0]
        if src._keys & TORCH_DISPATCH:
            raise NotImplementedError(
                f"vmap over a {type(src).__name__} is not supported: tensors that answer __torch_dispatch__ have no "
                "memory to map over"
            )
        t = fn(*args)
        if op is REMOVE and (src._base_field is None or args[2] in levels_of(src._base_field)):
            # Its base stays behind, inside the level.
            return t
        return _tracked(src, t, op, args)

    return Overrider(run)


def _operator(schema: str, fn: Any, grad: Any, node: str) -> Op:
    op = Op(schema.partition("(")[0], schema)
    op.is_view = True
    op.derivative = Formulas(op.name, op.schema, {"self": grad}, node, ())
    op.composite = None
    STEPS[op.name] = _step(fn)
    return op


# By name: these operators serve every level themselves.
STEPS: dict[str, Kernel] = {}

ADD = _operator(
    "_add_batch_dim(Tensor(a) self, int batch_dim, int level) -> Tensor(a)",
    _added,
    lambda g, batch_dim, level: remove_batch_dim(g, batch_dim, level),
    "AddBatchDimBackward0",
)
REMOVE = _operator(
    "_remove_batch_dim(Tensor(a) self, int out_dim, int level) -> Tensor(a)",
    _removed,
    lambda g, out_dim, level: add_batch_dim(g, out_dim, level),
    "RemoveBatchDimBackward0",
)
LIFT = _operator(
    "_lift_to_level(Tensor(a) self, int level) -> Tensor(a)",
    _lifted,
    lambda g, level: summed(g, level),
    "LiftToLevelBackward0",
)


def _call(op: Op, args: tuple[Any, ...]) -> Any:
    bit = int(args[0]._keys) & 0xFF
    if bit not in op.kernels:
        op.kernels[bit] = STEPS[op.name]
    return op.call(args)


def add_batch_dim(t: Any, dim: int, level: Level) -> Any:
    """A tensor of the level whose many values lie along `dim`."""
    return _call(ADD, (t, dim, level))


def remove_batch_dim(t: Any, dim: int, level: Level) -> Any:
    """All values of a tensor of the level, along the new dimension `dim`."""
    return _call(REMOVE, (t, dim + len(t._shape) + 1 if dim < 0 else dim, level))


def lift(t: Any, level: Level) -> Any:
    """A tensor from outside, at the level."""
    return t if level in levels_of(t) else _call(LIFT, (t, level))


def summed(g: Any, level: Level) -> Any:
    """The sum of the many values of a gradient, outside of the level."""
    if level not in levels_of(g):
        return CORE.mul.call((g, level.size))
    return CORE.sum.call((remove_batch_dim(g, 0, level), (0,), False, None))


def unwrapped(t: Any) -> Any:
    """What a batched tensor wraps, for those who look inside."""
    top = batch_of(t)
    return t if top is None else inside(t, top.level)
