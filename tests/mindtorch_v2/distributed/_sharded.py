"""What ranks do with models whose parameters are split over them."""

from __future__ import annotations

import importlib
from typing import Any


def kind(torch: Any) -> str:
    """What kind of devices the ranks have."""
    return str(torch.get_default_device().type)


def own_device(torch: Any) -> Any:
    """This rank's device."""
    return torch.get_default_device()


def gpt(torch: Any) -> Any:
    """A small GPT, the same in both libraries and on all ranks."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.wq, self.wk, self.wv = (nn.Linear(16, 16, bias=False) for _ in range(3))
            self.wo = nn.Linear(16, 16)
            self.up, self.down = nn.Linear(16, 36), nn.Linear(36, 16)

        def forward(self, x: Any) -> Any:
            y = self.ln1(x)
            q, k, v = (w(y).view(y.shape[0], y.shape[1], -1, 4).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
            x = x + self.wo(y.reshape(x.shape[0], x.shape[1], -1))
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(13, 16), nn.Embedding(6, 16)
            self.blocks = nn.ModuleList([Block() for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 13, bias=False)

        def forward(self, words: Any) -> Any:
            x = self.words(words) + self.places(torch.arange(words.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = GPT()
    with torch.no_grad():
        for at, parameter in enumerate(model.parameters()):
            wave = (torch.arange(parameter.numel(), dtype=torch.float64) * 1.3 + at).sin().reshape(parameter.shape)
            parameter.copy_(wave * 0.3 + (1.0 if parameter.dim() == 1 else 0.0))
    return model


def batch(torch: Any, step: int, rank: int | None, size: int) -> tuple[Any, Any]:
    """The rows of a step; those of a rank, or all."""
    rows = (torch.arange(4 * 6).reshape(4, 6) * 5 + step * 3) % 13
    targets = (rows * 2 + 1) % 13
    if rank is None:
        return rows, targets
    part = slice(rank * (4 // size), (rank + 1) * (4 // size))
    return rows[part], targets[part]


def loss_of(torch: Any, model: Any, words: Any, targets: Any) -> Any:
    return torch.nn.functional.cross_entropy(model(words).reshape(-1, 13).float(), targets.reshape(-1))


def whole(t: Any) -> Any:
    return t.full_tensor() if hasattr(t, "full_tensor") else t


def alone(torch: Any, steps: int = 3, clip: float | None = None) -> Any:
    """One process with all rows: losses and parameters."""
    model = gpt(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for step in range(steps):
        loss = loss_of(torch, model, *batch(torch, step, None, 1))
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    return losses, [each.detach().flatten().tolist() for each in model.parameters()]


def mean(torch: Any, dist: Any, loss: Any, size: int) -> float:
    total = loss.detach().clone()
    dist.all_reduce(total)
    return float(total) / size


def fully_shard(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """Training with `fully_shard`: losses, parameters, and what was noticed on the way."""
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    T = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    model = gpt(torch)
    settings: dict[str, Any] = {"mesh": T.init_device_mesh(kind(torch), (size,))}
    if how == "replicas":
        settings["mesh"] = T.init_device_mesh(kind(torch), (2, size // 2), mesh_dim_names=("rows", "columns"))
    if how == "kept":
        settings["reshard_after_forward"] = False
    if how == "columns":
        settings["shard_placement_fn"] = lambda p: T.Shard(1) if p.dim() == 2 and p.shape[1] % size == 0 else None
    if how == "bfloat16":
        settings["mp_policy"] = F.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if how == "host":
        settings["offload_policy"] = F.CPUOffloadPolicy()
    for block in model.blocks:
        F.fully_shard(block, **settings)
    F.fully_shard(model, **settings)
    if how == "host":
        assert {each.to_local().device.type for each in model.parameters()} == {"cpu"}
    if how == "prefetch":
        model.set_modules_to_forward_prefetch([model.blocks[0]])
        model.blocks[0].set_modules_to_forward_prefetch([model.blocks[1]])
        model.blocks[1].set_modules_to_backward_prefetch([model.blocks[0]])
    noticed = [type(model).__name__, type(model.blocks[0]).__name__, str(model.head.weight.placements[-1])]
    noticed.append(str(tuple(model.blocks[0].up.weight.to_local().shape)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for step in range(3):
        words, targets = batch(torch, step, rank, size)
        if how == "accumulate":
            model.set_requires_gradient_sync(False)
            loss = loss_of(torch, model, words[:1], targets[:1]) / words.shape[0]
            loss.backward()
            model.set_requires_gradient_sync(True)
            parts = [loss]
            for row in range(1, words.shape[0]):
                parts.append(loss_of(torch, model, words[row : row + 1], targets[row : row + 1]) / words.shape[0])
                parts[-1].backward()
            loss = sum(parts)
        elif how == "by hand":
            model.unshard()
            loss = loss_of(torch, model, words, targets)
            loss.backward()
        else:
            loss = loss_of(torch, model, words, targets)
            noticed.append(str(type(model.blocks[0].up.weight).__name__))
            loss.backward()
        if how == "clipped":
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            noticed.append(str(float(whole(norm)) > 0.5))
        assert model.head.weight.grad.placements == model.head.weight.placements
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(torch, dist, loss, size))
    return losses, [whole(each.detach()).flatten().tolist() for each in model.parameters()], noticed


def states(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """State dicts of split models: what they hold, and that they can be loaded; modules made without data."""
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    model = F.fully_shard(gpt(torch))
    state = model.state_dict()
    kinds = sorted({type(each).__name__ for each in state.values()})
    with torch.device("meta"):
        other = torch.nn.Linear(16, 13, bias=False)
    F.fully_shard(other)
    before = other.weight.is_meta
    other.to_empty(device=own_device(torch))
    other.load_state_dict({"weight": state["head.weight"]})
    words, _ = batch(torch, 0, rank, size)
    out = other(torch.ones(2, 16))
    twin = F.fully_shard(gpt(torch))
    twin.load_state_dict(state)
    same = bool(torch.equal(twin(words), model(words)))
    handle = model.unshard(async_op=True)
    handle.wait()
    shape = tuple(model.head.weight.shape), type(model.head.weight).__name__
    model.reshard()
    return kinds, before, out.tolist(), same, shape, isinstance(model, F.FSDPModule)


def both_ways(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Tensor parallel layers whose parts are split once more over the rows of a mesh."""
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    T = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    P = importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel")
    mesh = T.init_device_mesh(kind(torch), (2, size // 2), mesh_dim_names=("dp", "tp"))
    model = gpt(torch)
    for block in model.blocks:
        plan = {
            **dict.fromkeys(("wq", "wk", "wv", "up"), P.ColwiseParallel()),
            **dict.fromkeys(("wo", "down"), P.RowwiseParallel()),
        }
        P.parallelize_module(block, mesh["tp"], plan)
        F.fully_shard(block, mesh=mesh["dp"])
    F.fully_shard(model, mesh=mesh["dp"])
    # Parameters on different meshes are not for one call of a `foreach` form.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, foreach=False)
    losses = []
    for step in range(3):
        words, targets = batch(torch, step, mesh["dp"].get_local_rank(), 2)
        loss = loss_of(torch, model, words, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(torch, dist, loss, size))
    return losses, [whole(each.detach()).flatten().tolist() for each in model.parameters()]


# -- checkpoints --------------------------------------------------------------------------------------------------
def _trained(torch: Any, rank: int, size: int, how: str) -> tuple[Any, Any]:
    """A model after a step, split or not, and its optimizer."""
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    model = gpt(torch)
    if how == "split":
        for block in model.blocks:
            F.fully_shard(block)
        F.fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    return model, optimizer


def _step(torch: Any, model: Any, optimizer: Any, step: int) -> None:
    loss_of(torch, model, *batch(torch, step, None, 1)).backward()
    optimizer.step()
    optimizer.zero_grad()


def _numbers(model: Any, optimizer: Any) -> Any:
    """Parameters and state as plain data."""
    weights = [whole(each.detach()).flatten().tolist() for each in model.parameters()]
    state = [whole(optimizer.state[each]["exp_avg"]).flatten().tolist() for each in model.parameters()]
    return weights, state, optimizer.param_groups[0]["lr"]


def save_checkpoint(torch: Any, dist: Any, rank: int, size: int, path: str, how: str) -> Any:
    C = importlib.import_module(f"{torch.__name__}.distributed.checkpoint")
    S = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    model, optimizer = _trained(torch, rank, size, how)
    _step(torch, model, optimizer, 0)
    weights, states_ = S.get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": states_, "extra": {"step": 7, "names": ["a", "b"]}}
    if how == "later":
        C.async_save(state, checkpoint_id=path).result()
    else:
        C.save(state, checkpoint_id=path)
    return _numbers(model, optimizer)


def load_checkpoint(torch: Any, dist: Any, rank: int, size: int, path: str, how: str) -> Any:
    C = importlib.import_module(f"{torch.__name__}.distributed.checkpoint")
    S = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    model, optimizer = _trained(torch, rank, size, how)
    weights, states_ = S.get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": states_, "extra": {"step": 0, "names": []}}
    C.load(state, checkpoint_id=path)
    S.set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert state["extra"] == {"step": 7, "names": ["a", "b"]}
    return _numbers(model, optimizer)


def full_states(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Whole state dicts of split models, and split models from whole state dicts of one rank."""
    S = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    model, optimizer = _trained(torch, rank, size, "split")
    _step(torch, model, optimizer, 0)
    options = S.StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights, states_ = S.get_state_dict(model, optimizer, options=options)
    told = (len(weights), len(states_))
    other, second = _trained(torch, rank, size, "split")
    options = S.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    S.set_state_dict(other, second, model_state_dict=weights, optim_state_dict=states_, options=options)
    flat = S.get_optimizer_state_dict(model, optimizer, options=S.StateDictOptions(flatten_optimizer_state_dict=True))
    S.set_optimizer_state_dict(other, second, flat, options=S.StateDictOptions(flatten_optimizer_state_dict=True))
    return told, sorted(flat)[:3], _numbers(model, optimizer) == _numbers(other, second)


def failing(torch: Any, dist: Any, rank: int, size: int, path: str) -> Any:
    """What is raised on all ranks when one cannot load."""
    C = importlib.import_module(f"{torch.__name__}.distributed.checkpoint")
    told = []
    for state in ({"missing": torch.ones(2)}, {"extra": {"step": 0}, **({"missing": torch.ones(1)} if rank else {})}):
        try:
            C.load(state, checkpoint_id=path)
            told.append("nothing")
        except C.CheckpointException as error:
            told.append(str(sorted(error.failures)) + str(error).strip().rpartition("\n")[2])
    return told


# -- the module around another ------------------------------------------------------------------------------------
def _wrapped(torch: Any, how: str, size: int) -> Any:
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    W = importlib.import_module(f"{torch.__name__}.distributed.fsdp.wrap")
    model = gpt(torch)
    orig = ("orig", "states orig", "host orig")
    settings: dict[str, Any] = {"use_orig_params": how in orig, "device_id": own_device(torch)}
    if how == "whole":
        settings["sharding_strategy"] = F.ShardingStrategy.NO_SHARD
    if how == "gradients":
        settings["sharding_strategy"] = F.ShardingStrategy.SHARD_GRAD_OP
    if how == "bfloat16":
        settings["mixed_precision"] = F.MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if how.startswith("host"):
        settings["cpu_offload"] = F.CPUOffload(offload_params=True)
    policy = W.ModuleWrapPolicy({type(model.blocks[0])})
    return F.FullyShardedDataParallel(model, auto_wrap_policy=policy, **settings)


def around(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """Training with `FullyShardedDataParallel`."""
    model = _wrapped(torch, how, size)
    if how.startswith("host"):
        assert {each.device.type for each in model.parameters()} == {"cpu"}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for step in range(3):
        words, targets = batch(torch, step, rank, size)
        if how == "accumulate":
            with model.no_sync():
                first = loss_of(torch, model, words[:1], targets[:1]) / 2
                first.backward()
            loss = loss_of(torch, model, words[1:], targets[1:]) / 2
            loss.backward()
            loss = loss + first.detach()
        else:
            loss = loss_of(torch, model, words, targets)
            loss.backward()
        if how == "clipped":
            model.clip_grad_norm_(0.5)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(torch, dist, loss, size))
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    with F.FullyShardedDataParallel.summon_full_params(model, writeback=False):
        named = dict(model.module.named_parameters())
        parameters = [each.detach().flatten().tolist() for each in named.values()]
    state = {name: value.flatten().tolist() for name, value in model.state_dict().items()}
    expected = [name for name, _ in gpt(torch).named_parameters()]
    same = sorted(state) == sorted(expected)
    return losses, [state[name] for name in expected], (same, len(list(model.parameters())), len(parameters))


def around_states(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """State dicts of module and optimizer: whole and split, loaded again."""
    F = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    model = _wrapped(torch, how, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    words, targets = batch(torch, 0, rank, size)
    loss_of(torch, model, words, targets).backward()
    optimizer.step()
    optimizer.zero_grad()
    FSDP, types = F.FullyShardedDataParallel, F.StateDictType
    told = []
    for kind in (types.FULL_STATE_DICT, types.SHARDED_STATE_DICT):
        with FSDP.state_dict_type(model, kind):
            weights, states_ = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
        other = _wrapped(torch, how, size)
        second = torch.optim.AdamW(other.parameters(), lr=0.5)
        with FSDP.state_dict_type(other, kind):
            other.load_state_dict(weights)
            second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, states_))
        for each, its in ((model, optimizer), (other, second)):
            twin = loss_of(torch, each, words, targets)
            twin.backward()
            its.step()
            its.zero_grad()
            told.append(float(loss_of(torch, each, words, targets)))
        model, optimizer = other, second
    first = states_["state"]["blocks.0.up.weight"]["exp_avg"]
    return told, tuple(first.shape), sorted(states_["state"])[0], states_["param_groups"][0]["params"][0]


def in_parallel(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """Training with replicas, with shares of the optimizer, or with layers that are split."""
    T = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    P = importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel")
    Z = importlib.import_module(f"{torch.__name__}.distributed.optim")
    model = gpt(torch)
    if how == "layers":
        mesh = T.init_device_mesh(kind(torch), (size,))
        columns, rows = P.ColwiseParallel, P.RowwiseParallel
        for block in model.blocks:
            plan = {name: columns() for name in ("wq", "wk", "wv", "up")} | {name: rows() for name in ("wo", "down")}
            P.parallelize_module(block, mesh, plan)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    if how == "shares":
        optimizer = Z.ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.02)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for step in range(3):
        words, targets = batch(torch, step, None if how == "layers" else rank, size)
        loss = loss_of(torch, model, words, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(torch, dist, loss, size))
    return losses, [whole(each.detach()).flatten().tolist() for each in model.parameters()]
