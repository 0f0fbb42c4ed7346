"""Indexing of many by many: the position among the many becomes one more index.

Invariant: indices that PyTorch would refuse for one of the many are refused; a mask whose count is not known is.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.op import Op, owned
from .._dispatch.registry import get
from .._dtype import int64
from .._ops.rules.pointwise import broadcast_shapes
from .._sizes import numel_of
from .._tensor_base import TensorBase
from .kernel import tensors_of
from .kinds import described, reshaped
from .level import Level, in_front, inside, is_many, spread, wrap


def _op(name: str, *args: Any) -> Any:
    return get(name).call(args)


def _numbers(like: TensorBase, size: int, rank: int) -> Any:
    """The positions of the many, as an index in front of `rank` dimensions."""
    count = _op("arange", 0, size, 1, int64, None, like._device, None)
    return _op("view", count, (size, *((1,) * rank)))


class _Places:
    """Where the dimensions of an indexed tensor come from."""

    def __init__(self, indices: list[Any]) -> None:
        at = [i for i, t in enumerate(indices) if t is not None]
        self.first = at[0]
        # Indices beside each other put their dimensions where they stand, others in front.
        self.beside = at[-1] - at[0] == len(at) - 1
        self.shape = broadcast_shapes_of([indices[i]._shape for i in at])
        self.rank = len(self.shape)


def broadcast_shapes_of(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    found: tuple[int, ...] = ()
    for s in shapes:
        found = broadcast_shapes(found, s)
    return found


def _inner_indices(indices: list[Any], places: _Places, level: Level) -> list[Any]:
    found: list[Any] = []
    for t in indices:
        if t is not None and is_many(t, level):
            found.append(in_front(inside(t, level), level.size, places.rank))
        else:
            found.append(None if t is None else inside(t, level))
    return found


def _moved(t: Any, start: int, count: int, to: int) -> Any:
    """`count` dimensions from `start` on, put in front of what was dimension `to`."""
    order = [d for d in range(len(t._shape)) if not start <= d < start + count]
    order[to:to] = range(start, start + count)
    return t if order == list(range(len(order))) else _op("permute", t, tuple(order))


def index(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    given = args[1]
    specs = described(op, args)
    places = _Places(list(given))
    inner = _inner_indices(list(given), places, level)
    source = inside(args[0], level)
    if any([is_many(t, level) for t in given if t is not None]):
        if is_many(args[0], level):
            found = op.call((source, (_numbers(source, level.size, places.rank), *inner)))
            if places.beside:
                # (B, index..., before...) with the index where it stood.
                found = _moved(found, 1, places.rank, 1 + places.first)
        else:
            found = op.call((source, tuple(inner)))
            if places.beside:
                found = _moved(found, places.first, 1, 0)
    else:
        found = op.call((source, (None, *inner)))
        if not places.beside:
            found = _moved(found, places.rank, 1, 0)
    assert specs is not None
    return wrap(reshaped(found, (level.size, *specs[0].shape)), level)


def index_put(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    target, given, values, accumulate = args
    indices = list(given)
    described(op, args)
    places = _Places(indices)
    inner = _inner_indices(indices, places, level)
    source = spread(target, level)
    rest = [n for i, n in enumerate(target._shape) if i >= len(indices) or indices[i] is None]
    lead = places.first if places.beside else 0
    shape = (*rest[:lead], *places.shape, *rest[lead:])
    many = _op("expand", in_front(spread(values, level), level.size, len(shape)), (level.size, *shape), False)
    # Inside, the dimensions of the index come right behind that of the many.
    many = _moved(many, 1 + lead, places.rank, 1)
    return wrap(op.call((source, (_numbers(source, level.size, places.rank), *inner), many, accumulate)), level)


# -- by other operators, on batched tensors ------------------------------------------------------------------------
def _ones(t: Any) -> Any:
    """A vector where there is none."""
    return t if t._shape else _op("unsqueeze", t, 0)


def _by_dim(t: Any, dim: int, index: Any) -> tuple[Any, ...]:
    rank = len(t._shape)
    return (*((None,) * (dim + rank if dim < 0 else dim)), index)


def index_select(self: Any, dim: int, index: Any) -> Any:
    found = _op("index", _ones(self), _by_dim(_ones(self), dim, _ones(index)))
    return found if self._shape else _op("squeeze.dim", found, 0)


def index_add(self: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
    values = source if alpha == 1 else _op("mul", source, alpha)
    out = _op("index_put", _ones(self), _by_dim(_ones(self), dim, _ones(index)), _ones(values), True)
    return out if self._shape else _op("squeeze.dim", out, 0)


def index_copy(self: Any, dim: int, index: Any, source: Any) -> Any:
    values = source if source._shape or not self._shape else _op("expand", source, _spread_shape(self, dim, 1), False)
    out = _op("index_put", _ones(self), _by_dim(_ones(self), dim, _ones(index)), _ones(values), False)
    return out if self._shape else _op("squeeze.dim", out, 0)


def _spread_shape(t: Any, dim: int, n: int) -> tuple[int, ...]:
    shape = list(t._shape)
    shape[dim] = n
    return tuple(shape)


def index_fill(self: Any, dim: int, index: Any, value: Any) -> Any:
    if not isinstance(value, TensorBase):
        value = _op("new_full", self, (), value, None, None, None, None)
    elif value._dtype is not self._dtype:
        value = _op("to_copy", value, self._dtype, None, None, False)
    out = _op("index_put", _ones(self), _by_dim(_ones(self), dim, _ones(index)), value, False)
    return out if self._shape else _op("squeeze.dim", out, 0)


def take(self: Any, index: Any) -> Any:
    return _op("index", _op("reshape", self, (-1,)), (index,))


def _along_or(fn: Any) -> Any:
    """Where all share the index it is an operator along a dimension, else indexing."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        described(op, args)
        if is_many(args[2], level) or not args[0]._shape or any(not t._shape for t in tensors_of(args[2:])):
            return owned(fn(*args))
        given = (spread(args[0], level), args[1] % len(args[0]._shape) + 1, inside(args[2], level))
        rest = [spread(a, level) if isinstance(a, TensorBase) else a for a in args[3:]]
        return wrap(op.call((*given, *rest)), level)

    return served


