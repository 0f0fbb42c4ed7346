"""Sparse tensors inside `vmap`: constants, and COO tensors that are mapped over.

Invariant: a call without a mapped argument is served as outside. Any other calls the operator once for each of the
many, recorded as ever, and tells the user once for each operator; its results, dense or COO tensors, are the many of a
new one. A COO tensor that stands for many is a tensor whose storage is `Many`.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _native
from .._autograd.record import NO_DERIVATIVE
from .._batching.kernel import lifted
from .._batching.level import Level, inside, is_many, levels_of, outside, wrap
from .._batching.loop import SLOW
from .._core_operators import HOOKS
from .._dispatch.keys import AUTOGRAD, BACKENDS, BATCHED, FORWARD, SPARSE
from .._dispatch.op import RESOLVERS, Kernel, Op, Overrider
from .._layout import sparse_coo
from .._tensor_base import TensorBase, requires_grad
from .._warn import warn_once
from .parts import NAMES, is_sparse, layout_of, parts
from .refusals import refused
from .table import TABLE, Entry, derivative_of, find, tensors_in

_WAYS = frozenset(("_add_batch_dim", "_remove_batch_dim"))


class Many:
    """The storage of a COO tensor that stands for many: one of all of them, along its first dimension."""

    layout = sparse_coo

    def __init__(self, whole: Any, level: Level) -> None:
        self.whole = whole
        self.level = level

    @property
    def ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    @property
    def wrapper(self) -> Any:
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    def check_has(self, what: str) -> None:
        """COO tensors answer questions about strides."""


def _held(t: Any) -> Many | None:
    storage = t._storage
    return storage if isinstance(storage, Many) else None


def _hold(whole: Any, level: Level) -> Any:
    t: Any = _native.alloc_instance(TensorBase, HOOKS.tensor)
    t._storage = Many(whole, level)
    t._offset = 0
    t._shape, t._stride = whole._shape[1:], whole._stride[1:]
    t._dtype, t._device = whole._dtype, whole._device
    t._keys = (whole._keys & BACKENDS) | SPARSE | BATCHED
    t._contig = 2
    return t


def _enter(t: Any, dim: int, level: Level) -> Any:
    if _held(t) is not None or parts(t).layout is not sparse_coo:
        if _held(t) is None:
            parts(t).check_has("strides")
        raise NotImplementedError("vmap over a sparse tensor that is mapped over already is not supported")
    return _hold(torch.movedim(t, dim, 0), level)


def _leave(t: Any, dim: int, level: Level) -> Any:
    held = _held(t)
    if held is None:
        raise RuntimeError(f"expand is unsupported for {NAMES[layout_of(t)]} tensors")
    if held.level is not level:
        raise NotImplementedError("a sparse tensor that is mapped over cannot leave another vmap than its own")
    return torch.movedim(held.whole, 0, dim)


def _level_of(tensors: list[Any]) -> Level:
    found: Level | None = None
    for t in tensors:
        held = _held(t) if t._keys & SPARSE else None
        for level in [held.level] if held is not None else levels_of(t)[:1]:
            if found is None or level.number > found.number:
                found = level
    assert found is not None
    return found


def _column(a: Any, level: Level) -> list[Any]:
    """An argument for each of the many."""
    if isinstance(a, TensorBase):
        held = _held(a)
        if held is not None:
            if held.level is level:
                return [held.whole.select(0, i) for i in range(level.size)]
        elif is_many(a, level):
            whole: Any = inside(a, level)
            return list(torch.unbind(whole, 0))
        return [a if a._keys & SPARSE else inside(a, level)] * level.size
    if isinstance(a, (tuple, list)) and any(isinstance(t, TensorBase) for t in a):
        return [tuple(row) for row in zip(*[_column(t, level) for t in a])]
    return [a] * level.size


def _gathered(op: Op, found: list[Any], level: Level) -> Any:
    first = found[0]
    if isinstance(first, tuple):
        return tuple(_gathered(op, list(column), level) for column in zip(*found))
    if not isinstance(first, TensorBase):
        raise RuntimeError(f"Batching rule not implemented for {op.qualified()}. We could not generate a fallback.")
    if not is_sparse(first):
        return wrap(torch.stack(found), level)
    if parts(first).layout is not sparse_coo:
        raise RuntimeError(f"vmap: {op.qualified()}: tensors of layout {parts(first).layout} cannot be mapped over")
    return _hold(torch.stack(found), level)


def _each(op: Op, args: tuple[Any, ...], tensors: list[Any]) -> Any:
    level = _level_of(tensors)
    if op.mutates or op.is_out or level.size == 0:
        raise RuntimeError(
            f"Batching rule not implemented for {op.qualified()} of sparse tensors; the fallback path doesn't work on "
            "out= or in-place ops, nor for none"
        )
    warn_once(SLOW.format(op.qualified()))
    with outside():
        columns = [_column(a, level) for a in args]
        return _gathered(op, [op.call(tuple([c[i] for c in columns])) for i in range(level.size)], level)


def _recorded(op: Op, entry: Entry, args: tuple[Any, ...], tensors: list[Any], keys: int) -> Any:
    derivative = derivative_of(op, entry)
    if derivative is None:
        return NO_DERIVATIVE.run(op, args, keys)
    levels = {level.number: level for t in tensors for level in levels_of(t)}
    wanted = [levels[n] for n in sorted(levels)]
    given = tuple([lifted(a, wanted) if isinstance(a, TensorBase) else a for a in args])
    return derivative.kernel().run(op, given, keys & ~int(AUTOGRAD))


def _serve(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    tensors = tensors_in(args)
    if op.name in _WAYS:
        return _enter(*args) if op.name == "_add_batch_dim" else _leave(*args)
    if not any([t._keys & BATCHED for t in tensors]):
        rest = keys & ~int(BATCHED)
        return find(op, rest).run(op, args, rest)
    if op.name.startswith("_lift"):
        raise refused(op.name, tensors)
    if not any([_held(t) for t in tensors]):
        # Mapped dense tensors are recorded as they are: their history belongs to the level.
        entry = TABLE.get(op.name)
        if entry is None or entry.above:
            return find(op, keys & ~int(BATCHED)).run(op, args, keys)
        if keys & FORWARD:
            dual: Kernel = RESOLVERS.forward
            return dual.run(op, args, keys)
        if keys & AUTOGRAD:
            return _recorded(op, entry, args, tensors, keys)
    elif any([t._keys & BATCHED and not t._keys & SPARSE and requires_grad(t) for t in tensors]):
        raise refused(op.name, tensors)
    return _each(op, args, tensors)


IN_VMAP = Overrider(_serve)
