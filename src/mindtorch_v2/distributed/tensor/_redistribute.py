"""From one way to lie on a mesh to another: which collectives run, one dimension of the mesh after the other.

Invariant: every rank of the mesh runs the same collectives in the same order, whatever part it has.
"""

from __future__ import annotations

from typing import Any

from ...autograd import Function
from .. import _functional_collectives as funcol
from .._collectives import all_to_all
from ..device_mesh import DeviceMesh
from ._dtensor_spec import DTensorSpec, TensorMeta, local_box
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard


def _lengths(whole: int, ranks: int) -> list[int]:
    return [Shard.local_shard_size_and_offset(whole, ranks, rank)[0] for rank in range(ranks)]


def _padded(part: Any, dim: int, length: int) -> Any:
    """A part with zeros behind it, so that all are of one length."""
    from ... import cat

    missing = length - part.shape[dim]
    if missing == 0:
        return part.contiguous()
    shape = list(part.shape)
    shape[dim] = missing
    return cat([part, part.new_zeros(shape)], dim)


def chunks_of(whole: Any, dim: int, ranks: int) -> list[Any]:
    """One part for each rank; the last may be empty."""
    return list(whole.split(_lengths(whole.shape[dim], ranks), dim))


def _gathered(local: Any, dim: int, length: int, mesh: DeviceMesh, at: int) -> Any:
    """Split along `dim`, which is `length` long in all, to the same everywhere."""
    from ... import cat

    ranks = mesh.size(at)
    lengths = _lengths(length, ranks)
    parts = funcol.all_gather_single(_padded(local, dim, lengths[0]), mesh.get_group(at)).chunk(ranks)
    if not parts:
        return local
    return cat([part.narrow(dim, 0, own) for part, own in zip(parts, lengths)], dim)


def _reduced(local: Any, placement: Partial, mesh: DeviceMesh, at: int) -> Any:
    return placement._after(
        funcol.all_reduce(placement._before(local).contiguous(), placement.reduce_op, mesh.get_group(at))
    )


def _reduced_part(local: Any, placement: Partial, dim: int, mesh: DeviceMesh, at: int) -> Any:
    """To be reduced, to split."""
    from ... import cat

    ranks = mesh.size(at)
    lengths = _lengths(local.shape[dim], ranks)
    if lengths[0] == 0:
        return local
    padded = [_padded(part, dim, lengths[0]) for part in chunks_of(placement._before(local), dim, ranks)]
    own = funcol.reduce_scatter_single(cat(padded), placement.reduce_op, mesh.get_group(at))
    rank = mesh.get_local_rank(at)
    return placement._after(own.narrow(dim, 0, lengths[rank]).contiguous())


def _exchanged(local: Any, source: int, target: int, length: int, mesh: DeviceMesh, at: int) -> Any:
    """Split along one dimension to split along another."""
    from ... import cat

    ranks, rank = mesh.size(at), mesh.get_local_rank(at)
    sent = [part.contiguous() for part in chunks_of(local, target, ranks)]
    shape = list(local.shape)
    shape[target] = _lengths(local.shape[target], ranks)[rank]
    came = []
    for own in _lengths(length, ranks):
        shape[source] = own
        came.append(local.new_empty(shape))
    all_to_all(came, sent, mesh.get_group(at))
    return cat(came, source)


def _step(local: Any, mesh: DeviceMesh, at: int, length: Any, now: Placement, then: Placement) -> Any:
    """Along one dimension of the mesh; `length` is that of the dimension that is split now."""
    if isinstance(now, Partial):
        if isinstance(then, Shard):
            return _reduced_part(local, now, then.dim, mesh, at)
        whole = _reduced(local, now, mesh, at)
        return whole if isinstance(then, Replicate) else _step(whole, mesh, at, length, Replicate(), then)
    if isinstance(now, Shard):
        if isinstance(then, Shard):
            return _exchanged(local, now.dim, then.dim, length, mesh, at)
        whole = _gathered(local, now.dim, length, mesh, at)
        return whole if isinstance(then, Replicate) else _step(whole, mesh, at, length, Replicate(), then)
    if isinstance(then, Shard):
        return chunks_of(local, then.dim, mesh.size(at))[mesh.get_local_rank(at)].contiguous()
    if isinstance(then, Partial):
        return then._share(local, mesh.size(at))
    raise RuntimeError(f"redistribute from {now} to {then} not supported yet")


