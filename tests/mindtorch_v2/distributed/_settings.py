"""Settings of both kinds of FSDP, one by one."""

from __future__ import annotations

import importlib
import warnings
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
    elif how == "nodes":
        settings["sharding_strategy"] = strategies.HYBRID_SHARD
    elif how == "hook, whole":
        settings["sharding_strategy"] = strategies.NO_SHARD
    elif how == "hints":
        settings |= {"forward_prefetch": True, "limit_all_gathers": False, "backward_prefetch": None}
    policy = importlib.import_module(f"{torch.__name__}.distributed.fsdp.wrap").ModuleWrapPolicy
    blocks = policy({type(model.blocks[0])})
    before = optimizer_of(torch, model) if how == "optimizer before" else None
    around = F.FullyShardedDataParallel(model, auto_wrap_policy=blocks, **settings)
    if how.startswith("hook"):
        hooks = importlib.import_module(f"{torch.__name__}.distributed.algorithms._comm_hooks").default
        state = hooks.LowPrecisionState(dist.group.WORLD)
        name = {"hook": "reduce_scatter_hook", "hook, whole": "allreduce_hook"}.get(how, "bf16_compress_hook")
        around.register_comm_hook(state, getattr(hooks, name))
        assert (around._comm_hook, around.blocks[0]._comm_hook_state) == (getattr(hooks, name), state)
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
    device = _sharded.own_device(torch)

    def old(**settings: Any) -> Any:
        return lambda: F.FullyShardedDataParallel(torch.nn.Linear(4, 4), device_id=device, **settings)

    def new(**settings: Any) -> Any:
        return lambda: F.fully_shard(torch.nn.Linear(4, 4), **settings)

    calls = {
        "assign": lambda: old()().load_state_dict({}, assign=True),
        "set_symm_mem_for_comm": lambda: new()().set_symm_mem_for_comm(),
        "set_allocate_memory": lambda: new()().set_allocate_memory_from_process_group_for_comm(True),
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
    model = _sharded.gpt(torch)
    shared: dict[str, Any] = {}
    if how == "frozen":
        model.norm.requires_grad_(False)
        shared["ignored_params"] = set(model.norm.parameters())
    if how == "named dimensions":
        mesh = _mesh(torch, (1, size), ("others", "data"))
        shared |= {"mesh": mesh, "dp_mesh_dims": F.DataParallelMeshDims(shard="data", replicate="others")}
    if how == "several names":
        mesh = _mesh(torch, (2, size // 2, 1), ("a", "b", "c"))
        shared |= {"mesh": mesh, "dp_mesh_dims": F.DataParallelMeshDims(shard=("a", "b"), replicate="c")}
    if how == "fewer ranks":
        shared["reshard_after_forward"] = 2
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


def in_other_ways(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """The GPT with `fully_shard` and collectives of its own, or steps inside backward: losses, and what was asked."""
    F = _fsdp(torch)
    model = _sharded.gpt(torch)
    asked: list[Any] = []
    for module in (*model.blocks, model):
        F.fully_shard(module)
    modules, optimizers = (*model.blocks, model), []
    if how == "own collectives":
        gather, reduce = _own_collectives(torch, dist, asked)
        for module in modules:
            module.set_custom_all_gather(gather)
            module.set_custom_reduce_scatter(reduce)
    elif how == "another group":
        model.set_separate_reduce_scatter_group()
        model.set_reduce_scatter_max_input_buffers(3)
        model.set_reduce_scatter_unused_params(True)
    elif how == "sums":
        for module in modules:
            module.set_force_sum_reduction_for_comms(True)
            module.set_all_reduce_hook(lambda total: asked.append(float(total.abs().sum())))
    elif how == "inside backward":
        for param in model.parameters():
            own = torch.optim.AdamW([param], lr=0.02)
            param.register_post_accumulate_grad_hook(lambda _, own=own: (own.step(), own.zero_grad()))
            optimizers.append(own)
    optimizer = torch.optim.SGD([torch.zeros(1)]) if optimizers else optimizer_of(torch, model)
    return losses(torch, dist, model, optimizer, rank, size), len(asked)


def _own_collectives(torch: Any, dist: Any, asked: list[Any]) -> tuple[Any, Any]:
    class Memory:
        def allocate(self, size: Any, *, dtype: Any, device: Any) -> Any:
            return torch.empty(*size, dtype=dtype, device=device)

    class Gather(Memory):
        def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, async_op: bool = False) -> Any:
            asked.append("gather")
            return dist.all_gather_single(output_tensor, input_tensor, group=group, async_op=async_op)

    class Reduce(Memory):
        def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, op: Any, async_op: bool = False) -> Any:
            asked.append("reduce")
            assert op == dist.ReduceOp.AVG
            return dist.reduce_scatter_single(output_tensor, input_tensor, group=group, op=op, async_op=async_op)

    return Gather(), Reduce()


def partial(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Gradients of two backwards, the first of which is not added over the replicas."""
    F = _fsdp(torch)
    layer = torch.nn.Linear(4, 4, bias=False)
    with torch.no_grad():
        layer.weight.fill_(0.5)
    F.fully_shard(layer, mesh=_mesh(torch, (size, 1), ("replicas", "parts")))
    layer.set_requires_all_reduce(False)
    layer(torch.full((2, 4), 1.0 + rank)).sum().backward()
    before = layer.weight.grad is None
    layer.set_requires_all_reduce(True)
    layer(torch.full((2, 4), 1.0 + rank)).sum().backward()
    return before, layer.weight.grad.full_tensor().tolist()


def gradients_shown(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Whole gradients beside whole parameters, changed and kept; whole parameters on the host."""
    F = _fsdp(torch)
    made = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 2))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.fill_(0.25)
    model = F.FullyShardedDataParallel(made, use_orig_params=True, device_id=_sharded.own_device(torch))
    model(torch.ones(2, 3)).sum().backward()
    summon = F.FullyShardedDataParallel.summon_full_params
    with summon(model, with_grads=True):
        first = [each.grad.tolist() for each in model.parameters()]
        for each in model.parameters():
            each.grad.mul_(2)
    with summon(model, with_grads=True, writeback=False):
        second = [each.grad.tolist() for each in model.parameters()]
    with summon(model, writeback=False, offload_to_cpu=True):
        third = [tuple(each.shape) for each in model.parameters()]
    return first, second, third


def full_precision_below(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """The dtypes that a normalization is given and gives where everything else computes with bfloat16."""
    F = _fsdp(torch)
    wrap = importlib.import_module(f"{torch.__name__}.distributed.fsdp.wrap")
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 2))
    told: list[str] = []
    made[1].register_forward_hook(lambda module, args, out: told.append(str(module.weight.dtype)))
    made[2].register_forward_hook(lambda module, args, out: told.extend((str(args[0].dtype), str(out.dtype))))
    precision = F.MixedPrecision(param_dtype=torch.bfloat16)
    policy = wrap.ModuleWrapPolicy({torch.nn.Linear})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        settings = {"auto_wrap_policy": policy, "device_id": _sharded.own_device(torch)}
        model = F.FullyShardedDataParallel(made, mixed_precision=precision, **settings)
    model(torch.ones(3, 4)).sum().backward()
    warned = [str(each.message) for each in seen if "mixed precision" in str(each.message)]
    return told, type(model.module[1]).__name__, len(warned)


