"""State dicts of models and optimizers by the names of the parameters, however these are wrapped and split.

Invariant: what is got on n ranks can be set on m: keys are names in the unwrapped model, tensors say how they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...optim import Optimizer
from .. import distributed_c10d as dist
from ._nested_dict import flatten_state_dict

__all__ = [
    "DictValueType",
    "FQNS_T",
    "ListDictValueType",
    "OptimizerStateType",
    "PrimitiveType",
    "StateDictOptions",
    "ValueType",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

FQNS_T = set[str]
PrimitiveType = Any
ValueType = Any
DictValueType = dict[str, Any]
ListDictValueType = list[dict[str, Any]]
OptimizerStateType = dict[str, Any]

# What wrappers put before the names of what they wrap.
_WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")


@dataclass
class StateDictOptions:
    """What a state dict holds."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    found = options or StateDictOptions()
    if found.broadcast_from_rank0 and not found.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return found


def _name(model: Any, key: str) -> str:
    """A key without what wrappers add."""
    from ...nn.parallel import DistributedDataParallel

    kept, current = [], model
    for part in key.split("."):
        wrapper = part in _WRAPPERS or (part == "module" and isinstance(current, DistributedDataParallel))
        if not wrapper:
            kept.append(part)
        current = getattr(current, part, None)
    return ".".join(kept)


def _parameters(model: Any) -> dict[str, Any]:
    """Parameters by their names in the unwrapped model."""
    return {_name(model, key): param for key, param in model.named_parameters(remove_duplicate=False)}


# -- tensors ------------------------------------------------------------------------------------------------------
def _got(value: Any, options: StateDictOptions) -> Any:
    """A tensor as it was asked for."""
    from ... import Tensor
    from ..tensor import DTensor

    if not isinstance(value, Tensor):
        return value
    value = value.detach()
    if isinstance(value, DTensor) and options.full_state_dict:
        value = value.full_tensor()
    return value.cpu() if options.cpu_offload else value


