"""State dicts of modules and optimizers whose parameters are parts of one vector."""

from __future__ import annotations

import warnings
from typing import Any

from ... import nn
from .. import _collectives as collectives
from .. import distributed_c10d as dist
from .._objects import all_gather_object
from ..device_mesh import DeviceMesh
from ._flat import FlatUnit
from .api import StateDictType


def former(name: str, new: str, optim_input: Any, group: Any) -> None:
    """Of a former function: what it no longer takes, and what to call instead."""
    for argument, value in (("optim_input", optim_input), ("group", group)):
        if value is not None:
            raise NotImplementedError(f"{name}(): argument '{argument}' must be None; give the optimizer itself")
    if name:
        warnings.warn(
            f"``FullyShardedDataParallel.{name}``is being deprecated and is replaced by "
            f"``FullyShardedDataParallel.{new}``. ``FullyShardedDataParallel.{name}`` may be removed after "
            "PyTorch 2.2.",
            FutureWarning,
            stacklevel=3,
        )


def renamed(given: dict[str, Any], by_name: bool, model: Any, optim: Any) -> dict[str, Any]:
    """A state dict whose parameters are numbers by names, or the other way."""
    kinds = {type(key) for key in given["state"]}
    if kinds - {str, int} or len(kinds) > 1:
        raise ValueError(f"Invalid parameter keys: {given['state'].keys()}")
    if kinds == ({str} if by_name else {int}):
        return given
    names = {param: name.replace("_fsdp_wrapped_module.", "") for name, param in model.named_parameters()}
    order = model.parameters() if optim is None else [each for group in optim.param_groups for each in group["params"]]
    listed = [names[param] for param in order]
    table: dict[Any, Any] = dict(enumerate(listed)) if by_name else {name: at for at, name in enumerate(listed)}
    groups = []
    for group in given["param_groups"]:
        params = sorted(table[key] for key in group["params"])
        groups.append({**{key: value for key, value in group.items() if key != "params"}, "params": params})
    return {"state": {table[key]: value for key, value in given["state"].items()}, "param_groups": groups}


def put_whole(unit: FlatUnit, on_host: bool = False, with_grads: bool = False) -> tuple[Any, Any]:
    """Give modules their whole parameters, as copies, and gradients; the vectors that they are in."""
    vector = unit.full()
    vector = vector.cpu() if on_host else vector
    grads = unit.full_grad() if with_grads else None
    if unit.home is not None:
        del unit.home._parameters["_flat_param"]
    slopes = [None] * len(unit.entries) if grads is None else unit.views(grads)
    for view, entry, slope in zip(unit.views(vector), unit.entries, slopes):
        shown = nn.Parameter(view, entry.requires_grad)
        shown.grad = slope if entry.requires_grad else None
        for owner, name in entry.owners:
            owner.__dict__.pop(name, None)
            owner._parameters[name] = shown
    return vector, grads


def put_back(unit: FlatUnit, shown: Any, keep: bool) -> None:
    """Take them away again; what was changed stays, with `keep`."""
    if keep:
        vector, grads = shown
        unit.take(vector)
        if grads is not None:
            unit.take_grads(grads)
    for entry in unit.entries:
        for owner, name in entry.owners:
            if unit.keep:
                owner._parameters[name] = entry.part
            else:
                del owner._parameters[name]
    if unit.home is not None:
        unit.home._parameters["_flat_param"] = unit.flat
    if unit.is_whole:
        unit.release()


def _laid_out(value: Any, unit: FlatUnit) -> Any:
    """A whole tensor as one of the mesh of a unit's ranks, split along its first dimension."""
    from ..tensor import Shard, distribute_tensor

    mesh = DeviceMesh.from_group(unit.group, value.device.type)
    return distribute_tensor(value, mesh, [Shard(0)], src_data_rank=None) if value.dim() else value


def finish(found: dict[str, Any], names: list[str], unit: FlatUnit, kind: StateDictType, config: Any) -> None:
    """Bring a unit's values in a state dict to the form that was asked for."""
    for name in names:
        value = found[name].detach().clone()
        if kind is StateDictType.SHARDED_STATE_DICT:
            value = _laid_out(value, unit)
        found[name] = value.cpu() if config.offload_to_cpu else value


# -- states of optimizers -----------------------------------------------------------------------------------------
def _prefix(model: Any, module: Any) -> str:
    for name, each in model.named_modules():
        if each is module:
            cleaned = f"{name}.".replace("_fsdp_wrapped_module.", "")
            return "" if name == "" or cleaned == "." else cleaned
    raise ValueError("the module is not in the model")


def _local_vector(unit: FlatUnit, optim: Any, key: str) -> Any:
    """This rank's part of a state of a unit's parameters."""
    if not unit.keep:
        return optim.state[unit.flat][key]
    out = unit.flat.detach().new_zeros(unit.length)
    for entry in unit.entries:
        start, end = unit.inside(entry)
        state = optim.state.get(entry.part, {})
        if key in state and end > start:
            out[start:end] = state[key]
    return out