def low_gradients(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """The dtypes of parameters and gradients after one and two backwards."""
    F = _fsdp(torch)
    precision = F.MixedPrecision(param_dtype=torch.bfloat16, keep_low_precision_grads=True)
    told = []
    for orig in (False, True):
        made = torch.nn.Linear(4, 4)
        settings = {"use_orig_params": orig, "device_id": _sharded.own_device(torch)}
        model = F.FullyShardedDataParallel(made, mixed_precision=precision, **settings)
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            told += [(str(each.dtype), str(getattr(each.grad, "dtype", None))) for each in model.parameters()]
        grads = [each.grad for each in model.parameters() if each.grad is not None]
        told += [sorted({str(float(value)) for value in grad.flatten()}) for grad in grads]
    return told


def wrong(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """What wrong settings raise."""
    F = _fsdp(torch)
    strategies, around = F.ShardingStrategy, F.FullyShardedDataParallel
    world, mesh = dist.group.WORLD, _mesh(torch, (size,))
    hybrid = {"sharding_strategy": strategies.HYBRID_SHARD}

    def old(**settings: Any) -> Any:
        return around(torch.nn.Linear(4, 4), device_id=_sharded.own_device(torch), **settings)

    def new(**settings: Any) -> Any:
        return F.fully_shard(torch.nn.Linear(4, 4), **settings)

    def hooked(*hooks: Any, **settings: Any) -> None:
        model = old(**settings)
        for hook in hooks:
            model.register_comm_hook(None, hook)

    def shown(model: Any, **settings: Any) -> None:
        with around.summon_full_params(model, **settings):
            pass

    calls = [
        lambda: old(**hybrid),
        lambda: old(**hybrid, process_group=world),
        lambda: old(**hybrid, device_mesh=mesh),
        lambda: old(process_group=world, device_mesh=mesh),
        lambda: hooked(None),
        lambda: hooked(print, print),
        lambda: shown(old(), rank0_only=True),
        lambda: shown(old(), with_grads=True),
        lambda: shown(old(use_orig_params=True), with_grads=True, offload_to_cpu=True),
        lambda: shown(
            old(sharding_strategy=strategies.NO_SHARD), offload_to_cpu=True, rank0_only=True, writeback=False
        ),
        lambda: F.fully_shard(torch.nn.ModuleList([torch.nn.Linear(2, 2)])),
        lambda: new(mesh=_mesh(torch, (1, 1, size))),
        lambda: new(reshard_after_forward=3),
        lambda: new(reshard_after_forward="all"),
        lambda: new(mesh=mesh, dp_mesh_dims=F.DataParallelMeshDims(shard="a")),
        lambda: new(mesh=_mesh(torch, (size,), ("b",)), dp_mesh_dims=F.DataParallelMeshDims(shard="a")),
        lambda: F.DataParallelMeshDims(),
        lambda: new().set_reduce_scatter_max_input_buffers(0),
        lambda: new().set_reduce_scatter_max_input_buffers(True),
        lambda: new().set_modules_to_forward_prefetch([torch.nn.Linear(2, 2)]),
        lambda: new().set_reshard_after_forward(2),
        lambda: F.share_comm_ctx([torch.nn.Linear(2, 2)]),
    ]
    told = []
    for call in calls:
        try:
            call()
            told.append(("nothing", ""))
        except Exception as error:
            told.append((type(error).__name__, str(error).replace("mindtorch_v2.", "torch.")))
    return told
