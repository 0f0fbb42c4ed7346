"""The parameters of a unit of `fully_shard`: each is split along a dimension, and lies on the mesh as a `DTensor`.

Invariant: a module has either all sharded or all whole parameters of a unit. The whole ones are made once; their memory
is given back and taken again, so that what autograd saved finds it.
"""

from __future__ import annotations

from typing import Any

from ... import nn
from .. import _collectives as collectives
from ..device_mesh import DeviceMesh
from ..tensor._api import DTensor
from ..tensor._dtensor_spec import DTensorSpec, TensorMeta
from ..tensor._redistribute import _padded, chunks_of, redistributed
from ..tensor.placement_types import Placement, Replicate, Shard, _StridedShard
from ._life import Unit


class Layout:
    """Along which dimensions of a mesh parameters are split, and along which they are the same."""

    def __init__(self, mesh: DeviceMesh, on_host: bool = False) -> None:
        # Whether the parts, and their gradients, live on the host, while the whole is on the mesh's device.
        self.on_host = on_host and mesh.device_type != "cpu"
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
        self.mesh = mesh
        self.group = mesh.get_group(mesh.ndim - 1)
        self.size = mesh.size(mesh.ndim - 1)
        self.rank = mesh.get_local_rank(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.ranks = mesh.size()


class Piece:
    """One parameter."""

    def __init__(self, param: Any, owners: list[tuple[Any, str]], layout: Layout, dim: int, dtype: Any) -> None:
        self.owners, self.layout, self.dim = owners, layout, dim
        self.outer: DTensorSpec | None = None
        local = param.detach()
        if isinstance(local, DTensor):
            # Laid out by tensor parallelism: what is split here is this rank's part of it.
            self.outer = local._spec
            local = local._local_tensor
        if local.device.type not in (layout.mesh.device_type, "meta"):
            local = local.to(layout.mesh.device_type)
        self.shape = tuple(local.shape)
        self.requires_grad = param.requires_grad
        parts = chunks_of(local, dim, layout.size)
        self.length = parts[0].shape[dim]
        self.dtype = local.dtype
        self.compute = self.dtype if dtype is None or not local.is_floating_point() else dtype
        self.spec = self._spec(param)
        own = parts[layout.rank].contiguous().clone()
        self.sharded: Any = self._parameter(own.cpu() if layout.on_host and own.device.type != "meta" else own)
        self.whole: Any = None
        self.memory: Any = None
        self.put(self.sharded)

    def _spec(self, param: Any) -> DTensorSpec:
        mesh, placements = self.layout.mesh, self._placements()
        meta = TensorMeta(param.shape, tuple(param.stride()), self.dtype)
        if self.outer is None:
            return DTensorSpec(mesh, placements, meta)
        outer = self.outer.mesh
        names = (*(mesh.mesh_dim_names or ()), *(outer.mesh_dim_names or ()))
        root = mesh._get_root_mesh()
        if len(names) != mesh.ndim + outer.ndim or root != outer._get_root_mesh():
            raise AssertionError("FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh")
        return DTensorSpec(root[names], (*placements, *self.outer.placements), meta)

    def _placements(self) -> tuple[Placement, ...]:
        split: Placement = Shard(self.dim)
        if self.outer is not None:
            factor = 1
            for at, placement in enumerate(self.outer.placements):
                factor *= self.outer.mesh.size(at) if placement.is_shard(self.dim) else 1
            split = _StridedShard(self.dim, factor) if factor > 1 else split
        return (Replicate(), split) if self.layout.mesh.ndim == 2 else (split,)

    def _parameter(self, local: Any) -> Any:
        made: Any = DTensor(local, self.spec, requires_grad=False)
        return nn.Parameter(made, self.requires_grad)

    def put(self, param: Any) -> None:
        for owner, name in self.owners:
            owner._parameters[name] = param

    def part(self) -> Any:
        """This rank's part, as long as all others', flat."""
        local = self.sharded._local_tensor.detach()
        if self.layout.on_host:
            local = local.to(self.layout.mesh.device_type)
        return _padded(local.to(self.compute), self.dim, self.length).reshape(-1)

    def numel(self) -> int:
        count = int(self.length)
        for dim, size in enumerate(self.shape):
            count *= size if dim != self.dim else 1
        return count

    def fill(self, parts: Any) -> None:
        """The whole, from the parts of all: (ranks, numel)."""
        from ... import cat

        shape = [self.length if dim == self.dim else size for dim, size in enumerate(self.shape)]
        joined = cat([row.view(shape) for row in parts], self.dim) if self.dim else parts.reshape(-1, *shape[1:])
        value = joined.narrow(self.dim, 0, self.shape[self.dim])
        if self.whole is None:
            self._make_whole(value)
        else:
            self.memory.untyped_storage().resize_(self.nbytes)
            # Another alias: what autograd saved has not been written to, as far as it can tell.
            self.memory.data.copy_(value)
        self.put(self.whole)

    def _make_whole(self, value: Any) -> None:
        from ... import contiguous_format

        self.memory = value.clone(memory_format=contiguous_format)
        self.nbytes = self.memory.untyped_storage().nbytes()
        found = self.memory
        if self.outer is not None:
            meta = TensorMeta(self.outer.shape, self.outer.stride, self.compute)
            found = DTensor(self.memory, DTensorSpec(self.outer.mesh, self.outer.placements, meta), requires_grad=False)
        self.whole = nn.Parameter(found, self.requires_grad)

    def free(self) -> None:
        if self.memory is not None:
            self.memory.untyped_storage().resize_(0)
        self.put(self.sharded)

    def take_grad(self) -> Any:
        """The gradient of the whole, which is then gone."""
        grad, self.whole.grad = self.whole.grad, None
        if self.outer is not None:
            grad = redistributed(grad._local_tensor, grad._spec, self.outer.placements)
        return grad

    def give_grad(self, flat: Any) -> None:
        shape = [self.length if dim == self.dim else size for dim, size in enumerate(self.shape)]
        own = self.sharded._local_tensor.shape[self.dim]
        local = flat.view(shape).narrow(self.dim, 0, own).to(self.dtype)
        local = local.cpu() if self.layout.on_host else local
        meta = self.spec.tensor_meta
        grad: Any = DTensor(local.contiguous(), DTensorSpec(self.spec.mesh, self.spec.placements, meta))
        if self.sharded.grad is None:
            self.sharded.grad = grad
        else:
            self.sharded.grad = self.sharded.grad + grad

    def refresh(self) -> None:
        """The module's parameter was replaced or moved: that is the one now."""
        owner, name = self.owners[0]
        now = owner._parameters[name]
        if now is not self.sharded and isinstance(now, DTensor):
            self.sharded = now
            self.put(now)
        moved = not self.layout.on_host and self.memory is not None
        if moved and self.memory.device != self.sharded._local_tensor.device:
            self.whole = self.memory = None
        if self.sharded.dtype != self.dtype:
            self.compute = self.sharded.dtype if self.compute == self.dtype else self.compute
            self.dtype = self.sharded.dtype
            self.whole = self.memory = None


class ParamUnit(Unit):
    """The parameters of one call of `fully_shard`."""

    def __init__(self, pieces: list[Piece], layout: Layout, reduce_dtype: Any) -> None:
        self.pieces, self.layout, self.reduce_dtype = pieces, layout, reduce_dtype
        self.is_whole = False
        self.gathering: Any = None
        self.reducing: Any = None
        self.factor: float | None = None
        self.all_reduce = True
        self.all_reduce_hook: Any = None

    def start_gather(self) -> None:
        from ... import cat

        if self.is_whole or self.gathering is not None:
            return
        started = []
        for dtype in dict.fromkeys(piece.compute for piece in self.pieces):  # in one order on every rank
            pieces = [piece for piece in self.pieces if piece.compute == dtype]
            own = cat([piece.part() for piece in pieces])
            out = own.new_empty(own.numel() * self.layout.size)
            work = collectives.all_gather_single(out, own, self.layout.group, async_op=True)
            started.append((pieces, out, work, own))
        self.gathering = started

    def gather(self) -> None:
        if self.is_whole:
            return
        self.start_gather()
        for pieces, out, work, _ in self.gathering:
            work.wait()
            rows, start = out.view(self.layout.size, -1), 0
            for piece in pieces:
                piece.fill(rows[:, start : start + piece.numel()])
                start += piece.numel()
        self.gathering = None
        self.is_whole = True

    def release(self) -> None:
        if not self.is_whole:
            return
        for piece in self.pieces:
            piece.free()
        self.is_whole = False

    def start_reduce(self) -> bool:
        from ... import cat

        pieces = [piece for piece in self.pieces if piece.whole is not None and piece.whole.grad is not None]
        if not pieces:
            return False
        ranks = self.layout.size
        rows = []
        for piece in pieces:
            grad = piece.take_grad()
            grad = grad if self.reduce_dtype is None else grad.to(self.reduce_dtype)
            parts = [_padded(part, piece.dim, piece.length) for part in chunks_of(grad, piece.dim, ranks)]
            rows.append(cat([part.reshape(1, -1) for part in parts]))
        sent = cat(rows, 1).reshape(-1)
        out = sent.new_empty(sent.numel() // ranks)
        work = collectives.reduce_scatter_single(out, sent, group=self.layout.group, async_op=True)
        self.reducing = (pieces, out, work, sent)
        return True

    def finish_reduce(self) -> None:
        pieces, out, work, _ = self.reducing
        self.reducing = None
        work.wait()
        if self.layout.replicas is not None and self.all_reduce:
            collectives.all_reduce(out, group=self.layout.replicas)
        if self.all_reduce_hook is not None:
            self.all_reduce_hook(out)
        out.div_(self.layout.ranks if self.factor is None else self.factor)
        start = 0
        for piece in pieces:
            piece.give_grad(out[start : start + piece.numel()])
            start += piece.numel()
