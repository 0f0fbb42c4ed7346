"""Nested tensors inside `vmap`: one of the many is a tensor of which only the number of dimensions is known.

Invariant: every operator is called once for each of the many, with recorded operators, and gives a nested tensor of the
strided layout; the user is told once for each operator. What writes, and what would show memory, is refused.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _native
from .._batching.level import Level, inside, is_many, is_mapped_nested, level_of, outside, untransformed
from .._dispatch.keys import BACKENDS, BATCHED, NESTED, SPARSE
from .._dispatch.op import Op
from .._layout import strided
from .._ops.rules.base import wrap_dim
from .._tensor_base import TensorBase, requires_grad
from .._warn import warn_once
from .construct import strided_from_list
from .history import components
from .parts import Parts, Structure, is_nested, parts
from .table import JAGGED, STRIDED, serves, shown, tensors_in
from .tensors import _Nested

_SLOW = (
    "There is a performance drop because we have not yet implemented the nested batching rule for {0}. Please file us "
    "an issue on GitHub so that we can prioritize its implementation."
)
_FIRST = "Nested tensors can only be vmapped over dim=0, but got dim={0}"
_ONE_LEVEL = "Only one level of vmap is supported when vmapping over nested tensors"
_NO_RULE = "Nested batching rule not implemented for {0}"
_SHOWS = "; the fallback path doesn't work on out= or view ops."
_NO_WAY = ". We could not generate a fallback."
# Composites that PyTorch counts among the views.
_VIEWS = frozenset("reshape to contiguous.view resolve_conj resolve_neg flatten type_as".split())


class Mapped(Structure):
    """One of the many parts of a nested tensor, at a level."""

    layout = strided

    def __init__(self, level: Level) -> None:
        self.level = level


class MappedNestedTensor(_Nested):
    """A nested tensor inside `vmap`."""

    is_nested: Any = False

    def _no_shape(self) -> Any:
        raise RuntimeError("sizes() is not supported for batched nested tensors")

    shape: Any = property(_no_shape)

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        return parts(self).values.size(wrap_dim(dim, len(self._shape)) + 1)

    def __len__(self) -> int:
        return len(self.shape)

    def __iter__(self) -> Any:
        return iter(self.shape)

    def __getitem__(self, key: Any) -> Any:
        return self.shape[key]

    def numel(self) -> int:
        return 0

    nelement = numel

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return True

    def contiguous(self, memory_format: Any = None) -> Any:
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_NO_RULE.format("aten::to") + _SHOWS)

    def tolist(self) -> Any:
        raise RuntimeError(_NO_RULE.format("aten::resolve_conj") + _SHOWS)

    def item(self) -> Any:
        raise RuntimeError(_NO_RULE.format("aten::item") + _NO_WAY)

    def _text(self, *, tensor_contents: Any = None) -> str:
        value = "\n".join("    " + line for line in repr(parts(self).values).split("\n"))
        return f"BatchedTensor(lvl={parts(self).structure.level.depth}, bdim=0, value=\n{value}\n)"

    __repr__: Any = _text


def is_mapped(t: Any) -> bool:
    return isinstance(t, TensorBase) and is_mapped_nested(t)


def _wrap(nested: Any, level: Level) -> Any:
    t: Any = _native.alloc_instance(TensorBase, MappedNestedTensor)
    t._storage = Parts(nested, Mapped(level))
    t._offset = 0
    t._shape = nested._shape[1:]
    t._stride = nested._stride[1:]
    t._dtype, t._device = nested._dtype, nested._device
    t._keys = (nested._keys & BACKENDS) | SPARSE | NESTED | BATCHED
    t._contig = 2
    return t


# -- the ways in and out --------------------------------------------------------------------------------------------
@serves(JAGGED, "_add_batch_dim")
@serves(STRIDED, "_add_batch_dim")
def _enter(op: Op, t: Any, dim: int, level: Level) -> Any:
    d = wrap_dim(dim, len(t._shape))
    if is_mapped(t):
        raise RuntimeError(_ONE_LEVEL)
    if d != 0:
        raise RuntimeError(_FIRST.format(d))
    return _wrap(t, level)


@serves(JAGGED, "_remove_batch_dim")
@serves(STRIDED, "_remove_batch_dim")
def _leave(op: Op, t: Any, dim: int, level: Level) -> Any:
    if not is_mapped(t):
        raise RuntimeError(f"vmap: {_said(t)} was not mapped over and cannot be returned with a mapped dimension")
    if parts(t).structure.level is not level:
        raise RuntimeError(_ONE_LEVEL)
    if dim != 0:
        raise RuntimeError(_FIRST.format(dim))
    return parts(t).values


def _said(t: Any) -> str:
    return f"a nested tensor of layout {parts(t).layout}"


# -- operators ------------------------------------------------------------------------------------------------------
def serve(op: Op, args: tuple[Any, ...]) -> Any:
    """An operator of which an argument is mapped: once for each."""
    name = "aten::" + shown(op, args).removesuffix(".default")
    tensors = tensors_in(args)
    level: Level = parts(next(t for t in tensors if is_mapped(t))).structure.level
    _check(op, args, name, tensors, level)
    warn_once(_SLOW.format(name))
    with outside(), untransformed():
        columns = [_column(a, level) for a in args]
        found = [op.call(tuple([column[i] for column in columns])) for i in range(level.size)]
        return _gathered(found, level, name)


def _check(op: Op, args: tuple[Any, ...], name: str, tensors: list[Any], level: Level) -> None:
    from .._batching.table import is_random

    if is_random(op) and level.randomness != "different":
        from .._batching.random import refusal

        raise RuntimeError(refusal(level.randomness))
    if op.is_out or op.is_view or op.title() in _VIEWS:
        several = any(r.is_list for r in op.schema.returns)
        raise RuntimeError(_NO_RULE.format(name) + (_NO_WAY if several else _SHOWS))
    if op.mutates:
        raise RuntimeError(f"{name}: vmap fallback not supported for in-place ops on nested tensors")
    if any(r.kind != "Tensor" or r.is_list for r in op.schema.returns) or op.title() in ("stack", "split", "chunk"):
        raise RuntimeError(_NO_RULE.format(name) + _NO_WAY)
    for t in tensors:
        if is_mapped(t):
            if parts(t).structure.level is not level:
                raise RuntimeError(_ONE_LEVEL)
        elif is_nested(t):
            raise RuntimeError(f"vmap: {name} of {_said(t)} that is mapped over and one that is not is not supported")
    if any([not is_nested(t) and t._keys & BATCHED and requires_grad(t) for t in tensors]):
        raise RuntimeError(
            f"vmap: {name} of a nested tensor and a tensor whose gradient is taken inside is not supported"
        )
    other = level_of(args)
    if other is not None and other is not level:
        raise RuntimeError(_ONE_LEVEL)
    if level.size == 0:
        raise RuntimeError(f"vmap: {name} of a nested tensor of no parts is not supported")


def _column(a: Any, level: Level) -> list[Any]:
    """An argument for each of the many."""
    if is_mapped(a):
        return components(parts(a).values)
    if isinstance(a, TensorBase):
        t: Any = inside(a, level)
        return list(torch.unbind(t, 0)) if is_many(a, level) else [t] * level.size
    if isinstance(a, (tuple, list)) and any(isinstance(t, TensorBase) for t in a):
        return [tuple(row) for row in zip(*[_column(t, level) for t in a])]
    return [a] * level.size


def _gathered(found: list[Any], level: Level, name: str) -> Any:
    first = found[0]
    if isinstance(first, TensorBase):
        return _wrap(strided_from_list(found), level)
    if isinstance(first, tuple):
        made = [_gathered(list(column), level, name) for column in zip(*found)]
        return type(first)(made) if type(first) is not tuple else tuple(made)
    raise RuntimeError(_NO_RULE.format(name) + _NO_WAY)
