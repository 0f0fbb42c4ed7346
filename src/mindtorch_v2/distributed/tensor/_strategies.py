"""How operators run on parts: for each kind of row, the ways to lay out its tensors along one dimension of a mesh.

Invariant: a way is right along every dimension of a mesh by itself. Each list begins with the way in which every rank
has the whole of everything, which any operator has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..._batching.table import kind_name
from ..._dispatch.op import Op
from .placement_types import Partial, Placement, Replicate, Shard, _NormPartial

WHOLE = Replicate()


class Way(NamedTuple):
    """Placements of the results (one stands for all of them) and of the tensors among the arguments, in order."""

    outs: tuple[Placement, ...]
    ins: tuple[Placement, ...]


class Call(NamedTuple):
    """A call to be laid out: the operator whose kind counts, all its arguments, tensors as they are whole."""

    op: Op
    args: tuple[Any, ...]
    # Of the tensors among the arguments, lists taken apart.
    shapes: tuple[tuple[int, ...], ...]
    # Of the results.
    outs: tuple[tuple[int, ...], ...]
    # How many ranks the mesh has in all: what they divide, all its dimensions divide.
    ranks: int

    def given(self, name: str, default: Any = None) -> Any:
        """An argument by name."""
        for a, value in zip(self.op.schema.args, self.args):
            if a.name == name:
                return value
        return default


Ways = Callable[[Call], list[Way]]


def same(call: Call, placement: Placement) -> Way:
    return Way((placement,), tuple(placement for _ in call.shapes))


def whole(call: Call) -> Way:
    return same(call, WHOLE)


def only_whole(call: Call) -> list[Way]:
    return [whole(call)]


# -- elementwise --------------------------------------------------------------------------------------------------
# Operators f with f(a + b) = f(a) + f(b) in their first tensor, the others (numbers, tensors) being factors.
_SCALED = frozenset("mul div neg positive real imag clone to_copy detach alias zeros_like".split())
# Operators that are linear in all tensors at once.
_LINEAR = frozenset("add sub rsub copy lerp".split())


def _along(shape: tuple[int, ...], out: tuple[int, ...], dim: int) -> Placement:
    """How an operand lies when the result that it is broadcast to is split along `dim`."""
    own = dim - (len(out) - len(shape))
    return Shard(own) if own >= 0 and shape[own] == out[dim] else WHOLE


def elementwise(call: Call) -> list[Way]:
    ways = [whole(call)]
    for out in call.outs[:1]:
        for dim, size in enumerate(out):
            if size > 1:
                ways.append(Way((Shard(dim),), tuple(_along(shape, out, dim) for shape in call.shapes)))
    title = call.op.title()
    numbers = [a for a, value in zip(call.op.schema.args, call.args) if a.is_tensor and isinstance(value, (int, float))]
    if title in _SCALED:
        rest = tuple(WHOLE for _ in call.shapes[1:])
        if not (title == "div" and call.given("rounding_mode") is not None):
            ways.extend(Way((Partial(op),), (Partial(op), *rest)) for op in ("sum", "avg"))
            if title == "mul" and len(call.shapes) == 2:
                ways.append(Way((Partial(),), (WHOLE, Partial())))
        if title in ("clone", "to_copy", "detach", "alias"):
            ways.extend(same(call, Partial(op)) for op in ("max", "min", "product"))
    elif title in _LINEAR and not numbers and len(call.shapes) == 2:
        ways.extend(same(call, Partial(op)) for op in ("sum", "avg"))
    return ways


def filled(call: Call) -> list[Way]:
    """New tensors like another: split as it is, where the shape is the same."""
    like = call.shapes[0]
    dims = [dim for dim, size in enumerate(like) if size > 1] if call.outs[0] == like else []
    ways = [Way((WHOLE,), (WHOLE,)), *[Way((Shard(dim),), (Shard(dim),)) for dim in dims]]
    # The tensor itself is not looked at: however it lies, the new one can be whole.
    ways.extend(Way((WHOLE,), (Shard(dim),)) for dim, size in enumerate(like) if size > 1 and dim not in dims)
    ways.extend(Way((WHOLE,), (Partial(op),)) for op in ("sum", "avg"))
    return ways


# -- along dimensions ---------------------------------------------------------------------------------------------
_PARTIAL = {"sum": "sum", "nansum": "sum", "mean": "avg", "amax": "max", "amin": "min", "max": "max", "min": "min",
            "prod": "product"}  # fmt: skip


def _dims(call: Call, rank: int) -> list[int]:
    dim = call.given("dim", call.given("dims"))
    if dim is None or dim == ():
        return list(range(rank))
    return [each % rank if rank else 0 for each in (dim if isinstance(dim, (tuple, list)) else (dim,))]


def _norm(call: Call) -> Partial:
    order = float(call.given("ord", 2))
    if order in (float("inf"), float("-inf")):
        return Partial("max" if order > 0 else "min")
    return _NormPartial("sum", order)


def reductions(call: Call) -> list[Way]:
    """Split along what is kept, or along what is reduced: then the result is to be reduced too."""
    shape = call.shapes[0]
    dims = _dims(call, len(shape))
    keep = bool(call.given("keepdim", False))
    ways = [whole(call)]
    title = call.op.title()
    for dim, size in enumerate(shape):
        if size <= 1:
            continue
        if dim not in dims:
            kept = dim if keep else dim - sum(1 for each in dims if each < dim)
            ways.append(Way((Shard(kept),), (Shard(dim),)))
        elif title == "linalg_vector_norm" and call.given("ord", 2) != 0:
            ways.append(Way((_norm(call),), (Shard(dim),)))
        elif title in _PARTIAL and len(call.outs) == 1 and (title != "mean" or size % call.ranks == 0):
            ways.append(Way((Partial(_PARTIAL[title]),), (Shard(dim),)))
    if title in ("sum", "mean"):
        ways.extend(same(call, Partial(op)) for op in ("sum", "avg"))
    return ways


def along(call: Call) -> list[Way]:
    """Along one dimension: split along any other in which all tensors agree."""
    shape = call.shapes[0]
    if any(len(each) != len(shape) for each in call.shapes):
        return only_whole(call)
    taken = _dims(call, len(shape))
    ways = [whole(call)]
    for dim, size in enumerate(shape):
        if size <= 1 or dim in taken or any(each[dim] != size for each in call.shapes):
            continue
        kept = dim if len(call.outs[0]) == len(shape) else dim - sum(1 for each in taken if each < dim)
        ways.append(Way((Shard(kept),), tuple(Shard(dim) for _ in call.shapes)))
    return ways


def joined(call: Call) -> list[Way]:
    """`cat` and `stack`: split along the other dimensions."""
    rank, out = len(call.shapes[0]), call.outs[0]
    if any(len(each) != rank for each in call.shapes):
        return only_whole(call)
    new = len(out) != rank
    at = int(call.given("dim", 0)) % max(len(out), 1)
    ways = [whole(call)]
    for dim in range(rank):
        if call.shapes[0][dim] > 1 and (new or dim != at):
            then = dim + 1 if new and dim >= at else dim
            ways.append(Way((Shard(then),), tuple(Shard(dim) for _ in call.shapes)))
    ways.extend(same(call, Partial(op)) for op in ("sum", "avg"))
    if new:
        # Norms of many tensors are stacked before their norm is taken.
        ways.extend(same(call, _NormPartial("sum", order)) for order in (2.0, 1.0))
        ways.extend(same(call, Partial(op)) for op in ("max", "min"))
    return ways


def matrices(call: Call) -> list[Way]:
    """Operators on the last two dimensions: split along the others."""
    rank = len(call.shapes[0])
    if len(call.shapes) != 1 or any(len(out) != rank for out in call.outs):
        return only_whole(call)
    return [whole(call), *[same(call, Shard(dim)) for dim in range(rank - 2)]]


def images(call: Call) -> list[Way]:
    """Operators on images (N, C, H, W): split along N and C."""
    return _batched(call, 4)


def volumes(call: Call) -> list[Way]:
    """Operators on volumes (N, C, D, H, W)."""
    return _batched(call, 5)


def _batched(call: Call, wanted: int) -> list[Way]:
    rank = len(call.outs[0])
    agree = rank == wanted and all(len(each) == rank and each[:2] == call.outs[0][:2] for each in call.shapes)
    return [whole(call), *[same(call, Shard(dim)) for dim in range(2) if agree and call.outs[0][dim] > 1]]


# -- products -----------------------------------------------------------------------------------------------------
def _product(lead: int) -> list[tuple[Placement, Placement, Placement]]:
    """(result, left, right) of a product of matrices behind `lead` dimensions that all share."""
    row, column = lead, lead + 1
    return [
        (WHOLE, WHOLE, WHOLE),
        *[(Shard(dim), Shard(dim), Shard(dim)) for dim in range(lead)],
        (Shard(row), Shard(row), WHOLE),
        (Shard(column), WHOLE, Shard(column)),
        (Partial(), Shard(column), Shard(row)),
        (Partial(), Partial(), WHOLE),
        (Partial(), WHOLE, Partial()),
    ]


def product(call: Call) -> list[Way]:
    return [Way((out,), (left, right)) for out, left, right in _product(len(call.shapes[0]) - 2)]


def added_product(call: Call) -> list[Way]:
    """`addmm`, `baddbmm`: what is added lies as the result does."""
    base, out = call.shapes[0], call.outs[0]
    ways = []
    for result, left, right in _product(len(out) - 2):
        added = _along(base, out, result.dim) if isinstance(result, Shard) else result
        ways.append(Way((result,), (added, left, right)))
    return ways


def vector_product(call: Call) -> list[Way]:
    """A matrix by a vector."""
    ways = [(WHOLE, WHOLE, WHOLE), (Shard(0), Shard(0), WHOLE), (Partial(), Shard(1), Shard(0)),
            (Partial(), Partial(), WHOLE), (Partial(), WHOLE, Partial())]  # fmt: skip
    return [Way((out,), (left, right)) for out, left, right in ways]


def dot(call: Call) -> list[Way]:
    ways = [(WHOLE, WHOLE, WHOLE), (Partial(), Shard(0), Shard(0)), (Partial(), Partial(), WHOLE)]
    return [Way((out,), (left, right)) for out, left, right in ways]


def convolution(call: Call) -> list[Way]:
    """Split along the images."""
    rest = tuple(WHOLE for _ in call.shapes[1:])
    return [whole(call), Way((Shard(0),), (Shard(0), *rest))]


def convolution_backward(call: Call) -> list[Way]:
    mine, filters = Shard(0), Partial()
    return [whole(call), Way((mine, filters, filters), (mine, mine, WHOLE))]


# -- parts of networks --------------------------------------------------------------------------------------------
def embedding(call: Call) -> list[Way]:
    """Split along the words that are asked for, along the features, or along the table's rows."""
    table, words = call.shapes
    ways = [whole(call), *[Way((Shard(dim),), (WHOLE, Shard(dim))) for dim, size in enumerate(words) if size > 1]]
    if len(table) == 2:
        ways.append(Way((Shard(len(words)),), (Shard(1), WHOLE)))
        ways.append(Way((Partial(),), (Shard(0), WHOLE)))
    return ways


