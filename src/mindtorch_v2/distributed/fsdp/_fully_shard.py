"""`fully_shard`: a module's parameters are split over ranks, and whole only while they are used.

Invariant: the module stays what it is, with another class; outside of forward and backward it has `DTensor`s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import deprecated

from ... import nn
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor._api import DTensor
from ..tensor.placement_types import Shard
from ._comm import AllGather, ReduceScatter
from ._life import State
from ._params import Layout, ParamUnit, Piece
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "DataParallelMeshDims",
    "FSDPModule",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]


@dataclass
class DataParallelMeshDims:
    """Names of the dimensions of a mesh along which parameters are split, and along which they are the same."""

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.shard is None and self.replicate is None:
            raise ValueError("At least one of shard or replicate must be set in DataParallelMeshDims")

    @property
    def shard_names(self) -> tuple[str, ...]:
        """The dimensions along which parameters are split."""
        return _names(self.shard)

    @property
    def replicate_names(self) -> tuple[str, ...]:
        """The dimensions along which they are the same."""
        return _names(self.replicate)


def _names(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


_ALL_AS_IT_IS = MixedPrecisionPolicy()
_NOTHING_WAITS = OffloadPolicy()


class UnshardHandle:
    """Waits for parameters that were asked for."""

    def __init__(self, unit: ParamUnit | None = None) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Have the parameters."""
        if self._unit is not None:
            self._unit.gather()
            self._unit = None


class FSDPModule:
    """What `fully_shard` adds to a module's class."""

    _fsdp_state: State

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class that the module had before."""
        orig: Any = cls.__mro__[2]
        made = orig.__new__(orig)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> State:
        return self._fsdp_state

    def _unit(self) -> ParamUnit | None:
        unit = self._fsdp_state.unit
        return unit if isinstance(unit, ParamUnit) else None

    def _states(self, recurse: bool = True) -> list[State]:
        me: Any = self
        found = []
        for module in me.modules() if recurse else (self,):
            if isinstance(module, FSDPModule) and module._fsdp_state not in found:
                found.append(module._fsdp_state)
        return found

    def _units(self, recurse: bool = True) -> list[ParamUnit]:
        return [state.unit for state in self._states(recurse) if isinstance(state.unit, ParamUnit)]

    def reshard(self) -> None:
        """Give the other ranks' parts of the parameters back."""
        unit = self._unit()
        if unit is not None:
            unit.release()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Have the whole parameters; with `async_op`, when the handle's `wait` is called."""
        unit = self._unit()
        handle = UnshardHandle(unit)
        if unit is not None:
            unit.start_gather()
        if async_op:
            return handle
        handle.wait()
        return None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Reductions are waited for at the end of every backward, whether it is the last or not."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether gradients are reduced; if not, they add up whole."""
        for state in self._states(recurse):
            state.sync = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are summed over the replicas too."""
        for unit in self._units(recurse):
            unit.all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are given back after forward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.release_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether parameters are given back after backward."""
        for state in self._states(recurse):
            state.release_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are asked for when this one's forward begins."""
        _all_fsdp(modules)
        self._fsdp_state.forward_next = [module._fsdp_state for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are asked for when this one's backward begins."""
        _all_fsdp(modules)
        self._fsdp_state.backward_next = [module._fsdp_state for module in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what summed gradients are divided: the number of ranks, if not set."""
        for unit in self._units(False):
            unit.factor = factor

    @deprecated("Use `set_gradient_divide_factor` instead")
    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """The former name of `set_gradient_divide_factor`."""
        self.set_gradient_divide_factor(factor)

    def set_all_reduce_hook(self, hook: Callable[[Any], None], *, stream: Any = None) -> None:
        """What is called with a unit's reduced gradients."""
        if stream is not None:
            raise NotImplementedError(
                "set_all_reduce_hook(): argument 'stream' must be None: reductions have none here"
            )
        for unit in self._units(False):
            unit.all_reduce_hook = hook

    def set_custom_all_gather(self, comm: AllGather) -> None:
        """How parameters are gathered."""
        for unit in self._units(False):
            unit.all_gather = comm

    def set_custom_reduce_scatter(self, comm: ReduceScatter) -> None:
        """How gradients are reduced."""
        for unit in self._units(False):
            unit.reduce_scatter = comm

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params: bool, *, recurse: bool = True) -> None:
        """Whether zeros are reduced for parameters without a gradient: others may have used them."""
        for unit in self._units(recurse):
            unit.reduce_unused = reduce_scatter_unused_params

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """How many reductions may be under way when the next one begins."""
        if isinstance(max_input_buffers, bool) or not isinstance(max_input_buffers, int):
            raise TypeError(f"max_input_buffers must be an int, got {type(max_input_buffers).__name__}")
        if max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be a positive int, got {max_input_buffers}")
        for state in self._states(recurse):
            state.under_way = max_input_buffers

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """Whether reductions have a group of their own, so that gathers need not wait for them."""
        from .. import distributed_c10d as dist

        made: dict[tuple[int, ...], Any] = {}
        for unit in self._units(recurse):
            ranks = tuple(dist.get_process_group_ranks(unit.layout.group))
            if enable and ranks not in made:
                made[ranks] = dist.new_group(list(ranks), use_local_synchronization=True)
            unit.reduce_group = made[ranks] if enable else None

    def set_post_optim_event(self, event: Any) -> None:
        """What the next gather waits for on its device, in place of all that was asked of the device before."""
        self._fsdp_state.wait_for = event

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether backward gathers the parameters, which it need not where they are not used."""
        self._fsdp_state.unshard_in_backward = unshard_in_backward

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Whether gradients are only ever summed by the collective, and divided afterwards."""
        for unit in self._units(False):
            unit.only_sums = enable

    def _set_unshard_async_op(self, async_op: bool) -> None:
        """Gathers are always begun before they are waited for."""

    def reset_iter_state(self) -> None:
        """Forget a forward or backward that did not come to its end."""
        for state in self._states():
            state.backward = False
            state._running.clear()
            if state.context is not None:
                state.context.queued = False
                state.context.order.clear()
                state.context.reducing.clear()

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        me: Any = super()
        found = me._apply(*args, **kwargs)
        for unit in self._units(False):
            for piece in unit.pieces:
                piece.refresh()
        return found


def _not_served(name: str, why: str) -> Any:
    def method(self: FSDPModule, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"FSDPModule.{name} is not served: {why}")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Refused by name."
    return method


for _name, _why in (
    ("set_symm_mem_for_comm", "no backend has symmetric memory"),
    ("set_allocate_memory_from_process_group_for_comm", "no backend has an allocator"),
):
    setattr(FSDPModule, _name, _not_served(_name, _why))


def _all_fsdp(modules: list[Any]) -> None:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")


def _no_copies(self: Any, memo: Any) -> Any:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


_CLASSES: dict[type, type] = {}


def _class_of(cls: type) -> type:
    if cls not in _CLASSES:
        _CLASSES[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _no_copies})
    return _CLASSES[cls]