def _nested(now: tuple[Placement, ...], then: tuple[Placement, ...]) -> list[int]:
    """Dimensions of the mesh whose part must become whole first: another that split before them changes."""
    found = []
    strided = {each.dim for each in (*now, *then) if isinstance(each, _StridedShard)}
    for at, placement in enumerate(now):
        if not isinstance(placement, Shard):
            continue
        changes = any(
            now[other] != then[other] and (now[other].is_shard(placement.dim) or then[other].is_shard(placement.dim))
            for other in range(at)
        )
        if changes or placement.dim in strided:
            found.append(at)
    return found


def redistributed(local: Any, spec: DTensorSpec, placements: tuple[Placement, ...]) -> Any:
    """This rank's part of a tensor that lies as `spec` says, if it lay as `placements` say."""
    mesh = spec.mesh
    if spec.placements == placements or mesh.get_coordinate() is None:
        return local
    now = list(spec.placements)

    def move(at: int, then: Placement) -> None:
        nonlocal local
        before = now[at]
        if before == then:
            return
        length = None
        if isinstance(before, Shard):
            others = tuple(Replicate() if each == at else placement for each, placement in enumerate(now))
            length = local_box(spec.shape, mesh, others)[0][before.dim]
        local = _step(local, mesh, at, length, before, then)
        now[at] = then

    # What was split last is whole first; strided splits came last.
    stale = _nested(spec.placements, placements)
    for at in sorted(stale, key=lambda at: (not isinstance(now[at], _StridedShard), -at)):
        move(at, Replicate())
    for at in sorted(range(len(now)), key=lambda at: (isinstance(placements[at], _StridedShard), at)):
        move(at, placements[at])
    return local


def redistribute_local_tensor(
    local_tensor: Any,
    current_spec: DTensorSpec,
    target_spec: DTensorSpec,
    *,
    async_op: bool = False,
    use_graph_based_transform: bool | None = None,
    is_explicit: bool = False,
) -> Any:
    """This rank's part of a tensor that lies as one spec says, if it lay as another says; it is there on return."""
    if current_spec.mesh != target_spec.mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    if use_graph_based_transform:
        raise NotImplementedError("redistribute_local_tensor: use_graph_based_transform is not served")
    return redistributed(local_tensor, current_spec, target_spec.placements)


def for_gradient(placements: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """How the gradient of a tensor lies: what is to be reduced has the same gradient everywhere."""
    return tuple(Replicate() if each.is_partial() else each for each in placements)


class Redistribute(Function):
    """`DTensor.redistribute`: the gradient goes back to where the tensor was."""

    @staticmethod
    def forward(ctx: Any, source: Any, placements: Any, forward_dtype: Any, backward_dtype: Any) -> Any:
        spec = source._spec
        ctx.placements, ctx.backward_dtype, ctx.dtype = spec.placements, backward_dtype, source.dtype
        local = source._local_tensor
        if forward_dtype is not None and forward_dtype != local.dtype:
            local = local.to(forward_dtype)
        moved = redistributed(local, spec, placements)
        meta = TensorMeta(spec.shape, spec.stride, moved.dtype)
        moved = moved.view_as(moved) if moved is source._local_tensor else moved
        return type(source)(moved, DTensorSpec(spec.mesh, placements, meta), requires_grad=source.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        spec = grad._spec
        # A gradient that every rank has, or has a part of, is not made partial: it would have to be reduced later.
        then = tuple(
            Replicate() if old.is_partial() and not new.is_partial() else old
            for old, new in zip(ctx.placements, spec.placements)
        )
        local = grad._local_tensor if ctx.backward_dtype is None else grad._local_tensor.to(ctx.backward_dtype)
        local = redistributed(local, spec, then)
        local = local if local.dtype == ctx.dtype else local.to(ctx.dtype)
        meta = TensorMeta(spec.shape, spec.stride, local.dtype)
        return type(grad)(local, DTensorSpec(spec.mesh, then, meta), requires_grad=grad.requires_grad), None, None, None
