"""What is applied to modules that exist, loss scaling over ranks, and helpers of programs."""

from __future__ import annotations

import importlib
import tempfile
import warnings
from typing import Any

from . import _sharded


def _home(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _caught(calls: list[Any]) -> list[tuple[str, str]]:
    told = []
    for call in calls:
        try:
            told.append(("nothing", str(call())))
        except Exception as error:
            told.append((type(error).__name__, str(error).replace("mindtorch_v2.", "torch.")))
    return told


def replicas(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """A module whose gradients are reduced by `replicate`: gradients, names, what is refused."""
    replicate = _home(torch, "_composable.replicate").replicate
    nn = torch.nn

    def made() -> Any:
        network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
        with torch.no_grad():
            for each in network.parameters():
                each.copy_(torch.linspace(-1.0, 1.0, each.numel()).view(each.shape))
        return network

    network = replicate(made())
    told: list[Any] = []
    for step in range(3):
        network.set_requires_gradient_sync(step != 1)
        network(torch.full((2, 3), 1.0 + rank)).sum().backward()
        told.append([each.grad.flatten().tolist() for each in network.parameters()])
    part = made()
    replicate(part, ignored_modules=[part[1]])
    part(torch.full((2, 3), 1.0 + rank)).sum().backward()
    told.append([each.grad.flatten().tolist() for each in part.parameters()])
    told.append((type(network).__name__, [name for name, _ in network.named_parameters()]))
    told.append(replicate.state(part)._param_names)
    copy = importlib.import_module("copy")
    wrong = [
        lambda: replicate(network),
        lambda: replicate(made(), device_id="cpu"),
        lambda: copy.deepcopy(network),
        lambda: _home(torch, "_composable").checkpoint(made(), use_reentrant=True),
        lambda: _home(torch, "_composable").checkpoint(made(), depth=1),
    ]
    return [*told, *_caught(wrong)]


def again(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Activations that are computed again: how often a layer ran, and the gradient."""
    checkpoint = _home(torch, "_composable").checkpoint
    ran: list[int] = []

    class Layer(torch.nn.Linear):
        def forward(self, value: Any) -> Any:
            ran.append(1)
            return super().forward(value).sin()

    layer = Layer(2, 2)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.25)
    checkpoint(layer)
    layer(torch.ones(1, 2)).sum().backward()
    return len(ran), layer.weight.grad.tolist(), type(layer).__name__


def contracts(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Functions of modules that keep a state, and what they may not do."""
    home = _home(torch, "_composable.contract")
    nn = torch.nn

    @home.contract()
    def marked(module: Any) -> Any:
        marked.state(module).seen = True
        return module

    @home.contract()
    def grown(module: Any) -> Any:
        module.more = nn.Linear(1, 1, bias=False)
        return module

    @home.contract()
    def turned(module: Any) -> Any:
        module._modules = dict(reversed(module._modules.items()))
        return module

    layers = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    marked(layers[0])
    told = [marked.state(layers[0]).seen, marked.state(layers[1]), list(home._get_registry(layers[0]))]
    told.append(home._get_registry(layers[1]))
    return [*told, *_caught([lambda: marked(layers[0]), lambda: grown(layers), lambda: turned(layers)])]


def layers_below_replicas(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """DDP around layers that are split along another dimension of the mesh: losses."""
    P = _home(torch, "tensor.parallel")
    model = _sharded.gpt(torch)
    mesh = _home(torch, "device_mesh").init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "model"))
    for block in model.blocks:
        plan = {name: P.ColwiseParallel() for name in ("wq", "wk", "wv", "up")}
        P.parallelize_module(block, mesh["model"], plan | {name: P.RowwiseParallel() for name in ("wo", "down")})
    around = torch.nn.parallel.DistributedDataParallel(model, device_mesh=mesh["data"])
    optimizer = torch.optim.AdamW(around.parameters(), lr=0.02)
    losses = []
    for step in range(3):
        loss = _sharded.loss_of(torch, around, *_sharded.batch(torch, step, rank // 2, size // 2))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(_sharded.mean(torch, dist, loss, size))
    return losses


def scaled(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Steps with loss scaling, in one of which a single rank's gradient is not finite: all skip it."""
    scaler = _home(torch, "fsdp.sharded_grad_scaler").ShardedGradScaler("cpu", init_scale=8.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    told: list[Any] = []
    for step in range(5):
        optimizer.zero_grad()
        factor = float("inf") if step == 2 and rank == 1 else 1.0
        loss = scaler.scale((weight * factor).sum())
        loss.backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        told.append((weight.tolist(), scaler.get_scale()))
    half = scaler.scale(torch.ones(2, dtype=torch.bfloat16))
    pair = scaler.scale([torch.ones(1), torch.ones(1, dtype=torch.float16)])
    told.append((str(half.dtype), half.tolist(), [(str(each.dtype), each.tolist()) for each in pair]))
    none = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    scaler.unscale_(none)
    return [*told, *_caught([lambda: scaler.unscale_(none)])]


def gathered(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Objects of all ranks, and what one of them raises."""
    home = _home(torch, "collective_utils")
    world = dist.group.WORLD

    def fails() -> Any:
        if rank == 0:
            raise ValueError("no")
        return rank

    told: list[Any] = [home.broadcast(f"of {rank}", pg=world), home.broadcast(lambda: 7, rank=1, pg=world)]
    told.append(home.all_gather(lambda: rank * 2, pg=world))
    told.append(home.all_gather("alone"))
    return [
        *told,
        *_caught(
            [
                lambda: home.broadcast(fails, pg=world, stage_name="first"),
                lambda: home.all_gather_object_enforce_type(world, [None] * size, rank if rank else "zero"),
            ]
        ),
    ]


def staged(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Copies of a state dict that stay when it changes, and saving with a stager."""
    C, S = _home(torch, "checkpoint"), _home(torch, "checkpoint.staging")
    told: list[Any] = []
    options = S.StagingOptions(False, False, True, False)
    # PyTorch's cache is pinned memory, which needs an accelerator.
    cached = [S.BlockingAsyncStager(True)] if torch.__name__ != "torch" else []
    for stager in (S.DefaultStager(options), S.BlockingAsyncStager(), *cached):
        weights = {"a": torch.ones(2), "deep": {"b": [torch.zeros(1), "text", 3]}}
        for value in (2.0, 3.0):
            found = stager.stage(weights)
            found = found.result() if hasattr(found, "result") else found
            weights["a"].fill_(value)
            told.append((found["a"].tolist(), str(found["deep"])))
        stager.close()
    assert told[-2:] == told[:2] and told[0][0] == [1.0, 1.0], told
    told = told[:4]
    told.extend(_caught([lambda: S.DefaultStager()]))
    name: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(name)
    weights = {"a": torch.full((2,), 5.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = C.async_save(weights, checkpoint_id=name[0], async_stager=S.DefaultStager(options))
        answer.staging_completion.result()
        weights["a"].zero_()
        answer.upload_completion.result()
        C.load(weights, checkpoint_id=name[0])
    return [*told, weights["a"].tolist(), type(answer).__name__]
