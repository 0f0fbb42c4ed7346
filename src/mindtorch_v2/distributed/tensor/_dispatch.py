"""An operator on tensors of a mesh: how its tensors are laid out, what each rank computes, and how the results lie.

Invariant: the choice is made from shapes and placements alone, so all ranks make the same one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._batching.table import kind_name
from ..._dispatch.op import Op
from .. import _functional_collectives as funcol
from ..device_mesh import DeviceMesh
from ._dtensor_spec import DTensorSpec, TensorMeta, local_box
from ._redistribute import redistributed
from ._strategies import WHOLE, Call, Way, only_whole, ways_of
from ._views import SHAPED, moved, shaped
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

# Arguments that are the shape of the result: a rank gives the shape of its part.
_SIZES = frozenset(("size", "input_sizes"))
_RESHAPES = frozenset("expand new_empty new_zeros new_ones new_full select_backward slice_backward".split()) | SHAPED


_SQUEEZES = frozenset(("squeeze", "squeeze.dim", "squeeze.dims"))


def _ones(shape: Any, given: tuple[Any, ...]) -> tuple[int, ...]:
    """The dimensions of size one, among those that are named."""
    dims = range(len(shape)) if not given else given[0] if isinstance(given[0], (tuple, list)) else (given[0],)
    return tuple(dim % len(shape) for dim in dims if shape and shape[dim] == 1)


class Plan(NamedTuple):
    """How a call is served."""

    # For each tensor among the arguments, lists taken apart.
    ins: tuple[tuple[Placement, ...], ...]
    # For each result; None where only the whole is known, and the shape is that of what was computed.
    outs: tuple[DTensorSpec, ...] | None


class _State:
    """Plans that were made, by call; whether plain tensors count as the same everywhere."""

    plans: dict[Any, Plan] = {}
    implicit: bool = False


def complete(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments in the schema's order, lists as the dispatcher has them."""
    given = [tuple(value) if isinstance(value, list) else value for value in args]
    for a in op.schema.args[len(args) :]:
        value = kwargs[a.name] if a.name in kwargs else a.default
        given.append(tuple(value) if isinstance(value, list) else value)
    return tuple(given)


def _is_tensor(value: Any) -> bool:
    from ... import Tensor

    return isinstance(value, Tensor)


def _each(args: tuple[Any, ...]) -> list[Any]:
    """The tensors among arguments, lists taken apart."""
    found: list[Any] = []
    for value in args:
        if _is_tensor(value):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found.extend(each for each in value if _is_tensor(each))
    return found


def _mapped(args: tuple[Any, ...], values: list[Any]) -> tuple[Any, ...]:
    """The arguments with other tensors in the place of theirs."""
    rest = iter(values)

    def one(value: Any) -> Any:
        if _is_tensor(value):
            return next(rest)
        if isinstance(value, (tuple, list)) and any(_is_tensor(each) for each in value):
            return tuple([next(rest) if _is_tensor(each) else each for each in value])
        return value

    return tuple(one(value) for value in args)


def _distributed(title: str, tensors: list[Any], cls: Any, plain: bool = False) -> tuple[DeviceMesh, list[Any]]:
    """The mesh of a call, and its tensors with plain ones wrapped where that is allowed."""
    mesh = next(each._spec.mesh for each in tensors if isinstance(each, cls))
    found = []
    for each in tensors:
        if isinstance(each, cls):
            if each._spec.mesh != mesh:
                raise NotImplementedError(f"{title}: DTensor does not support cross-mesh operation yet!")
            found.append(each)
        elif plain or each.dim() == 0 or _State.implicit:
            meta = TensorMeta(each.shape, each.stride(), each.dtype)
            found.append(cls(each, DTensorSpec(mesh, (WHOLE,) * mesh.ndim, meta), requires_grad=False))
        else:
            raise RuntimeError(
                f"{title} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
                "calling distributed operators!"
            )
    return mesh, found


def _title(op: Op) -> str:
    return f"aten.{op.name}" if "." in op.name else f"aten.{op.name}.default"


# -- the choice ---------------------------------------------------------------------------------------------------
def _cost(now: Placement, then: Placement, bytes_: int, ranks: int) -> float:
    """About what it takes to bring a tensor from one placement to another along a dimension of a mesh."""
    if now == then:
        return 0.0
    if isinstance(then, Partial):
        return 0.5 if isinstance(now, Replicate) and then.reduce_op in ("sum", "avg") else float("inf")
    if isinstance(now, Replicate):
        return 0.25
    part = bytes_ / ranks
    if isinstance(now, Shard):
        return 1.0 + (part if isinstance(then, Shard) else part * (ranks - 1))
    # What is reduced is whole then, as with PyTorch, unless another operand is split.
    return (2.0 if isinstance(then, Shard) else 1.0) + 2 * part * (ranks - 1)