def embedding_backward(call: Call) -> list[Way]:
    grad, words = call.shapes
    ways = [whole(call), *[Way((Partial(),), (Shard(dim), Shard(dim))) for dim, size in enumerate(words) if size > 1]]
    return [*ways, Way((Shard(1),), (Shard(len(grad) - 1), WHOLE)), Way((Partial(),), (Partial(), WHOLE))]


def layer_norm(call: Call) -> list[Way]:
    lead = len(call.shapes[0]) - len(call.given("normalized_shape"))
    rest = tuple(WHOLE for _ in call.shapes[1:])
    return [whole(call), *[Way((Shard(dim),), (Shard(dim), *rest)) for dim in range(lead)]]


def layer_norm_backward(call: Call) -> list[Way]:
    lead = len(call.shapes[0]) - len(call.given("normalized_shape"))
    ways = [whole(call)]
    for dim in range(lead):
        rest = tuple(WHOLE for _ in call.shapes[4:])
        ways.append(Way((Shard(dim), Partial(), Partial()), (*(Shard(dim),) * 4, *rest)))
    return ways


def nll_forward(call: Call) -> list[Way]:
    """Split along the batch; sums are to be reduced (means are served by sums, see `_served`)."""
    rest = tuple(WHOLE for _ in call.shapes[2:])
    batch = Shard(0)
    if len(call.shapes[0]) < 2:
        return only_whole(call)
    reduction = int(call.given("reduction", 1))
    outs: tuple[Placement, ...] = (batch, WHOLE) if reduction == 0 else (Partial(), Partial())
    if reduction == 1:
        outs = (WHOLE, WHOLE)
    return [whole(call), Way(outs, (batch, batch, *rest))]