SELECTS = {
    "index_select": _along_or(index_select),
    "index_add": _along_or(index_add),
    "index_copy": _along_or(index_copy),
}


def embedding(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    weight, indices, *rest = args
    described(op, args)
    if not is_many(weight, level):
        return wrap(op.call((inside(weight, level), inside(indices, level), *rest)), level)
    found = _op("index_select", weight, 0, _op("reshape", indices, (-1,)))
    return _op("reshape", found, (*indices._shape, *weight._shape[1:]))


def embedding_dense_backward(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """The tables of all below each other."""
    g, indices, count, padding, by_freq = args
    places = spread(indices, level)
    flat = _op("add", places, _op("mul", _numbers(places, level.size, len(indices._shape)), count), 1)
    found = op.call((spread(g, level), flat, count * level.size, -1, by_freq))
    found = reshaped(found, (level.size, count, *found._shape[1:]))
    if padding >= 0:
        found = _op("index_fill.int_Scalar", found, 1, _op("full", (1,), padding, int64, None, g._device, None), 0)
    return wrap(found, level)


def masked_scatter(self: Any, mask: Any, source: Any) -> Any:
    shape = broadcast_shapes(self._shape, mask._shape)
    seen = _op("expand", mask, shape, False)
    order = _op("reshape", _op("cumsum", _op("reshape", seen, (-1,)), 0, int64), shape)
    flat = _op("reshape", source, (-1,))
    last = int(numel_of(source._shape)) - 1
    place = _op("clamp", _op("sub", order, 1, 1), 0, max(last, 0))
    return _op("where", seen, take(flat, place), _op("expand", self, shape, False))


def masked_select(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    if is_many(args[1], level):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for "
            "each batch this would return a differently shaped Tensor. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    shape = broadcast_shapes(args[0]._shape, args[1]._shape) or (1,)
    mask = _op("expand", inside(args[1], level), shape, False)
    values = in_front(spread(args[0], level), level.size, len(shape))
    values = _op("expand", values, (level.size, *shape), False)
    places = _op("nonzero", mask)
    picked = tuple([_op("select", places, 1, d) for d in range(len(shape))])
    return wrap(_op("index", values, (None, *picked)), level)


def dynamic(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """What returns as much as the values say."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"{op.qualified()}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    )