def _chosen(ways: list[Way], specs: list[DTensorSpec], at: int, written: int | None) -> Way:
    """The cheapest way along a dimension of the mesh; what is written to stays where it is."""
    ranks = specs[0].mesh.size(at)
    best, least = None, float("inf")
    for way in ways:
        if written is not None and way.ins[written] != specs[written].placements[at]:
            continue
        cost = 0.0
        for spec, then in zip(specs, way.ins):
            cost += _cost(spec.placements[at], then, _bytes(spec), ranks)
        if cost < least:
            best, least = way, cost
    if best is None:
        shown = ", ".join(str(spec) for spec in specs)
        raise RuntimeError(
            "in-place operations that require placement changes are not supported: the tensor that is written to has "
            f"no way to stay as it is, of {shown}"
        )
    return best


def _bytes(spec: DTensorSpec) -> int:
    count = int(spec.tensor_meta.dtype.itemsize)
    for size in spec.shape:
        count *= size
    return count


def _key(op: Op, args: tuple[Any, ...]) -> Any:
    def one(value: Any) -> Any:
        if _is_tensor(value):
            spec = value._spec
            return spec.mesh, spec.placements, tuple(spec.shape), spec.stride, spec.tensor_meta.dtype
        if isinstance(value, (tuple, list)):
            return tuple(one(each) for each in value)
        return type(value), value

    try:
        key = (op.name, tuple(one(value) for value in args))
        hash(key)
        return key
    except TypeError:
        return None


def _on_meta(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """The results of the whole call, without data."""
    from ... import empty_strided

    empties = [empty_strided(each.shape, each._spec.stride, dtype=each.dtype, device="meta") for each in _each(args)]
    given = list(_mapped(args, empties))
    for at, a in enumerate(op.schema.args):
        if a.kind == "Device" and given[at] is not None:
            given[at] = empties[0].device
    found = op.call(tuple(given))
    return [each for each in (found if isinstance(found, (tuple, list)) else [found]) if _is_tensor(each)]


# Kinds for which it does not matter in what order the parts of a dimension lie.
_ORDERLESS = frozenset(("elementwise", "copies", "new", "random", "reductions"))


def _with_strided(ways: list[Way], specs: list[DTensorSpec]) -> list[Way]:
    """The ways, and the same for the strided splits that there are."""
    factors = {each.split_factor for spec in specs for each in spec.placements if isinstance(each, _StridedShard)}

    def strided(placement: Placement, factor: int) -> Placement:
        return _StridedShard(placement.dim, factor) if isinstance(placement, Shard) else placement

    more = [
        Way(tuple(strided(each, factor) for each in way.outs), tuple(strided(each, factor) for each in way.ins))
        for factor in factors
        for way in ways
        if any(isinstance(each, Shard) for each in way.ins)
    ]
    return [*ways, *more]


def plan_of(op: Op, args: tuple[Any, ...], mesh: DeviceMesh) -> Plan:
    """How a call is served, remembered."""
    key = _key(op, args)
    found = _State.plans.get(key) if key is not None else None
    if found is None:
        found = _planned(op, args, mesh)
        if key is not None:
            if len(_State.plans) > 4096:
                _State.plans.clear()
            _State.plans[key] = found
    return found


def _planned(op: Op, args: tuple[Any, ...], mesh: DeviceMesh) -> Plan:
    named = op.functional or op
    specs = [each._spec for each in _each(args)]
    written = None
    if op.mutates:
        written = 0
    view = op.is_view or named.name in SHAPED
    ways_fn = ways_of(named)
    if not view and ways_fn is only_whole:
        whole = (WHOLE,) * mesh.ndim
        if written is not None and specs[0].placements != whole:
            raise RuntimeError(
                f"{_title(op)}: no way is known to write in place to a tensor with placements {specs[0].placements}; "
                "redistribute it to Replicate() first"
            )
        return Plan(tuple(whole for _ in specs), None)
    results = _on_meta(op, args)
    shapes = tuple(tuple(spec.shape) for spec in specs)
    outs = tuple(tuple(each.shape) for each in results)
    call = Call(named, args, shapes, outs, mesh.size())
    if not view:
        ways = ways_fn(call)
    elif named.name in SHAPED:
        ways = shaped(call)
    else:
        ways = moved(op, args, call)
    if kind_name(named) in _ORDERLESS or (view and named.name not in SHAPED):
        ways = _with_strided(ways, specs)
    picked = [_chosen(ways, specs, at, written) for at in range(mesh.ndim)]
    ins = tuple(tuple(way.ins[i] for way in picked) for i in range(len(specs)))
    made = []
    for i, each in enumerate(results):
        placements = tuple(way.outs[i if len(way.outs) > 1 else 0] for way in picked)
        made.append(DTensorSpec(mesh, placements, TensorMeta(each.shape, tuple(each.stride()), each.dtype)))
    return Plan(ins, tuple(made))


# -- the call -----------------------------------------------------------------------------------------------------
def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], cls: Any) -> Any:
    """Serve an operator of which some tensors lie on a mesh."""
    op: Op = func._op
    given = complete(op, args, kwargs)
    served = SERVED.get(op.name)
    if served is None and op.name.startswith("_foreach_"):
        served = _foreach
    mesh, tensors = _distributed(str(func), _each(given), cls, op.name in BESIDE)
    given = _mapped(given, tensors)
    if served is not None:
        return served(op, given, mesh, cls)
    if op.is_out:
        return _into(op, given)
    return run(op, given, mesh, cls)