def _owned(modules: list[Any], ignored: set[Any]) -> list[tuple[Any, list[tuple[Any, str]]]]:
    """Parameters that no call below has taken, with the modules that have them."""
    found: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    seen: set[int] = set()

    def visit(module: Any, top: bool) -> None:
        if id(module) in seen or (not top and isinstance(module, FSDPModule)):
            return
        seen.add(id(module))
        for name, param in module._parameters.items():
            if param is not None and param not in ignored:
                found.setdefault(id(param), (param, []))[1].append((module, name))
        for child in module.children():
            visit(child, False)

    for module in modules:
        visit(module, True)
    return list(found.values())


def _mesh_of(mesh: DeviceMesh | None, dims: DataParallelMeshDims | None) -> DeviceMesh:
    from .. import distributed_c10d as dist

    if mesh is None:
        if not dist.is_initialized():
            dist.init_process_group()
        return init_device_mesh(_device_type(), (dist.get_world_size(),), mesh_dim_names=("fsdp",))
    if dims is None:
        return mesh
    if not dims.shard_names:
        raise NotImplementedError("fully_shard(): argument 'dp_mesh_dims' must name what is split; replicas are DDP's")
    if mesh.mesh_dim_names is None:
        raise ValueError("mesh must have mesh_dim_names when dp_mesh_dims is provided")
    for name in (*dims.shard_names, *dims.replicate_names):
        if name not in mesh.mesh_dim_names:
            raise ValueError(f"Mesh dim name '{name}' not found in mesh.mesh_dim_names {mesh.mesh_dim_names}")
    parts = [_one_dimension(mesh, names) for names in (dims.replicate_names, dims.shard_names) if names]
    return parts[0] if len(parts) == 1 else DeviceMesh._concatenate(parts)


