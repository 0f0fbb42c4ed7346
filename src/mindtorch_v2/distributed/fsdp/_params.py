"""The parameters of a unit of `fully_shard`: each is split along a dimension, and lies on the mesh as a `DTensor`.

Invariant: a module has either all sharded or all whole parameters of a unit. The whole ones are made once; their memory
is given back and taken again, so that what autograd saved finds it.
"""

from __future__ import annotations

from typing import Any

from ... import nn
from .. import _collectives as collectives
from .._options import ReduceOp
from ..algorithms._comm_hooks.default_hooks import DefaultState
from ..device_mesh import DeviceMesh
from ..tensor._api import DTensor
from ..tensor._dtensor_spec import DTensorSpec, TensorMeta
from ..tensor._redistribute import _padded, chunks_of, redistributed
from ..tensor.placement_types import Placement, Replicate, Shard, _StridedShard
from ._comm import AllGather, DefaultAllGather, DefaultReduceScatter, ReduceScatter
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
        if mesh._get_root_mesh() != outer._get_root_mesh():
            raise AssertionError("FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh")
        return DTensorSpec(DeviceMesh._concatenate([mesh, outer]), (*placements, *self.outer.placements), meta)

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

    def rows(self, value: Any) -> Any:
        """A whole value as (ranks, the part of each), flat and padded to one length."""
        from ... import cat

        parts = chunks_of(value, self.dim, self.layout.size)
        return cat([_padded(part, self.dim, self.length).reshape(1, -1) for part in parts])

    def has_grad(self, unused_too: bool) -> bool:
        """Whether there is a gradient to reduce; zeros stand for that of a parameter that was not used."""
        return self.whole.grad is not None or (unused_too and self.requires_grad)

    def take_grad(self) -> Any:
        """The gradient of the whole, which is then gone."""
        grad, self.whole.grad = self.whole.grad, None
        if grad is None:
            return self.memory.new_zeros(self.memory.shape)
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
        for hook in (self.sharded._post_accumulate_grad_hooks or {}).values():
            hook(self.sharded)

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
        self.only_sums = False
        self.all_reduce = True
        self.all_reduce_hook: Any = None
        self.reduce_unused = False
        # Sums of backwards that were not to be added over the replicas.
        self.partial: Any = None
        self.all_gather: AllGather = DefaultAllGather()
        self.reduce_scatter: ReduceScatter = DefaultReduceScatter()
        self.reduce_group: Any = None  # that of the gathers, if none was made for reductions
        # Fewer ranks, among which the parameters stay split between forward and backward.
        self.near: Layout | None = None
        self.kept: list[Any] | None = None

    def start_gather(self) -> None:
        from ... import cat

        if self.is_whole or self.gathering is not None:
            return
        started = []
        layout = self.layout if self.kept is None or self.near is None else self.near
        for at, dtype in enumerate(self._dtypes()):
            pieces = [piece for piece in self.pieces if piece.compute == dtype]
            own = cat([piece.part() for piece in pieces]) if self.kept is None else self.kept[at]
            out = self.all_gather.allocate((own.numel() * layout.size,), dtype=own.dtype, device=own.device)
            work = self.all_gather(out, own, layout.group, async_op=True)
            started.append((pieces, out, work, own))
        self.gathering, self.kept = started, None

    def _dtypes(self) -> list[Any]:
        """Those of the whole parameters, in one order on every rank."""
        return list(dict.fromkeys(piece.compute for piece in self.pieces))

    def gather(self) -> None:
        if self.is_whole:
            return
        self.start_gather()
        for pieces, out, work, _ in self.gathering:
            if work is not None:
                work.wait()
            self._fill(pieces, out.view(self.layout.size, -1))
        self.gathering = None
        self.is_whole = True

    @staticmethod
    def _fill(pieces: list[Piece], rows: Any) -> None:
        start = 0
        for piece in pieces:
            piece.fill(rows[:, start : start + piece.numel()])
            start += piece.numel()

    def release(self) -> None:
        self.kept = None
        if not self.is_whole:
            return
        for piece in self.pieces:
            piece.free()
        self.is_whole = False

    def release_until_backward(self) -> None:
        near = self.near
        if near is None or not self.is_whole:
            self.release()
            return
        kept = []
        for dtype in self._dtypes():
            rows = self._rows([piece for piece in self.pieces if piece.compute == dtype])
            kept.append(rows.view(near.size, -1)[near.rank].clone())
        self.release()
        self.kept = kept

    def _rows(self, pieces: list[Piece], grads: list[Any] | None = None) -> Any:
        """The whole parameters, or their gradients, as (ranks, what each has of them)."""
        from ... import cat

        whole = [piece.memory for piece in pieces] if grads is None else grads
        return cat([piece.rows(value) for piece, value in zip(pieces, whole)], 1)

    # -- reduce ---------------------------------------------------------------------------------------------------
    def start_reduce(self) -> bool:
        from ... import bfloat16, float32

        unused_too = self.reduce_unused and not self.reduced
        pieces = [piece for piece in self.pieces if piece.whole is not None and piece.has_grad(unused_too)]
        if not pieces:
            return False
        self.reduced = True
        grads = [piece.take_grad() for piece in pieces]
        rows = self._rows(pieces, [grad if self.reduce_dtype is None else grad.to(self.reduce_dtype) for grad in grads])
        allocate = self.reduce_scatter.allocate
        sent = allocate((rows.numel(),), dtype=rows.dtype, device=rows.device)
        sent.view(rows.shape).copy_(rows)
        out = allocate((rows.shape[1],), dtype=rows.dtype, device=rows.device)
        # Numbers of few bits in the exponent are divided before and after the sum.
        factor = float(self.layout.ranks if self.factor is None else self.factor)
        before, after, op = 1.0, 1.0, ReduceOp.SUM
        if rows.dtype not in (float32, bfloat16):
            before = DefaultState._get_gradient_predivide_factor(factor)
            after = factor / before
        elif self.only_sums:
            after = factor
        elif self.factor is None:
            op = ReduceOp.AVG
        else:
            before = factor
        if before != 1.0:
            sent.div_(before)
        group = self.layout.group if self.reduce_group is None else self.reduce_group
        work = self.reduce_scatter(out, sent, group, op, async_op=True)
        self.reducing = (pieces, out, work, sent, op, after)
        return True

    def finish_reduce(self) -> None:
        pieces, out, work, _, op, after = self.reducing
        self.reducing = None
        if work is not None:
            work.wait()
        if self.layout.replicas is not None:
            if self.partial is not None:
                out.add_(self.partial)
            self.partial = None if self.all_reduce else out
            if not self.all_reduce:
                return
            collectives.all_reduce(out, op, group=self.layout.replicas)
        if self.all_reduce_hook is not None:
            self.all_reduce_hook(out)
        if after != 1.0:
            out.div_(after)
        start = 0
        for piece in pieces:
            piece.give_grad(out[start : start + piece.numel()])
            start += piece.numel()