def run(op: Op, given: tuple[Any, ...], mesh: DeviceMesh, cls: Any) -> Any:
    """Lay out the tensors, compute on the parts, wrap the results."""
    plan = plan_of(op, given, mesh)
    tensors = _each(given)
    locals_ = [redistributed(t._local_tensor, t._spec, then) for t, then in zip(tensors, plan.ins)]
    result = compute(op, given, locals_, plan, mesh)
    if op.mutates:
        return given[0]
    return wrapped(result, plan, mesh, cls)


def compute(op: Op, given: tuple[Any, ...], locals_: list[Any], plan: Plan, mesh: DeviceMesh) -> Any:
    """What a rank computes of its parts."""
    named = op.functional or op
    local_args = list(_mapped(given, locals_))
    if named.name in _RESHAPES and plan.outs is not None:
        shape = local_box(plan.outs[0].shape, mesh, plan.outs[0].placements)[0]
        if named.name == "_reshape_alias":
            return local_args[0].reshape(shape)
        for at, a in enumerate(op.schema.args):
            if a.name in _SIZES:
                local_args[at] = tuple(shape)
        if named.name == "view":
            # A part may be no view where the whole is one: its rows can be apart.
            return locals_[0].reshape(shape)
    if named.name in _SQUEEZES:
        # A part may have one row where the whole has more.
        return locals_[0].squeeze(_ones(given[0].shape, given[1:]))
    special = _PARTS.get(named.name)
    if special is not None and plan.outs is not None:
        return special(op, tuple(local_args), plan, given, mesh)
    return op.call(tuple(local_args))


def wrapped(result: Any, plan: Plan, mesh: DeviceMesh, cls: Any) -> Any:
    """Results as tensors of the mesh."""
    specs = iter(plan.outs) if plan.outs is not None else None

    def one(value: Any) -> Any:
        if not _is_tensor(value):
            return value
        if specs is not None:
            return cls(value, next(specs), requires_grad=False)
        meta = TensorMeta(value.shape, tuple(value.stride()), value.dtype)
        return cls(value, DTensorSpec(mesh, (WHOLE,) * mesh.ndim, meta), requires_grad=False)

    if isinstance(result, (tuple, list)):
        return type(result)([one(each) for each in result])
    return one(result)


# -- operators whose parts are computed in another way -------------------------------------------------------------
def _embedding(op: Op, local: tuple[Any, ...], plan: Plan, given: tuple[Any, ...], mesh: DeviceMesh) -> Any:
    """Where the table's rows are split, a rank looks up its own words and gives zeros for the others."""
    if not any(each.is_shard(0) for each in plan.ins[0]):
        return op.call(local)
    sizes, starts = local_box(given[0].shape, mesh, plan.ins[0])
    words = local[1] - starts[0]
    missing = (words < 0) | (words >= sizes[0])
    if sizes[0] == 0:
        return local[0].new_zeros((*local[1].shape, local[0].shape[1]))
    found = op.call((local[0], words.masked_fill(missing, 0), *local[2:]))
    return found.masked_fill(missing.unsqueeze(-1), 0)


