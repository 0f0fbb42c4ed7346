"""Settings of both kinds of FSDP, one by one."""

from __future__ import annotations

import importlib
from typing import Any

from . import _sharded


def _fsdp(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.fsdp")


def _mesh(torch: Any, shape: tuple[int, ...], names: tuple[str, ...] | None = None) -> Any:
    home = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
    return home.init_device_mesh(_sharded.kind(torch), shape, mesh_dim_names=names)


def _without_data(torch: Any, model: Any) -> dict[str, Any]:
    """The parameters go to `meta`; the setting puts them back."""
    values = {name: value.detach().clone() for name, value in model.named_parameters()}
    names = {id(module): name for name, module in model.named_modules()}
    model.to("meta")

    def init(module: Any) -> None:
        for name in list(module._parameters):
            if module._parameters[name] is not None and module._parameters[name].is_meta:
                value = values[f"{names[id(module)]}.{name}".lstrip(".")]
                module._parameters[name] = torch.nn.Parameter(value)

    return {"param_init_fn": init}


def wrapped(torch: Any, dist: Any, how: str, size: int) -> tuple[Any, Any]:
    """The GPT in `FullyShardedDataParallel` with one setting, and its optimizer."""
    F = _fsdp(torch)
    model, strategies = _sharded.gpt(torch), F.ShardingStrategy
    settings: dict[str, Any] = {"use_orig_params": True, "device_id": _sharded.own_device(torch)}
    if how.startswith("hybrid"):
        zero2 = how == "hybrid, kept"
        settings["sharding_strategy"] = strategies._HYBRID_SHARD_ZERO2 if zero2 else strategies.HYBRID_SHARD
        mesh = _mesh(torch, (2, size // 2), ("replicas", "parts"))
        if how == "hybrid, pair":
            settings["process_group"] = (mesh.get_group("parts"), mesh.get_group("replicas"))
        else:
            settings["device_mesh"] = mesh
    elif how == "synced":
        settings["sync_module_states"] = True
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + dist.get_rank())
    elif how == "meta":
        settings |= _without_data(torch, model)
    elif how == "frozen":
        model.norm.requires_grad_(False)
        settings["ignored_modules"] = [model.norm]
    elif how == "hints":
        settings |= {"forward_prefetch": True, "limit_all_gathers": False, "backward_prefetch": None}
    policy = importlib.import_module(f"{torch.__name__}.distributed.fsdp.wrap").ModuleWrapPolicy
    blocks = policy({type(model.blocks[0])})
    before = optimizer_of(torch, model) if how == "optimizer before" else None
    around = F.FullyShardedDataParallel(model, auto_wrap_policy=blocks, **settings)
    return around, before or optimizer_of(torch, around)


def optimizer_of(torch: Any, model: Any) -> Any:
    return torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=0.02)


def losses(torch: Any, dist: Any, model: Any, optimizer: Any, rank: int, size: int, again: bool = False) -> list[float]:
    """Of three steps; `again`: units are told to give back what they have kept."""
    found = []
    for step in range(3):
        loss = _sharded.loss_of(torch, model, *_sharded.batch(torch, step, rank, size))
        loss.backward()
        for module in (model, *model.blocks) if again else ():
            module.reshard()
        optimizer.step()
        optimizer.zero_grad()
        found.append(_sharded.mean(torch, dist, loss, size))
    return found


def around(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    return losses(torch, dist, *wrapped(torch, dist, how, size), rank, size)


def frozen_alone(torch: Any) -> list[float]:
    """One process whose last normalization is not trained."""
    model = _sharded.gpt(torch)
    model.norm.requires_grad_(False)
    optimizer = optimizer_of(torch, model)
    found = []
    for step in range(3):
        loss = _sharded.loss_of(torch, model, *_sharded.batch(torch, step, None, 1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(float(loss))
    return found


def shown(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Whole parameters on the first rank only; buffers of another dtype; whether anything was changed."""
    F = _fsdp(torch)
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6))
    precision = F.MixedPrecision(buffer_dtype=torch.float16)
    model = F.FullyShardedDataParallel(made, mixed_precision=precision, use_orig_params=True)
    with F.FullyShardedDataParallel.summon_full_params(model, writeback=False, rank0_only=True):
        inside = [tuple(each.shape) for each in model.module.parameters()]
    kinds = {str(each.dtype) for each in model.buffers() if each.is_floating_point()}
    return inside, sorted(kinds)


def refused(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """What each setting that is not served says."""
    F = _fsdp(torch)
    device, strategies = _sharded.own_device(torch), F.ShardingStrategy

    def old(**settings: Any) -> Any:
        return lambda: F.FullyShardedDataParallel(torch.nn.Linear(4, 4), device_id=device, **settings)

    def new(**settings: Any) -> Any:
        return lambda: F.fully_shard(torch.nn.Linear(4, 4), **settings)

    whole = F.FullyShardedDataParallel.summon_full_params
    calls = {
        "HYBRID_SHARD": old(sharding_strategy=strategies.HYBRID_SHARD),
        "keep_low_precision_grads": old(mixed_precision=F.MixedPrecision(keep_low_precision_grads=True)),
        "_module_classes_to_ignore": old(
            mixed_precision=F.MixedPrecision(_module_classes_to_ignore=(torch.nn.Linear,))
        ),
        "reshard_after_forward": new(reshard_after_forward=2),
        "offload_to_cpu": lambda: whole(old()(), offload_to_cpu=True).__enter__(),
        "with_grads": lambda: whole(old()(), with_grads=True).__enter__(),
        "assign": lambda: old()().load_state_dict({}, assign=True),
        "register_comm_hook": lambda: old()().register_comm_hook(None, None),
        "set_custom_all_gather": lambda: new()().set_custom_all_gather(None),
        "set_custom_reduce_scatter": lambda: new()().set_custom_reduce_scatter(None),
        "set_post_optim_event": lambda: new()().set_post_optim_event(None),
        "stream": lambda: new()().set_all_reduce_hook(print, stream=1),
    }
    told = {}
    for name, call in calls.items():
        try:
            told[name] = f"nothing: {call()}"
        except NotImplementedError as error:
            told[name] = str(error)
    return told


def fully(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """The GPT with `fully_shard` and one setting: losses."""
    F = _fsdp(torch)
    model, shared = _sharded.gpt(torch), {}
    if how == "frozen":
        model.norm.requires_grad_(False)
        shared["ignored_params"] = set(model.norm.parameters())
    if how == "named dimensions":
        mesh = _mesh(torch, (1, size), ("others", "data"))
        shared |= {"mesh": mesh, "dp_mesh_dims": F.DataParallelMeshDims(shard="data", replicate="others")}
    for block in model.blocks:
        F.fully_shard(block, **shared)
    F.fully_shard(model, **shared)
    if how == "kept":
        model.set_reshard_after_forward(False)
        model.set_reshard_after_backward(False)
        return losses(torch, dist, model, optimizer_of(torch, model), rank, size, again=True)
    if how == "hook":
        # What the hook does to sums stays: twice of them, by twice as many.
        for module in (model, *model.blocks):
            module.set_all_reduce_hook(lambda total: total.mul_(2))
            module.set_gradient_divide_factor(2.0 * size)
    return losses(torch, dist, model, optimizer_of(torch, model), rank, size)
