"""`FullyShardedDataParallel`: a module around another, whose parameters are one vector that is split over ranks.

Invariant: names in state dicts are those of the module inside, whatever is wrapped below it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Any

from ... import nn
from .. import _collectives as collectives
from .. import distributed_c10d as dist
from .._objects import broadcast_object_list
from . import _flat_state
from ._flat import FlatUnit
from ._life import State
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import run_in_full_precision, wrap_below

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_INSIDE = "_fsdp_wrapped_module"


class OptimStateKeyType(Enum):
    """How an optimizer's state dict names parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


def _clean(name: str) -> str:
    return name.replace(f"{_INSIDE}.", "")


_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def _groups(process_group: Any, mesh: Any, strategy: ShardingStrategy, policy: Any, devices: int) -> tuple[Any, Any]:
    """The ranks among which parameters are split, and those that have the same parts."""
    if process_group is not None and mesh is not None:
        raise ValueError(
            "Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them."
        )
    if strategy not in _HYBRID:
        if mesh is not None:
            return mesh.get_group(0), None
        return process_group if process_group is not None else dist._get_default_group(), None
    if mesh is not None:
        if mesh.ndim != 2:
            raise ValueError(f"Expected device_mesh to have ndim=2 but got {mesh.ndim}")
        return mesh.get_group(1), mesh.get_group(0)
    if process_group is None:
        if policy is None:
            raise ValueError(
                f"Manual wrapping with {strategy} requires explicit specification of process group or device_mesh."
            )
        return _node_groups(devices)
    pair = process_group if isinstance(process_group, tuple) else ()
    if len(pair) != 2 or not all(isinstance(each, dist.ProcessGroup) for each in pair):
        raise ValueError(
            "Expected process_group to be passed in as either None or Tuple[dist.ProcessGroup, dist.ProcessGroup] but "
            f"got {type(process_group)}"
        )
    return pair[0], pair[1]


def _node_groups(devices: int) -> tuple[Any, Any]:
    """The ranks of this machine, if each has as many ranks as devices, and those with the same place on the others."""
    inside, _ = dist.new_subgroups(devices)
    backend, between = dist.get_backend(), None
    for place in range(devices):
        ranks = list(range(place, dist.get_world_size(), devices))
        made = dist.new_group(ranks, backend=backend)
        between = made if dist.get_rank() in ranks else between
    return inside, between


def _devices(module: Any, device_id: Any) -> int:
    """How many devices of the kind that a module uses a machine has."""
    from ... import device, npu

    if device_id is None:
        kind = next((param.device.type for param in module.parameters()), "cpu")
    else:
        kind = "npu" if isinstance(device_id, int) else device(device_id).type
    return npu.device_count() if kind == "npu" else 1


def _ignored(modules: Any, states: Any) -> list[Any]:
    """The parameters, or the modules, that stay as they are."""
    if modules is not None and states is not None:
        raise ValueError(
            "Cannot pass both ignored_modules and ignored_states at the same time. Please just pass ignored_states."
        )
    if modules is not None and not all(isinstance(each, nn.Module) for each in modules):
        raise ValueError(
            f"ignored_modules expects nn.Module list elements but got types {[type(each) for each in modules]}"
        )
    found = list(states or ())
    if not any(all(isinstance(each, kind) for each in found) for kind in (nn.Module, nn.Parameter)):
        raise ValueError(
            "ignored_states expects all nn.Parameter or all nn.Module list elements but got types "
            f"{[type(each) for each in found]}"
        )
    return found


