"""The parameters of one `FullyShardedDataParallel` module: all in one vector, of which each rank has a part.

Invariant: the part of a rank is the truth. The whole vector is a leaf of its own, whose memory is given back and taken
again; modules see views of it while it is there.
"""

from __future__ import annotations

from typing import Any

from ... import nn
from .. import _collectives as collectives
from .. import distributed_c10d as dist
from ..algorithms._comm_hooks import LOW_PRECISION_HOOKS
from ..algorithms._comm_hooks.default_hooks import DefaultState
from ._life import Unit


class FlatParameter(nn.Parameter):
    """A rank's part of the vector of all parameters."""


class Entry:
    """One parameter in the vector."""

    def __init__(self, name: str, owners: list[tuple[Any, str]], param: Any, start: int) -> None:
        self.name, self.owners, self.start = name, owners, start
        self.shape, self.numel = tuple(param.shape), param.numel()
        self.requires_grad = param.requires_grad
        # The part of it that this rank has, if parameters keep their identity.
        self.part: Any = None


class FlatUnit(Unit):
    """The parameters of one module."""

    def __init__(
        self,
        found: list[tuple[str, list[tuple[Any, str]], Any]],
        groups: tuple[Any, Any],
        sharded: bool,
        keep: bool,
        precision: Any,
        on_host: bool = False,
    ) -> None:
        from ... import cat

        self.group, self.replicas = groups
        self.sharded = sharded
        self.size = dist.get_world_size(self.group) if sharded else 1
        self.rank = dist.get_rank(self.group) if sharded else 0
        self.ranks = dist.get_world_size(self.group)
        if self.replicas is not None:
            self.ranks *= dist.get_world_size(self.replicas)
        self.entries: list[Entry] = []
        start = 0
        for name, owners, param in found:
            self.entries.append(Entry(name, owners, param, start))
            start += param.numel()
        self.numel, self.length = start, -(-start // self.size)
        flat = cat([param.detach().reshape(-1) for _, _, param in found])
        flat = nn.functional.pad(flat, (0, self.length * self.size - start))
        local = flat[self.rank * self.length : (self.rank + 1) * self.length].clone()
        # Where the whole is; the parts, and their gradients, may live on the host.
        self.device, self.on_host = local.device, on_host and local.device.type != "cpu"
        local = local.cpu() if self.on_host else local
        self.dtype = local.dtype
        self.compute = precision.param_dtype or self.dtype
        self.reduce_dtype = precision.reduce_dtype or precision.param_dtype
        self.keep = keep
        # The wrapper that has the vector as its parameter, unless parameters keep their identity.
        self.home: Any = None
        self.flat = FlatParameter(local, any(entry.requires_grad for entry in self.entries))
        self.whole: Any = None
        self.is_whole = False
        self.gathering: Any = None
        self.reducing: Any = None
        # What reduces in place of the group's collectives, and its state.
        self.hook: Any = None
        self.hook_state: Any = None
        self.keeps_low_precision = precision.keep_low_precision_grads
        for entry in self.entries:
            for owner, name in entry.owners:
                del owner._parameters[name]
        if keep:
            self._give_parts([param for _, _, param in found])

    # -- parts ----------------------------------------------------------------------------------------------------
    def inside(self, entry: Entry) -> tuple[int, int]:
        """Where in this rank's part a parameter begins and ends."""
        first = self.rank * self.length
        start = min(max(entry.start - first, 0), self.length)
        return start, min(max(entry.start + entry.numel - first, start), self.length)

    def _give_parts(self, params: list[Any]) -> None:
        """Parameters that keep their identity, as an optimizer that was made before has them, see this rank's part."""
        for entry, param in zip(self.entries, params):
            start, end = self.inside(entry)
            param.data, param.grad = self.flat.detach()[start:end], None
            entry.part = param
            for owner, name in entry.owners:
                owner._parameters[name] = entry.part

    def parameters(self) -> list[Any]:
        """What an optimizer has."""
        return [entry.part for entry in self.entries] if self.keep else [self.flat]

    def refresh(self) -> None:
        """The vector was moved or cast."""
        self.whole, self.dtype = None, self.flat.dtype
        if self.keep:
            for entry in self.entries:
                start, end = self.inside(entry)
                entry.part.data = self.flat.detach()[start:end]

    # -- gather ---------------------------------------------------------------------------------------------------
    def start_gather(self) -> None:
        if self.is_whole or self.gathering is not None:
            return
        own = self._on_device(self.flat.detach()).to(self.compute)
        if not self.sharded:
            self.gathering = (own, None, own)
            return
        out = own.new_empty(self.length * self.size)
        self.gathering = (out, collectives.all_gather_single(out, own, self.group, async_op=True), own)

    def _on_device(self, part: Any) -> Any:
        return part.to(self.device) if self.on_host else part

    def gather(self) -> None:
        if not self.is_whole:
            self.start_gather()
            out, work, _ = self.gathering
            self.gathering = None
            if work is not None:
                work.wait()
            if self.whole is None:
                self.whole = out.clone().requires_grad_(self.flat.requires_grad)
                self.nbytes = self.whole.untyped_storage().nbytes()
            else:
                self.whole.untyped_storage().resize_(self.nbytes)
                self.whole.data.copy_(out)
            self.is_whole = True
        self._show()

    def views(self, whole: Any) -> list[Any]:
        """The parameters in a vector."""
        sizes = [entry.numel for entry in self.entries]
        parts = whole.split([*sizes, whole.numel() - self.numel])
        return [part.view(entry.shape) for part, entry in zip(parts, self.entries)]

    def _show(self) -> None:
        for view, entry in zip(self.views(self.whole), self.entries):
            shown = view if entry.requires_grad else view.detach()
            for owner, name in entry.owners:
                (owner._parameters if self.keep else owner.__dict__)[name] = shown

    def release(self) -> None:
        if not self.is_whole:
            return
        for entry in self.entries:
            for owner, name in entry.owners:
                if self.keep:
                    owner._parameters[name] = entry.part
                else:
                    owner.__dict__.pop(name, None)
        self.whole.untyped_storage().resize_(0)
        self.is_whole = False

    def full(self) -> Any:
        """A copy of the whole vector, in the dtype of the parts."""
        own = self._on_device(self.flat.detach())
        if not self.sharded:
            return own.clone()
        out = own.new_empty(self.length * self.size)
        collectives.all_gather_single(out, own, self.group)
        return out

    def take(self, whole: Any) -> None:
        """This rank's part of a whole vector."""
        self.flat.data.copy_(whole[self.rank * self.length : (self.rank + 1) * self.length])

    def full_grad(self) -> Any:
        """All gradients in one vector, or None where no rank has any; parameters keep their identity."""
        own = self.flat.detach().new_zeros(self.length)
        there = own.new_zeros(1)
        for entry in self.entries:
            start, end = self.inside(entry)
            if entry.part.grad is not None:
                own[start:end] = entry.part.grad
                there.fill_(1)
        own, there = self._on_device(own), self._on_device(there)
        collectives.all_reduce(there, group=self.group)
        if not there.item():
            return None
        if not self.sharded:
            return own
        out = own.new_empty(self.length * self.size)
        collectives.all_gather_single(out, own, self.group)
        return out

    def take_grads(self, whole: Any) -> None:
        """This rank's part of a vector of all gradients, for those parameters that have some."""
        first = self.rank * self.length
        for entry in self.entries:
            start, end = self.inside(entry)
            if entry.part.grad is not None:
                entry.part.grad.copy_(whole[first + start : first + end])

    # -- reduce ---------------------------------------------------------------------------------------------------
    def start_reduce(self) -> bool:
        if self.whole is None or self.whole.grad is None:
            return False
        grad, self.whole.grad = self.whole.grad, None
        if self.reduce_dtype is not None and self.hook not in LOW_PRECISION_HOOKS:
            grad = grad.to(self.reduce_dtype)
        grad = grad.contiguous()
        out = grad.new_empty(self.length) if self.sharded else grad
        if self.hook is not None:
            self.hook(self.hook_state, *((grad, out) if self.sharded else (grad,)))
            self.reducing = (out, None, grad)
            return True
        # Divided in two steps, so that sums of small floats neither overflow nor vanish.
        before = DefaultState._get_gradient_predivide_factor(self.ranks)
        if before > 1:
            grad.div_(before)
        if self.sharded:
            work = collectives.reduce_scatter_single(out, grad, group=self.group, async_op=True)
        else:
            work = collectives.all_reduce(out, group=self.group, async_op=True)
        self.reducing = (out, work, grad)
        return True

    def finish_reduce(self) -> None:
        out, work, _ = self.reducing
        self.reducing = None
        if work is not None:
            work.wait()
            if self.replicas is not None:
                collectives.all_reduce(out, group=self.replicas)
            after = self.ranks / DefaultState._get_gradient_predivide_factor(self.ranks)
            if after > 1:
                out.div_(after)
        grad = out.to(self.dtype)
        self._give(grad.cpu() if self.on_host else grad)

    def _give(self, grad: Any) -> None:
        parts = [(self.flat, grad)]
        if self.keep:
            ends = [(entry, *self.inside(entry)) for entry in self.entries if entry.requires_grad]
            parts = [(entry.part, grad[start:end]) for entry, start, end in ends if end > start]
        for param, own in parts:
            param.grad = own if param.grad is None else param.grad.to(self.dtype) + own
            if self.keeps_low_precision:
                param.grad.data = param.grad.data.to(self.compute)
