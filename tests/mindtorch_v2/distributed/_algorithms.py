"""Programs of ranks about DDP's rarer sides and what is built around it; the same on this package and on PyTorch.

Invariant: a program returns plain data that does not depend on time.
"""

from __future__ import annotations

import importlib
import warnings
from datetime import timedelta
from typing import Any


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _ddp(torch: Any, module: Any, **settings: Any) -> Any:
    return torch.nn.parallel.DistributedDataParallel(module, **settings)


def sparse_sum(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Sparse tensors with repeated, different and no entries."""
    found = []
    for indices, values in (([0, 0, 2 + rank], [1.0, 2.0, 3.0]), ([rank] * (rank > 0), [5.0] * (rank > 0)), ([], [])):
        tensor = torch.sparse_coo_tensor([indices], values, (6,), dtype=torch.float32)
        dist.all_reduce(tensor)
        found.append((tensor.coalesce().indices().tolist(), tensor.coalesce().values().tolist()))
    matrix = torch.sparse_coo_tensor([[rank, 2]], [[1.0, 2.0], [3.0, 4.0]], (4, 2))
    dist.all_reduce(matrix)
    return found, matrix.to_dense().tolist()


def sparse_gradients(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Gradients of an embedding that says they are sparse, beside dense ones."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(5, 2, sparse=True), torch.nn.Linear(2, 1))
    model = _ddp(torch, model)
    found = []
    for step in range(2):
        model.zero_grad()
        model(torch.tensor([rank, 2, step])).sum().backward()
        found.append([each.grad.to_dense().tolist() for each in model.parameters()])
    return found


def used_inside_no_sync(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """What was used only inside `no_sync` is reduced with the rest."""
    parts = torch.nn.ModuleList([torch.nn.Linear(1, 1, bias=False) for _ in range(3)])

    class Chosen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = parts

        def forward(self, value: Any, which: int) -> Any:
            return self.parts[which](value)

    model = _ddp(torch, Chosen(), find_unused_parameters=True)
    with model.no_sync():
        model(torch.full((1,), float(rank + 1)), 0).sum().backward()
    model(torch.full((1,), 3.0), 1).sum().backward()
    return [None if each.grad is None else each.grad.tolist() for each in model.parameters()]


def told(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """What DDP tells of itself, and a static graph that is asked for too late."""
    model = _ddp(torch, torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)))
    model(torch.ones(1, 2)).sum().backward()
    try:
        model._set_static_graph()
        error = ""
    except RuntimeError as raised:
        error = str(raised)
    data = dict(model._get_ddp_logging_data())
    return error, {name: value for name, value in sorted(data.items()) if "time" not in name}


def quantized(torch: Any, dist: Any, rank: int, size: int, name: str) -> Any:
    """Gradients as bytes: all ranks the same, and near the mean."""
    hooks = _module(torch, "algorithms.ddp_comm_hooks.quantization_hooks")
    torch.manual_seed(1)
    weight = torch.randn(40, 30)
    plain, model = torch.nn.Linear(40, 30), torch.nn.Linear(40, 30)
    model.load_state_dict(plain.state_dict())
    model = _ddp(torch, model)
    model.register_comm_hook(None, getattr(hooks, name))
    total = torch.zeros_like(plain.weight)
    for each in range(size):
        plain.zero_grad()
        plain(weight.t() * (each + 1)).square().sum().backward()
        total += plain.weight.grad / size
    model(weight.t() * (rank + 1)).square().sum().backward()
    found = model.module.weight.grad
    distance = ((found - total).abs().max() / total.abs().max()).item()
    return distance, found.tolist()


def local_steps(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Gradients of all ranks for two steps, then of each alone, with a mean of the models at every second one."""
    hooks = _module(torch, "algorithms.ddp_comm_hooks.post_localSGD_hook")
    averagers = _module(torch, "algorithms.model_averaging.averagers")
    optim = _module(torch, "optim")
    torch.manual_seed(0)
    model = _ddp(torch, torch.nn.Linear(2, 1, bias=False))
    alone, _ = dist.new_subgroups(group_size=1)
    model.register_comm_hook(hooks.PostLocalSGDState(None, alone, 2), hooks.post_localSGD_hook)
    below = torch.optim.SGD(model.parameters(), lr=0.1)
    stepper = optim.PostLocalSGDOptimizer(below, averagers.PeriodicModelAverager(period=2, warmup_steps=2))
    found = []
    for step in range(6):
        stepper.zero_grad()
        (model(torch.tensor([[1.0 + rank, step + 1.0]])) - 1).square().sum().backward()
        stepper.step()
        found.append(model.module.weight.tolist())
    saved = stepper.state_dict()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stepper.load_state_dict({name: value for name, value in saved.items() if name != "step"})
    return found, saved["step"], stepper.averager.step, [str(each.message) for each in caught]


def averaged_by_levels(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Groups of one, and of all: which of them a step averages over."""
    levels = _module(torch, "algorithms.model_averaging.hierarchical_model_averager")
    parameter = torch.nn.Parameter(torch.full((2,), float(rank)))
    parameter.grad = torch.zeros(2)
    averager = levels.HierarchicalModelAverager({1: 1, 3: size}, warmup_steps=1)
    found = []
    for _ in range(5):
        averager.average_parameters([parameter])
        found.append(parameter.tolist())
        parameter.data += rank
    errors = []
    for given in (None, {0: size}, {2: size + 1}):
        try:
            levels.HierarchicalModelAverager(given)
        except ValueError as error:
            errors.append(str(error))
    return found, errors


def steps_inside_backward(torch: Any, dist: Any, rank: int, size: int) -> Any:
    optim = _module(torch, "optim")
    model = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optim._apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.5})
    model(torch.ones(1, 2)).sum().backward()
    return model.weight.tolist(), model.weight.grad is None, len(optim._get_in_backward_optimizers(model))


def by_the_store(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Collectives of bytes and numbers."""
    store = dist.PrefixStore("bytes", _module(torch, "distributed_c10d")._get_default_store())
    calls = dist._StoreCollectives(store, rank, size)
    found: list[Any] = [calls.all_gather("a", f"of {rank}"), calls.all_sum("s", rank + 1)]
    calls.barrier("b")
    if rank:
        found += [calls.broadcast_recv("c"), calls.scatter_recv("d"), calls.gather_send("e", str(rank))]
    else:
        found += [calls.broadcast_send("c", "x"), calls.scatter_send("d", list("pqrs")[:size])]
        found.append(calls.gather_recv("e", "root"))
    for call in (
        lambda: calls.barrier("a"),
        lambda: calls.all_gather("late", "x", timedelta(milliseconds=200)) if rank == 0 else None,
    ):
        try:
            found.append(call())
        except RuntimeError as error:
            text = str(error).partition("\n")[0]
            # PyTorch's begins with the place in its source.
            found.append(text.rpartition("PyTorch. ")[2].partition("missing ranks")[0])
    return found


def in_a_profile(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Names and shapes of what is done, and whether it is beside what the thread does."""
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        tensor = torch.ones(3, 2)
        dist.all_reduce(tensor)
        dist.broadcast(tensor, 0)
        dist.all_gather([torch.ones(3, 2) for _ in range(size)], tensor)
        dist.reduce(tensor, 0)
        dist.gather(tensor, [torch.ones(3, 2) for _ in range(size)] if rank == 0 else None, 0)
        dist.all_to_all_single(torch.ones(size * 2), torch.ones(size * 2))
        dist.barrier()
        if rank == 0:
            dist.send(tensor, 1)
        elif rank == 1:
            dist.recv(tensor, 0)
    return sorted(
        (each.name, each.is_async, each.input_shapes) for each in profile.function_events if "gloo:" in each.name
    )