def _one_dimension(mesh: DeviceMesh, names: tuple[str, ...]) -> DeviceMesh:
    return mesh[names[0]] if len(names) == 1 else mesh[names]._flatten()


def _device_type() -> str:
    from ...accelerator import current_accelerator

    found = current_accelerator(check_available=True)
    return "cpu" if found is None else str(found.type)


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = _ALL_AS_IT_IS,
    offload_policy: OffloadPolicy = _NOTHING_WAITS,
    ignored_params: set[Any] | None = None,
    dp_mesh_dims: DataParallelMeshDims | None = None,
) -> Any:
    """Split a module's parameters over the ranks of a mesh; modules below that were given before keep theirs."""
    modules = [module] if isinstance(module, nn.Module) else list(module)
    for each in modules:
        if isinstance(each, (nn.ModuleList, nn.ModuleDict)) and type(each).forward is nn.Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if isinstance(each, FSDPModule):
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once. fully_shard has "
                f"already been applied to the following module:\n{each}"
            )
    mesh = _mesh_of(mesh, dp_mesh_dims)
    layout = Layout(mesh, isinstance(offload_policy, CPUOffloadPolicy))
    reshard_after_forward, near = _near(layout, reshard_after_forward)
    pieces = []
    for param, owners in _owned(modules, ignored_params or set()):
        placement = None if shard_placement_fn is None else shard_placement_fn(param)
        if placement is not None and not isinstance(placement, Shard):
            raise ValueError(f"Invalid shard_placement_fn result: {placement}")
        if placement is not None and not -param.dim() <= placement.dim < param.dim():
            raise AssertionError(f"Shard dim {placement.dim} is invalid for {param.dim()}D tensor: {param.shape}")
        dim = 0 if placement is None else placement.dim % max(param.dim(), 1)
        if param.dim() == 0:
            raise ValueError(
                "fully_shard doesn't support scalar parameters. Change the parameter to a 1D tensor with numel equal "
                "to 1."
            )
        if dim != 0 and param.shape[dim] % layout.size:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: {param.size()} (world size: {layout.size})"
            )
        pieces.append(Piece(param, owners, layout, dim, mp_policy.param_dtype))
    _move_buffers(modules, mesh)
    unit = ParamUnit(pieces, layout, mp_policy.reduce_dtype) if pieces else None
    if unit is not None:
        unit.near = near
    state = State(modules, unit)
    state.release_after_forward = reshard_after_forward
    state.input_dtype = mp_policy.param_dtype if mp_policy.cast_forward_inputs else None
    state.output_dtype = mp_policy.output_dtype
    state.hook()
    for each in modules:
        each.__class__ = _class_of(type(each))
        each._fsdp_state = state
    return module


def _near(layout: Layout, after: Any) -> tuple[bool | None, Layout | None]:
    """Whether parameters are given back after forward, and the fewer ranks among which they then stay split."""
    if after is None or isinstance(after, bool):
        return after, None
    if not isinstance(after, int):
        raise ValueError(
            f"reshard_after_forward should be a bool or an int representing the group size to reshard to, not {after}"
        )
    if after < 1 or after > layout.size or layout.size % after:
        raise ValueError(
            f"If passing reshard_after_forward as an int, it should be a factor of {layout.size}, not {after}"
        )
    if after in (1, layout.size):
        return after != 1, None
    return True, Layout(DeviceMesh(layout.mesh.device_type, layout.mesh.mesh.view(-1, after)))


def _move_buffers(modules: list[Any], mesh: DeviceMesh) -> None:
    for module in modules:
        for each in module.modules():
            for name, buffer in each._buffers.items():
                moves = buffer is not None and not isinstance(buffer, DTensor)
                if moves and buffer.device.type not in (mesh.device_type, "meta"):
                    each._buffers[name] = buffer.to(mesh.device_type)


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Treat another method of a module as its forward: parameters are whole in it."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)
    state = module._fsdp_state

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, named = state.before_forward(args, kwargs)
        return state.after_forward(method(*given, **named))

    setattr(module, method_name, wrapped)


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Modules without a common root share what they have under way: here each waits for its own."""
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {module}")
