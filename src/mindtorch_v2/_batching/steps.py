"""The ways into a level and out of it: what they do with a tensor's geometry, and how they are called.

Invariant: a way takes tensors of any levels; what lives at a higher level than its own is looked into and put back.
"""

from __future__ import annotations

from typing import Any, Final, final

from .._dispatch.keys import BACKENDS, INFERENCE, TORCH_DISPATCH
from .._dispatch.op import Kernel, Op
from .._mypyc import i64
from .._tensor_base import TensorBase, alias, track
from .level import Batch, Level, inside, levels_of, over, share, spread

_ADD: Final = 0
_REMOVE: Final = 1
_LIFT: Final = 2


@final
class Ways:
    """The operators themselves; their derivatives are said in `dims`."""

    add: Op
    remove: Op
    lift: Op


WAYS: Final = Ways()


def added(t: TensorBase, dim: int, level: Level) -> TensorBase:
    d = dim + len(t._shape) if dim < 0 else dim
    s = t._storage
    if isinstance(s, Batch) and s.level.number > level.number:
        if s.shared:
            return share(added(inside(t, s.level), d, level), s.level)
        return over(added(inside(t, s.level), d + 1, level), s.level, 0)
    return over(t, level, d)


def removed(t: TensorBase, dim: int, level: Level) -> TensorBase:
    s = t._storage
    if isinstance(s, Batch) and s.level.number > level.number:
        if s.shared:
            return share(removed(inside(t, s.level), dim, level), s.level)
        return over(removed(inside(t, s.level), dim + 1, level), s.level, 0)
    many = spread(t, level)
    if dim == 0:
        return alias(many, many._shape, many._stride, many._offset)
    shape, stride = list(many._shape[1:]), list(many._stride[1:])
    shape.insert(dim, many._shape[0])
    stride.insert(dim, many._stride[0])
    return alias(many, tuple(shape), tuple(stride), many._offset)


def lifted(t: TensorBase, level: Level) -> TensorBase:
    if level in levels_of(t):
        # The tangent of a tensor from outside may live at the level already.
        return alias(t, t._shape, t._stride, t._offset)
    s = t._storage
    if isinstance(s, Batch) and s.level.number > level.number:
        found = lifted(inside(t, s.level), level)
        return share(found, s.level) if s.shared else over(found, s.level, 0)
    return share(t, level)


@final
class Step(Kernel):
    """Serves one of the ways on every device, and at every level."""

    def __init__(self, way: int) -> None:
        self.way: Final = way

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src: TensorBase = args[0]
        if src._keys & TORCH_DISPATCH:
            raise NotImplementedError(
                f"vmap over a {type(src).__name__} is not supported: tensors that answer __torch_dispatch__ have no "
                "memory to map over"
            )
        if self.way == _LIFT:
            t = lifted(src, args[1])
        elif self.way == _ADD:
            t = added(src, args[1], args[2])
        else:
            t = removed(src, args[1], args[2])
            base = src._base_field
            if base is None or args[2] in levels_of(base):
                # Its base stays behind, inside the level.
                return t
        if t._keys & INFERENCE == 0:
            track(t, src, op, args)
        return t


# By name: these operators serve every level themselves.
STEPS: Final[dict[str, Kernel]] = {
    "_add_batch_dim": Step(_ADD),
    "_remove_batch_dim": Step(_REMOVE),
    "_lift_to_level": Step(_LIFT),
}


def _call(op: Op, args: tuple[Any, ...], t: TensorBase) -> Any:
    bit = int(t._keys & BACKENDS)
    if bit not in op.kernels:
        op.kernels[bit] = STEPS[op.name]
    return op.call(args)


def add_batch_dim(t: Any, dim: int, level: Level) -> Any:
    """A tensor of the level whose many values lie along `dim`."""
    return _call(WAYS.add, (t, dim, level), t)


def remove_batch_dim(t: Any, dim: int, level: Level) -> Any:
    """All values of a tensor of the level, along the new dimension `dim`."""
    return _call(WAYS.remove, (t, dim + len(t._shape) + 1 if dim < 0 else dim, level), t)


def lift(t: Any, level: Level) -> Any:
    """A tensor from outside, at the level."""
    return t if level in levels_of(t) else _call(WAYS.lift, (t, level), t)
