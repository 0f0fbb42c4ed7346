"""Rules by kind of operator: what is done with the dimension of the many, said once for all operators of the kind.

Invariant: a rule returns tensors of the level, with the shapes that the row's own rule gives for one of the many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from .._dispatch.op import Op, Spec
from .._dispatch.registry import get
from .._dtype import dtype
from .._ops.rules.base import wrap_dim
from .._sizes import numel_of
from .._tensor_base import TensorBase
from .kernel import Rule, Together, below, each, tensors_of, together
from .level import Level, in_front, inside, is_many, share_all, some_many, spread, wrap, wrap_all

# Arguments that name dimensions of the first tensor.
_DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "axis", "dimension"))
# Which those are, by the name of an operator that was called.
_PLACES: dict[str, list[int]] = {}


def reshaped(t: TensorBase, shape: tuple[int, ...]) -> Any:
    return t if t._shape == shape else get("reshape").call((t, shape))


def cast(t: Any, dt: Any) -> Any:
    return t if t._dtype is dt else get("to_copy").call((t, dt, None, None, False))


def described(op: Op, args: tuple[Any, ...]) -> list[Spec] | None:
    """What the row's rule says of one of the many; it refuses what the operator refuses."""
    if op.rule is None:
        return None
    found = op.infer(args)
    return [found] if isinstance(found, Spec) else list(found)


def fitted(found: Any, specs: list[Spec] | None, level: Level) -> Any:
    """Results with the dimension in front, in the shapes that were described."""
    if specs is None:
        return wrap_all(found, level)
    if isinstance(found, TensorBase):
        return wrap(reshaped(found, (level.size, *specs[0].shape)), level)
    return tuple([wrap(reshaped(t, (level.size, *s.shape)), level) for t, s in zip(found, specs)])


# -- elementwise --------------------------------------------------------------------------------------------------
def operands(op: Op, args: tuple[Any, ...], level: Level) -> tuple[Any, ...]:
    """Operands that broadcast: ones are put behind the dimension of the many, up to the rank of the result."""
    rank = 0
    seen: dtype | None = None
    mixed = small = False
    for a in args:
        if isinstance(a, TensorBase):
            if len(a._shape) > rank:
                rank = len(a._shape)
            mixed = mixed or (seen is not None and seen is not a._dtype)
            seen = a._dtype
            small = small or (not a._shape and is_many(a, level))
        elif isinstance(a, (tuple, list)):
            for t in a:
                if isinstance(t, TensorBase):
                    rank = max(rank, len(t._shape))
                    mixed = mixed or (seen is not None and seen is not t._dtype)
                    seen = t._dtype
                    small = small or (not t._shape and is_many(t, level))
    compute: dtype | None = None
    if mixed and small:
        # A tensor without dimensions counts less in promotion; inside it has one.
        spec = op.infer(args)
        compute = spec.compute if isinstance(spec, Spec) else None
    out: list[Any] = []
    for a in args:
        if isinstance(a, TensorBase):
            out.append(operand(a, level, rank, compute))
        elif isinstance(a, (tuple, list)):
            out.append(tuple([operand(t, level, rank, compute) if isinstance(t, TensorBase) else t for t in a]))
        else:
            out.append(a)
    return tuple(out)


def operand(t: TensorBase, level: Level, rank: int, compute: dtype | None) -> Any:
    found = inside(t, level)
    if not is_many(t, level):
        return found
    if len(t._shape) < rank:
        found = in_front(found, level.size, rank)
    if compute is not None and not t._shape and not t._dtype.is_bool:
        return cast(found, compute)
    return found