class FullyShardedDataParallel(nn.Module):
    """Splits a module's parameters over ranks, and gathers them while they are used."""

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Callable[[Any], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        self.cpu_offload = cpu_offload or CPUOffload()
        if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            warnings.warn(
                f"FSDP will not all-gather parameters for containers that do not implement forward: {module}",
                stacklevel=2,
            )
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        devices = _devices(module, device_id) if strategy in _HYBRID else 1
        groups = _groups(process_group, device_mesh, strategy, auto_wrap_policy, devices)
        if strategy in _HYBRID and device_mesh is None:
            process_group = groups  # for the modules below
        states = _ignored(ignored_modules, ignored_states)
        modules = {each for each in (*(ignored_modules or ()), *states) if isinstance(each, nn.Module)}
        skipped = {each for owner in modules for each in owner.modules()}
        ignored = {param for each in skipped for param in each.parameters()}
        ignored |= {each for each in states if not isinstance(each, nn.Module)}
        if auto_wrap_policy is not None:
            settings = {
                "process_group": process_group,
                "sharding_strategy": strategy,
                "backward_prefetch": backward_prefetch,
                "cpu_offload": cpu_offload,
                "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn,
                "device_id": device_id,
                "sync_module_states": sync_module_states,
                "use_orig_params": use_orig_params,
                "ignored_states": [*modules, *(each for each in states if not isinstance(each, nn.Module))],
                "device_mesh": device_mesh,
            }
            without = () if mixed_precision is None else tuple(set(mixed_precision._module_classes_to_ignore))
            run_in_full_precision(module, without)
            wrap_below(module, auto_wrap_policy, type(self), settings, skipped, without=without)
        _materialized(module, param_init_fn, device_id)
        if sync_module_states:
            _synced(module, groups, ignored, type(self))
        self._fsdp_wrapped_module = module
        self.process_group, self._device_mesh = groups[0], device_mesh
        self.rank, self.world_size = dist.get_rank(groups[0]), dist.get_world_size(groups[0])
        if groups[1] is not None:
            self._inter_node_pg = groups[1]
        self._comm_hook: Any = None
        self._comm_hook_state: Any = None
        self.sharding_strategy = strategy
        self.mixed_precision = mixed_precision or MixedPrecision()
        self._fsdp_use_orig_params = use_orig_params
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._build(groups, ignored)

    def _build(self, groups: tuple[Any, Any], ignored: set[Any]) -> None:
        module, precision = self._fsdp_wrapped_module, self.mixed_precision
        found = _owned(module, ignored, type(self))
        kinds = {param.requires_grad for _, _, param in found}
        if len(kinds) > 1 and not self._fsdp_use_orig_params:
            raise ValueError("Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`")
        if len({param.dtype for _, _, param in found}) > 1:
            raise ValueError("Must flatten tensors with uniform dtype")
        sharded = self.sharding_strategy is not ShardingStrategy.NO_SHARD
        on_host = self.cpu_offload.offload_params
        keep = self._fsdp_use_orig_params
        self._unit = FlatUnit(found, groups, sharded, keep, precision, on_host) if found else None
        if self._unit is not None and not self._fsdp_use_orig_params:
            self.register_parameter("_flat_param", self._unit.flat)
            self._unit.home = self
        state = State([self], self._unit)
        kept = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2, ShardingStrategy.NO_SHARD)
        state.release_after_forward = False if self.sharding_strategy in kept else None
        state.input_dtype = precision.param_dtype if precision.cast_forward_inputs else None
        state.hook()
        self._fsdp_state = state
        if precision.buffer_dtype is not None:
            for buffer in module.buffers():
                if buffer.is_floating_point():
                    buffer.data = buffer.data.to(precision.buffer_dtype)

    @property
    def module(self) -> Any:
        """What is wrapped."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._fsdp_wrapped_module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """That of the module inside."""
        precision = self.mixed_precision
        if self._fsdp_state.is_root and precision.param_dtype is not None and precision.cast_root_forward_inputs:
            from ...utils._pytree import tree_map

            args, kwargs = tree_map(State._cast(precision.param_dtype), (args, kwargs))
        return self._fsdp_wrapped_module(*args, **kwargs)

    def check_is_root(self) -> bool:
        """Whether no other such module is around this one."""
        self._fsdp_state._root()
        return self._fsdp_state.is_root

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[Any]:
        """The modules of this class in a module."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        return [each for each in found if each.check_is_root()] if root_only else found

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Parameters; their names are those inside where they keep their identity."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield (_clean(name) if self._fsdp_use_orig_params else name), param

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """Apply a function to all modules, with whole parameters."""
        with self.summon_full_params(self, writeback=True):
            return super().apply(fn)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._apply(*args, **kwargs)
        if self._unit is not None:
            self._unit.release()
            if self._fsdp_use_orig_params:
                self._unit.flat.data = args[0](self._unit.flat.data)
            if self._unit.on_host:  # a move is one of the whole: the parts stay where they live
                self._unit.flat.data = self._unit.flat.data.cpu()
            self._unit.refresh()
        return found

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients add up whole."""
        states = [each._fsdp_state for each in self.fsdp_modules(self)]
        for state in states:
            state.sync = False
        try:
            yield
        finally:
            for state in states:
                state.sync = True

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale all gradients so that their norm is not above one; the norm of all ranks' parts."""
        from ... import linalg, stack, tensor

        norm_type = float(norm_type)
        sums = []
        for each in self.fsdp_modules(self):
            unit = each._unit
            if unit is None:
                continue
            grads = [param.grad for param in unit.parameters() if param.grad is not None and param.numel()]
            norms = [linalg.vector_norm(grad.float(), norm_type) for grad in grads]
            own = linalg.vector_norm(stack(norms), norm_type) if norms else tensor(0.0, device=unit.flat.device)
            value = own if norm_type == float("inf") else own**norm_type
            if unit.sharded:
                op = dist.ReduceOp.MAX if norm_type == float("inf") else dist.ReduceOp.SUM
                collectives.all_reduce(value, op, group=unit.group)
            sums.append(value)
        total = stack(sums).max() if norm_type == float("inf") else stack(sums).sum() ** (1.0 / norm_type)
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for param in self.parameters():
            if param.grad is not None:
                param.grad.mul_(factor.to(param.grad.dtype))
        return total

    # -- whole parameters -----------------------------------------------------------------------------------------
    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Inside, modules have their whole parameters; what was changed is kept, with `writeback`."""
        found = FullyShardedDataParallel.fsdp_modules(module) if recurse else [module]
        for each in found:
            _check_summon(each, writeback, rank0_only, offload_to_cpu, with_grads)
        units = [each._unit for each in found if each._unit is not None]
        if rank0_only and dist.get_rank() != 0:
            for unit in units:  # the first rank needs their parts
                unit.full()
                if with_grads:
                    unit.full_grad()
            yield
            return
        shown = [_flat_state.put_whole(unit, offload_to_cpu, with_grads) for unit in units]
        try:
            yield
        finally:
            for unit, vectors in zip(units, shown):
                _flat_state.put_back(unit, vectors, writeback)

    # -- state dicts ----------------------------------------------------------------------------------------------
    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """What the state dicts of all such modules in a module hold; what they held."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        config, optim_config = _CONFIGS[state_dict_type]
        given = state_dict_config or config()
        optim_given = optim_state_dict_config or optim_config()
        if type(given) is not config:
            raise RuntimeError(f"Expected state_dict_config of type {config} but got {type(given)}")
        if type(optim_given) is not optim_config:
            raise RuntimeError(f"Expected optim_state_dict_config of type {optim_config} but got {type(optim_given)}")
        before: StateDictSettings = found[0]._settings
        for each in found:
            each._settings = StateDictSettings(state_dict_type, given, optim_given)
        return before

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """What the state dicts hold."""
        found: StateDictSettings = FullyShardedDataParallel.fsdp_modules(module)[0]._settings
        return found

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """Inside, state dicts are of that type."""
        set_type = FullyShardedDataParallel.set_state_dict_type
        before = set_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            set_type(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """By the names inside: whole tensors, or tensors of a mesh."""
        kind, config = self._settings.state_dict_type, self._settings.state_dict_config
        if kind is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("state_dict(): LOCAL_STATE_DICT is not served")
        own = [] if self._unit is None else [f"{prefix}{entry.name}" for entry in self._unit.entries]
        shown = None if self._unit is None else _flat_state.put_whole(self._unit)
        try:
            found = self._fsdp_wrapped_module.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
        finally:
            if self._unit is not None:
                _flat_state.put_back(self._unit, shown, False)
        if self._unit is not None:
            _flat_state.finish(found, own, self._unit, kind, config)
        if kind is StateDictType.FULL_STATE_DICT and getattr(config, "rank0_only", False) and dist.get_rank() != 0:
            for name in own:
                found.pop(name, None)
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Load one by the names inside."""
        if assign:
            raise NotImplementedError("load_state_dict(): argument 'assign' must be False: parameters are parts here")
        whole = {name: _flat_state.whole(value) for name, value in state_dict.items()}
        with self.summon_full_params(self, writeback=True):
            named = (*nn.Module.named_parameters(self, remove_duplicate=False), *nn.Module.named_buffers(self))
            keys = {_clean(key): key for key, _ in named}
            renamed = {keys.get(name, name): value for name, value in whole.items()}
            return super().load_state_dict(renamed, strict=strict)

    # -- states of optimizers -------------------------------------------------------------------------------------
    @staticmethod
    def optim_state_dict(
        model: Any, optim: Any, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """An optimizer's state by the names of parameters, whole or split as the state dict's type says."""
        for name, value in (("optim_state_dict", optim_state_dict), ("group", group)):
            if value is not None:
                raise NotImplementedError(f"optim_state_dict(): argument '{name}' must be None")
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        return _flat_state.optimizer_state(model, optim, settings, FullyShardedDataParallel.fsdp_modules(model))

    @staticmethod
    def full_optim_state_dict(
        model: Any, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """A former form of `optim_state_dict`: whole, on the host, of the first rank."""
        _flat_state.former("full_optim_state_dict", "optim_state_dict", optim_input, group)
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), config)
        return _flat_state.optimizer_state(model, optim, settings, FullyShardedDataParallel.fsdp_modules(model))

    @staticmethod
    def sharded_optim_state_dict(model: Any, optim: Any, group: Any = None) -> dict[str, Any]:
        """A former form of `optim_state_dict`: split."""
        _flat_state.former("sharded_optim_state_dict", "optim_state_dict", None, group)
        config = ShardedOptimStateDictConfig()
        settings = StateDictSettings(StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(), config)
        return _flat_state.optimizer_state(model, optim, settings, FullyShardedDataParallel.fsdp_modules(model))

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: Any, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """A former form of `optim_state_dict_to_load`, of a whole state dict that each rank has."""
        _flat_state.former("shard_full_optim_state_dict", "optim_state_dict_to_load", optim_input, None)
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, full_optim_state_dict)

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: dict[str, Any], model: Any, optim: Any
    ) -> dict[str, Any]:
        """A former form of `optim_state_dict_to_load`, of a split state dict."""
        _flat_state.former("flatten_sharded_optim_state_dict", "optim_state_dict_to_load", None, None)
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, sharded_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None,
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """A former form of `optim_state_dict_to_load`, of a whole state dict that the first rank has."""
        _flat_state.former("scatter_full_optim_state_dict", "optim_state_dict_to_load", optim_input, None)
        told = [full_optim_state_dict]
        broadcast_object_list(told, group=group, group_src=0)
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, told[0] or {})

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
    ) -> dict[str, Any]:
        """The state dict of an optimizer of a plain model by the names of parameters, or by their numbers."""
        _flat_state.former("", "", optim_input, None)
        by_name = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        return _flat_state.renamed(optim_state_dict, by_name, model, optim)

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Let `hook(state, grad)` reduce whole gradients, or `hook(state, grad, output)` those that are split."""
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        for each in self.fsdp_modules(self):
            if each.sharding_strategy in _HYBRID:
                raise AssertionError(
                    f"Communication hook is not supported for hybrid strategies: {each.sharding_strategy}"
                )
            if each._comm_hook is not None:
                raise AssertionError("A communication hook is already registered")
            if not callable(hook):
                raise ValueError(f"The communication hook must be callable but got {hook}")
            each._comm_hook, each._comm_hook_state = hook, state
            if each._unit is not None:
                each._unit.hook, each._unit.hook_state = hook, state

    @staticmethod
    def optim_state_dict_to_load(
        model: Any,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """Such a state as this rank's optimizer loads it."""
        if group is not None:
            raise NotImplementedError("optim_state_dict_to_load(): argument 'group' must be None")
        if is_named_optimizer:
            raise NotImplementedError("optim_state_dict_to_load(): argument 'is_named_optimizer' must be False")
        found = _flat_state.to_load(optim, optim_state_dict, FullyShardedDataParallel.fsdp_modules(model))
        if load_directly:
            optim.load_state_dict(found)
        return found


def _check_summon(module: Any, writeback: bool, rank0_only: bool, offload_to_cpu: bool, with_grads: bool) -> None:
    orig = module._fsdp_use_orig_params
    if with_grads and (offload_to_cpu or not orig):
        raise NotImplementedError(
            f"with_grads={with_grads}, use_orig_params={orig}, offload_to_cpu={offload_to_cpu} is not supported yet"
        )
    if offload_to_cpu and module._unit is not None and not module._unit.sharded:
        raise NotImplementedError("offload_to_cpu=True and NO_SHARD is not supported yet")
    if writeback and rank0_only:
        raise NotImplementedError("writeback=True and rank0_only=True is not supported yet")
    if offload_to_cpu and not rank0_only:
        warnings.warn(
            "offload_to_cpu=True and rank0_only=False may result in theunsharded parameters being redundantly copied "
            "to CPU memory for GPUs sharing the same CPU memory, which risks CPU OOM. We recommend using "
            "offload_to_cpu=True with rank0_only=True.",
            stacklevel=4,
        )


def _owned(module: Any, ignored: set[Any], cls: type) -> list[tuple[str, list[tuple[Any, str]], Any]]:
    """Parameters that no wrapper below has, with their names and the modules that have them."""
    found: dict[int, tuple[str, list[tuple[Any, str]], Any]] = {}

    def visit(owner: Any, prefix: str) -> None:
        if isinstance(owner, cls):
            return
        for name, param in owner._parameters.items():
            if param is not None and param not in ignored:
                found.setdefault(id(param), (prefix + name, [], param))[1].append((owner, name))
        for name, child in owner.named_children():
            visit(child, f"{prefix}{name}.")

    visit(module, "")
    return list(found.values())


def _materialized(module: Any, init: Callable[[Any], None] | None, device: Any) -> None:
    """Modules without data get some; all are moved to the device."""
    for each in module.modules():
        if any(param.is_meta for param in each.parameters(recurse=False)):
            if init is not None:
                init(each)
            else:
                each.to_empty(device="cpu" if device is None else device, recurse=False)
                each.reset_parameters()
    if device is not None:
        module.to(device if isinstance(device, str) or hasattr(device, "type") else f"npu:{device}")


def _synced(module: Any, groups: tuple[Any, Any], ignored: set[Any], cls: type) -> None:
    """All ranks begin with the first one's parameters and buffers; wrappers below have done so with theirs."""
    own = [param for _, _, param in _owned(module, ignored, cls)]
    for group in reversed(groups):  # between machines, then inside of them
        if group is not None:
            for tensor in (*own, *module.buffers()):
                collectives.broadcast(tensor.detach(), group=group, group_src=0)