def _states(unit: FlatUnit, optim: Any) -> tuple[dict[str, Any], list[str]]:
    """Numbers that belong to all of a unit's parameters, and the names of the states that are as long as they are."""
    single: dict[str, Any] = {}
    keys: set[str] = set()
    for param in unit.parameters():
        if not param.numel():  # it has no gradient, and its steps are not counted
            continue
        for key, value in optim.state.get(param, {}).items():
            if hasattr(value, "dim") and value.dim() and value.shape == param.shape:
                keys.add(key)
            else:
                single[key] = value
    told: list[Any] = [None] * dist.get_world_size(unit.group)
    all_gather_object(told, (single, sorted(keys)), group=unit.group)
    for other, more in told:
        single = {**other, **single}
        keys |= set(more)
    return single, sorted(keys)


def optimizer_state(model: Any, optim: Any, settings: Any, modules: list[Any]) -> dict[str, Any]:
    """An optimizer's state by the names of parameters."""
    config = settings.optim_state_dict_config
    state: dict[str, Any] = {}
    names: dict[int, list[str]] = {}
    for module in modules:
        unit = module._unit
        if unit is None:
            continue
        prefix = _prefix(model, module)
        own = [prefix + entry.name for entry in unit.entries]
        names.update({id(param): own for param in unit.parameters()} if not unit.keep else
                     {id(entry.part): [name] for entry, name in zip(unit.entries, own)})  # fmt: skip
        single, keys = _states(unit, optim)
        if not single and not keys:
            continue
        parts: list[dict[str, Any]] = [_copied(single) for _ in own]
        for key in keys:
            local = _local_vector(unit, optim, key).contiguous()
            vector = local.new_empty(unit.length * unit.size)
            if unit.sharded:
                collectives.all_gather_single(vector, local, unit.group)
            else:
                vector = local
            for part, view in zip(parts, unit.views(vector)):
                value = view.clone()
                if settings.state_dict_type is StateDictType.SHARDED_STATE_DICT:
                    value = _laid_out(value, unit)
                part[key] = value.cpu() if config.offload_to_cpu else value
        state.update(dict(zip(own, parts)))
    groups = []
    for group in optim.param_groups:
        listed = [name for param in group["params"] for name in names.get(id(param), ())]
        groups.append({**{key: value for key, value in group.items() if key != "params"}, "params": listed})
    if getattr(config, "rank0_only", False) and dist.get_rank() != 0:
        return {}
    return {"state": state, "param_groups": groups}


def _copied(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a parameter's own: optimizers count in place."""
    return {key: value.clone() if hasattr(value, "clone") else value for key, value in values.items()}


def whole(value: Any) -> Any:
    """A value of a state dict as one tensor; parts that were moved to the host are gathered on their ranks' devices."""
    if not hasattr(value, "full_tensor"):
        return value
    device = value.device_mesh.device_type
    return (value if value.to_local().device.type == device else value.to(device)).full_tensor()


def to_load(optim: Any, given: dict[str, Any], modules: list[Any]) -> dict[str, Any]:
    """A state by names, as this rank's optimizer loads it."""
    from ... import cat

    model = modules[0]
    state: dict[int, Any] = {}
    order = [param for group in optim.param_groups for param in group["params"]]
    numbers = {id(param): at for at, param in enumerate(order)}
    for module in modules:
        unit = module._unit
        if unit is None:
            continue
        prefix = _prefix(model, module)
        saved = [given["state"].get(prefix + entry.name) for entry in unit.entries]
        known = next((each for each in saved if each), None)
        if known is None:
            continue
        vectors: dict[str, Any] = {}
        single: dict[str, Any] = {}
        for key, value in known.items():
            if not (hasattr(value, "dim") and value.dim()):
                single[key] = value
                continue
            parts = [whole(each[key]).reshape(-1) for each in saved if each]
            vector = nn.functional.pad(cat(parts), (0, unit.length * unit.size - unit.numel))
            vectors[key] = vector[unit.rank * unit.length : (unit.rank + 1) * unit.length].to(unit.flat.device)
        if not unit.keep:
            state[numbers[id(unit.flat)]] = {
                **_copied(single),
                **{key: vector.clone() for key, vector in vectors.items()},
            }
            continue
        for entry in unit.entries:
            start, end = unit.inside(entry)
            own = {key: vector[start:end].clone() for key, vector in vectors.items()}
            state[numbers[id(entry.part)]] = {**_copied(single), **own}
    groups = []
    for now, before in zip(optim.param_groups, given["param_groups"]):
        settings = {key: value for key, value in before.items() if key != "params"}
        groups.append({**settings, "params": [numbers[id(param)] for param in now["params"]]})
    return {"state": state, "param_groups": groups}