def _mapped(tree: Any, fn: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _mapped(value, fn) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([_mapped(value, fn) for value in tree])
    return fn(tree)


def _given_out(tree: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """What the caller gets: a whole state dict on the host is for one rank."""
    found: dict[str, Any] = _mapped(tree, lambda value: _got(value, options))
    alone = options.full_state_dict and options.cpu_offload and dist.is_initialized()
    return {} if alone and dist.get_rank() != 0 else found


def _taken(value: Any, like: Any, options: StateDictOptions) -> Any:
    """A whole tensor, laid out as another."""
    from ... import Tensor
    from ..tensor import DTensor
    from ..tensor._api import distribute_tensor

    if not isinstance(value, Tensor) or isinstance(value, DTensor) or not isinstance(like, DTensor):
        return value
    whole = value.detach().to(like.device)
    if not options.full_state_dict:
        return whole
    laid = distribute_tensor(whole, like.device_mesh, [_plain(each) for each in like.placements], src_data_rank=None)
    return laid if laid.placements == like.placements else laid.redistribute(placements=like.placements)


def _plain(placement: Any) -> Any:
    from ..tensor.placement_types import Replicate, _StridedShard

    return Replicate() if isinstance(placement, _StridedShard) else placement


def _from_rank0(tree: Any, options: StateDictOptions) -> Any:
    """What rank 0 has, on all."""
    if not options.broadcast_from_rank0 or not dist.is_initialized():
        return tree
    held = [_mapped(tree, lambda value: value.cpu() if hasattr(value, "cpu") else value)]
    dist.broadcast_object_list(held, src=0)
    return held[0]


# -- models -------------------------------------------------------------------------------------------------------
def get_model_state_dict(
    model: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's state dict by the names of the unwrapped model."""
    chosen = _checked(options)
    frozen = {name for name, param in _parameters(model).items() if not param.requires_grad}
    found: dict[str, Any] = {}
    for key, value in model.state_dict().items():
        name = _name(model, key)
        if not (chosen.ignore_frozen_params and name in frozen):
            found[name] = value
    if submodules is not None:
        found = _below(model, found, submodules, chosen)
    return _given_out(found, chosen)


def _below(model: Any, found: dict[str, Any], submodules: set[Any], options: StateDictOptions) -> dict[str, Any]:
    """Of some modules only."""
    out: dict[str, Any] = {}
    for path, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = _name(model, path) + "."
        for name, value in found.items():
            if name.startswith(prefix):
                out[name if options.keep_submodule_prefixes else name[len(prefix) :]] = value
    return out


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load such a state dict."""
    chosen = _checked(options)
    given = _from_rank0(model_state_dict, chosen)
    if any(not isinstance(key, str) for key in given):
        raise NotImplementedError("set_model_state_dict(): a dict by modules is not served; give names of parameters")
    keys = {_name(model, key): key for key in model.state_dict()}
    targets = {name: _value(model, key) for name, key in keys.items()}
    laid = {keys.get(name, name): _taken(value, targets.get(name), chosen) for name, value in given.items()}
    return model.load_state_dict(laid, strict=chosen.strict)


def _value(model: Any, key: str) -> Any:
    path, _, last = key.rpartition(".")
    return getattr(model.get_submodule(path), last, None)


# -- optimizers ---------------------------------------------------------------------------------------------------
def _several(optimizers: Any) -> list[Any]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _with_state(optimizer: Any) -> None:
    """An optimizer that never stepped gets its state by a step that changes nothing."""
    from ... import zeros_like

    if optimizer.state:
        return
    params = [param for group in optimizer.param_groups for param in group["params"] if param.requires_grad]
    if any(param.grad is not None for param in params):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    decays = [group.get("weight_decay") for group in optimizer.param_groups]
    for param in params:
        param.grad = zeros_like(param)
    for group in optimizer.param_groups:
        for key in ("lr", "weight_decay"):
            if key in group:
                group[key] = group[key] * 0
    optimizer.step(closure=None)
    for group, rate, decay in zip(optimizer.param_groups, rates, decays):
        for key, value in (("lr", rate), ("weight_decay", decay)):
            if key in group:
                group[key] = value
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The optimizers' state dict by the names of parameters."""
    chosen = _checked(options)
    if submodules is not None:
        raise NotImplementedError("get_optimizer_state_dict(): argument 'submodules' is not served")
    names = {id(param): name for name, param in _parameters(model).items()}
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _several(optimizers):
        _with_state(optimizer)
        for param, values in optimizer.state.items():
            state[names[id(param)]] = dict(values)
        for group in optimizer.param_groups:
            own = {key: value for key, value in group.items() if key != "params"}
            groups.append({**own, "params": [names[id(param)] for param in group["params"]]})
    found = _given_out({"state": state, "param_groups": groups}, chosen)
    if not found or not chosen.flatten_optimizer_state_dict:
        return found
    flat = flatten_state_dict({"state": found["state"]})[0]
    for group in found["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def _unflattened(flat: dict[str, Any], optimizer: Any, names: dict[int, str]) -> dict[str, Any]:
    """A flat state dict as the nested one, for the parameters of an optimizer."""
    state: dict[str, Any] = {}
    groups = []
    for group in optimizer.param_groups:
        own = [names[id(param)] for param in group["params"]]
        for name in own:
            prefix = f"state.{name}."
            values = {key[len(prefix) :]: value for key, value in flat.items() if key.startswith(prefix)}
            if values:
                state[name] = values
        prefix = f"param_groups.{own[0]}."
        settings = {key[len(prefix) :]: value for key, value in flat.items() if key.startswith(prefix)}
        groups.append({**settings, "params": own})
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Load such a state dict."""
    chosen = _checked(options)
    given = _from_rank0(optim_state_dict, chosen)
    names = {id(param): name for name, param in _parameters(model).items()}
    for optimizer in _several(optimizers):
        _with_state(optimizer)
        nested = given if "state" in given else _unflattened(given, optimizer, names)
        saved = {name: group for group in nested["param_groups"] for name in group["params"]}
        groups, state, count = [], {}, 0
        for group in optimizer.param_groups:
            places = []
            for param in group["params"]:
                name = names[id(param)]
                if name in nested["state"]:
                    old = optimizer.state.get(param, {})
                    state[count] = {
                        key: _taken(value, old.get(key), chosen) for key, value in nested["state"][name].items()
                    }
                places.append(count)
                count += 1
            source = saved.get(names[id(group["params"][0])], group) if group["params"] else group
            groups.append({**{key: value for key, value in source.items() if key != "params"}, "params": places})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


# -- both ---------------------------------------------------------------------------------------------------------
def get_state_dict(
    model: Any, optimizers: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state dicts of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load both."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