def pointwise(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    return wrap_all(op.call(operands(op, args, level)), level)


@final
class Elementwise(Together):
    """The same, for operators that are nothing else."""

    def __init__(self) -> None:
        super().__init__(None)

    def serve(self, op: Op, args: tuple[Any, ...], level: Level) -> Any:
        if not some_many(args, level):
            return share_all(below(op, each(args, lambda t: inside(t, level))), level)
        return wrap_all(below(op, operands(op, args, level)), level)


def filled(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """`fill` and `masked_fill`: the value has no dimensions, and inside one for each of the many."""
    if not is_many(args[-1], level):
        return pointwise(op, args, level)
    given = operands(op, args, level)
    value = cast(given[-1], args[0]._dtype)
    if op.title() == "fill":
        return wrap(get("copy").call((spread(args[0], level), value, False)), level)
    return wrap(get("where").call((given[1], value, given[0])), level)


def copied(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """`clone` and `to_copy`: memory formats speak of one of the many."""
    place = op.schema.index("memory_format")
    form = args[place]
    if form is None or len(args[0]._shape) < 4:
        return pointwise(op, args, level)
    spec = op.infer(args)
    made = empty_for(spec, inside(args[0], level), level)
    get("copy_").call((made, inside(args[0], level), False))
    return wrap(made, level)


def empty_for(spec: Spec, like: TensorBase, level: Level) -> Any:
    """New memory for all, each laid out as described."""
    size = 1 + sum([(n - 1) * s for n, s in zip(spec.shape, spec.stride)]) if numel_of(spec.shape) else 0
    return get("new_empty_strided").call(
        (like, (level.size, *spec.shape), (size, *spec.stride), spec.dtype, None, spec.device, None)
    )


def made(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """`zeros_like`, `new_full` and so on: one for each, so that each may be written to."""
    spec = op.infer(args)
    out = empty_for(spec, inside(args[0], level), level)
    title = op.title()
    if "full" in title:
        get("fill_").call((out, args[op.schema.index("fill_value")]))
    elif "empty" not in title:
        get("fill_").call((out, 1 if "ones" in title else 0))
    return wrap(out, level)


# -- along dimensions ---------------------------------------------------------------------------------------------
def _shifted(value: Any, rank: int) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple([wrap_dim(d, rank) + 1 for d in value])
    return wrap_dim(value, rank) + 1


def dims_behind(op: Op, args: list[Any], rank: int) -> None:
    """Dimensions are counted behind that of the many."""
    places = _PLACES.get(op.name)
    if places is None:
        places = [i for i, a in enumerate(op.schema.args) if a.name in _DIMS]
        _PLACES[op.name] = places
    for i in places:
        if args[i] is not None:
            args[i] = _shifted(args[i], rank)


def along(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Operators of one or several tensors along dimensions: scans, sorts, softmax, gather and scatter, fft."""
    specs = described(op, args)
    rank = 1
    tensors = tensors_of(args)
    for t in tensors:
        rank = max(rank, len(t._shape))
    if len(tensors) == 1 and tensors[0] is args[0]:
        given = list(args)
        given[0] = in_front(spread(args[0], level), level.size, rank if not args[0]._shape else 0)
    else:
        given = list(each(args, lambda t: in_front(spread(t, level), level.size, rank if not t._shape else 0)))
    dims_behind(op, given, rank)
    return fitted(op.call(tuple(given)), specs, level)


def reduction(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Over some dimensions, or over all: then each of the many is seen as a vector."""
    place = op.schema.index("dim")
    if args[place] is not None and args[place] != ():
        return along(op, args, level)
    specs = described(op, args)
    whole = inside(args[0], level)
    given = list(args)
    rank = len(args[0]._shape)
    if rank > 0 and op.schema.args[place].is_list:
        given[0] = whole
        given[place] = behind(rank)
    else:
        given[0] = reshaped(whole, (level.size, int(numel_of(args[0]._shape))))
        given[place] = (1,) if op.schema.args[place].is_list else 1
    return fitted(op.call(tuple(given)), specs, level)


@final
class Reduction(Together):
    """The same for one operator. The usual call, of a tensor with elements over one dimension or all, has no more to be
    refused for one of the many than for all of them."""

    def __init__(self) -> None:
        super().__init__(reduction)
        self.place: int = -1
        self.is_list: bool = False

    def serve(self, op: Op, args: tuple[Any, ...], level: Level) -> Any:
        if self.place < 0:
            self.place = op.schema.index("dim")
            self.is_list = op.schema.args[self.place].is_list
        x, place = args[0], self.place
        if not isinstance(x, TensorBase) or not is_many(x, level) or not x._shape or 0 in x._shape:
            return Together.serve(self, op, args, level)
        rank = len(x._shape)
        dim = args[place]
        if self.is_list:
            if dim is None or (isinstance(dim, tuple) and not dim):
                dims = behind(rank)
            elif isinstance(dim, tuple) and len(dim) == 1:
                dims = (wrap_dim(dim[0], rank) + 1,)
            else:
                return Together.serve(self, op, args, level)
            given = (inside(x, level),) + args[1:place] + (dims,) + args[place + 1 :]
        elif isinstance(dim, int):
            given = (inside(x, level),) + args[1:place] + (wrap_dim(dim, rank) + 1,) + args[place + 1 :]
        else:
            return Together.serve(self, op, args, level)
        return wrap_all(below(op, given), level)


# The dimensions behind that of the many, by how many there are.
_BEHIND: list[tuple[int, ...]] = [tuple(range(1, rank + 1)) for rank in range(8)]


def behind(rank: int) -> tuple[int, ...]:
    return _BEHIND[rank] if rank < 8 else tuple(range(1, rank + 1))


def served(rule: Rule) -> Rule:
    """A rule as it is called; the kinds that most calls are of have a class of their own."""
    if rule is pointwise:
        return Elementwise()
    return Reduction() if rule is reduction else together(rule)


def whole(name: str) -> Rule:
    """A reduction of everything, by another operator that has a dimension; its first result is the one wanted."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        specs = described(op, args)
        flat = reshaped(inside(args[0], level), (level.size, int(numel_of(args[0]._shape))))
        found = get(name).call((flat, 1, False))
        wanted = len(op.schema.returns)
        return fitted(found if isinstance(found, TensorBase) or wanted > 1 else found[0], specs, level)

    return served


def sized(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Derivatives of views: the gradient in a tensor of zeros whose size is an argument."""
    place = op.schema.index("input_sizes")
    if not args[place]:
        # Only `unfold` takes a tensor without dimensions: it has one window, or none.
        return get("sum").call((args[0], None, False, None))
    given = list(each(args, lambda t: spread(t, level)))
    given[place] = (level.size, *args[place])
    dims_behind(op, given, len(args[place]))
    return wrap_all(op.call(tuple(given)), level)


def joined(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """`cat` and `stack`."""
    items = args[0]
    ranks = max([len(t._shape) for t in items])
    if op.title() == "cat":
        described(op, args)
        # PyTorch lets a vector without elements stand for nothing, whatever the others are.
        items = [t for t in items if ranks == 1 or t._shape != (0,)]
        rank = ranks
    else:
        rank = ranks + 1
    given = tuple([spread(t, level) for t in items])
    return wrap(op.call((given, wrap_dim(args[1], rank) + 1)), level)


def rolled(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    if args[2]:
        return along(op, args, level)
    flat = reshaped(inside(args[0], level), (level.size, int(numel_of(args[0]._shape))))
    return wrap(reshaped(op.call((flat, args[1], (1,))), (level.size, *args[0]._shape)), level)


def repeated(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    found = in_front(inside(args[0], level), level.size, len(args[1]))
    return wrap(op.call((found, (1, *args[1]))), level)


def strided_map(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """The derivative of `as_strided`: the memories of all lie behind each other."""
    x, size, stride, offset, to_size, to_stride, to_offset, mean = args
    ends = [at + sum([(n - 1) * s for n, s in zip(ns, ss)]) for ns, ss, at in
            ((size, stride, offset), (to_size, to_stride, to_offset))]  # fmt: skip
    step = max(ends) + 1
    given = ((level.size, *size), (step, *stride), offset, (level.size, *to_size), (step, *to_stride), to_offset, mean)
    return wrap(op.call((spread(x, level), *given)), level)


def in_shape(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """The same elements in another shape."""
    return fitted(inside(args[0], level), described(op, args), level)


# -- leading dimensions -------------------------------------------------------------------------------------------
def trailing(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Operators that look at the last dimensions, whatever stands before them."""
    specs = described(op, args)
    return fitted(op.call(each(args, lambda t: spread(t, level))), specs, level)


def leading(*cores: int) -> Rule:
    """Operators on matrices and vectors whose leading dimensions broadcast; `cores` has the rank of one of each
    tensor."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        specs = described(op, args)
        tensors = tensors_of(args)
        lead = max([len(t._shape) - core for t, core in zip(tensors, cores)])
        ranks = {id(t): lead + core for t, core in zip(tensors, cores)}
        given = each(args, lambda t: in_front(spread(t, level), level.size, ranks[id(t)]))
        return fitted(op.call(given), specs, level)

    return served


def images(spatial: int) -> Rule:
    """Operators on images (N, C, ...) or (C, ...): the many are more of them."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        specs = described(op, args)

        def one(t: TensorBase) -> Any:
            found = spread(t, level)
            if len(t._shape) < spatial + 2:
                return found
            return reshaped(found, (found._shape[0] * found._shape[1], *found._shape[2:]))

        given = list(each(args, one))
        for i, a in enumerate(op.schema.args):
            if a.name == "input_size":
                given[i] = (level.size * args[i][0], *args[i][1:])
        return fitted(op.call(tuple(given)), specs, level)

    return served


Decomposition = Callable[..., Any]