def _mean_of_losses(op: Op, local: tuple[Any, ...], plan: Plan, given: tuple[Any, ...], mesh: DeviceMesh) -> Any:
    """The mean over all ranks' rows: their sums by their weights."""
    split = [at for at, each in enumerate(plan.ins[0]) if each.is_shard()]
    place = op.schema.index("reduction")
    if local[place] != 1 or not split:
        return op.call(local)
    total, weight = op.call((*local[:place], 2, *local[place + 1 :]))
    for at in split:
        total = funcol.all_reduce(total, "sum", mesh.get_group(at))
        weight = funcol.all_reduce(weight, "sum", mesh.get_group(at))
    return total / weight, weight


_PARTS: dict[str, Any] = {"embedding": _embedding, "nll_loss_forward": _mean_of_losses}


# -- operators that are served as a whole --------------------------------------------------------------------------
def _foreach(op: Op, given: tuple[Any, ...], mesh: DeviceMesh, cls: Any) -> Any:
    """Lists of tensors: what belongs to one tensor lies as it does."""
    first = list(given[0])
    if op.name.startswith("_foreach_norm"):
        from ... import linalg

        order = given[1] if len(given) > 1 else 2
        return [linalg.vector_norm(each, order) for each in first]
    locals_ = []
    for value in given:
        if _is_tensor(value):
            locals_.append(redistributed(value._local_tensor, value._spec, (WHOLE,) * mesh.ndim))
        elif isinstance(value, (tuple, list)) and value and _is_tensor(value[0]):
            locals_.append(
                [
                    redistributed(each._local_tensor, each._spec, like._spec.placements)
                    for each, like in zip(value, first)
                ]
            )
        else:
            locals_.append(value)
    for each in first:
        if any(placement.is_partial() for placement in each._spec.placements):
            raise RuntimeError(f"{_title(op)}: tensors that are still to be reduced are not served: {each._spec}")
    result = op.call(tuple(locals_))
    if op.mutates:
        return list(first)
    return [
        cls(local, DTensorSpec(mesh, like._spec.placements, TensorMeta(like.shape, like._spec.stride, local.dtype)),
            requires_grad=False)
        for local, like in zip(result, first)
    ]  # fmt: skip


def _into(op: Op, given: tuple[Any, ...]) -> Any:
    """A form with `out=`: the result is computed, and copied as the target lies."""
    named = op.functional
    assert named is not None
    outs = [value for a, value in zip(op.schema.args, given) if a.mutates]
    found = named.call(tuple(value for a, value in zip(op.schema.args, given) if not a.mutates))
    for out, value in zip(outs, found if isinstance(found, (tuple, list)) else (found,)):
        out._local_tensor.copy_(redistributed(value._local_tensor, value._spec, out._spec.placements))
    return outs[0] if len(outs) == 1 else tuple(outs)


def _scalar(op: Op, given: tuple[Any, ...], mesh: DeviceMesh, cls: Any) -> Any:
    # As PyTorch's: no rank waits for others here, so that one alone may ask for what it prints.
    return given[0]._local_tensor.item()


def _equal(op: Op, given: tuple[Any, ...], mesh: DeviceMesh, cls: Any) -> Any:
    a, b = given[0], given[1]
    if a.shape != b.shape:
        return False
    then = tuple(WHOLE if each.is_partial() else each for each in a._spec.placements)
    left, right = (redistributed(each._local_tensor, each._spec, then) for each in (a, b))
    from ... import float32

    agree = left.new_full((), float(op.call((left, right, *given[2:]))), dtype=float32)
    for at in range(mesh.ndim):
        agree = funcol.all_reduce(agree, "min", mesh.get_group(at))
    return bool(agree.item())


def _as_strided(op: Op, given: tuple[Any, ...], mesh: DeviceMesh, cls: Any) -> Any:
    t = given[0]
    if tuple(t.shape) == tuple(given[1]) and t._spec.stride == tuple(given[2]) and not given[3]:
        return cls(t._local_tensor.view_as(t._local_tensor), t._spec, requires_grad=False)
    raise RuntimeError("as_strided not supported with DTensor")


# Operators whose plain tensors stand for the same on every rank.
BESIDE: set[str] = set()
SERVED: dict[str, Any] = {"aten::_local_scalar_dense": _scalar, "equal": _equal, "as_strided": _as_strided}