def nll_backward(call: Call) -> list[Way]:
    grad, rows = call.shapes[0], call.shapes[1]
    rest = tuple(WHOLE for _ in call.shapes[3:])
    if len(rows) < 2:
        return only_whole(call)
    first: Placement = Shard(0) if len(grad) > 0 else WHOLE
    return [whole(call), Way((Shard(0),), (first, Shard(0), Shard(0), *rest))]


def pair_loss(call: Call) -> list[Way]:
    """A loss of two tensors of one shape, and its derivative."""
    reduction = int(call.given("reduction", 1))
    shape = call.shapes[-1]
    ways = [whole(call)]
    if any(each not in (shape, ()) for each in call.shapes):
        return ways
    for dim, size in enumerate(shape):
        if size <= 1 or (reduction == 1 and size % call.ranks):
            continue
        ins = tuple(Shard(dim) if each == shape else WHOLE for each in call.shapes)
        out: Placement = Shard(dim) if call.outs[0] == shape else Partial("avg" if reduction == 1 else "sum")
        if call.outs[0] == shape and reduction == 1 and "backward" in call.op.name:
            continue
        ways.append(Way((out,), ins))
    return ways


# -- which ways an operator has -----------------------------------------------------------------------------------
_BY_KIND: dict[str, Ways] = {
    "elementwise": elementwise,
    "random": elementwise,
    "copies": elementwise,
    "new": filled,
    "reductions": reductions,
    "maximum": reductions,
    "minimum": reductions,
    "along": along,
    "joined": joined,
    "matrices": matrices,
    "images": images,
    "volumes": volumes,
    "mm": product,
    "bmm": product,
    "mv": vector_product,
    "dot": dot,
    "convolution": convolution,
    "its backward": convolution_backward,
    "embedding": embedding,
    "embedding's backward": embedding_backward,
    "layer norm": layer_norm,
    "layer norm's backward": layer_norm_backward,
}
_BY_NAME: dict[str, Ways] = {
    "addmm": added_product,
    "baddbmm": added_product,
    "nll_loss_forward": nll_forward,
    "nll_loss_backward": nll_backward,
    "mse_loss": pair_loss,
    "mse_loss_backward": pair_loss,
}


# What programs say of operators themselves.
_TOLD: dict[str, Ways] = {}


def register(op: Op, function: Callable[..., Any]) -> None:
    """Take a program's word: the function gives pairs of placements, of the results and of all arguments."""

    def ways(call: Call) -> list[Way]:
        def known(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                return type(value)(known(each) for each in value)
            return getattr(value, "_spec", value)

        found = [whole(call)]
        for outs, ins in function(*(known(value) for value in call.args)):
            flat = [each for given in ins for each in (given if isinstance(given, (tuple, list)) else (given,))]
            placements = tuple(each for each in flat if each is not None)
            if len(placements) != len(call.shapes):
                raise RuntimeError(
                    f"register_sharding: {op.name} has {len(call.shapes)} tensors among its arguments, and {ins} says "
                    f"how {len(placements)} lie"
                )
            found.append(Way(tuple(outs), placements))
        return found

    _TOLD[op.name] = ways


def ways_of(op: Op) -> Ways:
    """The ways of an operator: those that a program has told, or by its kind; that of the whole where it has none."""
    return _TOLD.get(op.name) or _BY_NAME.get(op.name) or _BY_KIND.get(kind_name(op), only_whole)
