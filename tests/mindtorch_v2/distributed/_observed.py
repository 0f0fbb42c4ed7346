"""What `CommDebugMode` sees of programs on two ranks."""

from __future__ import annotations

import importlib
from typing import Any

from . import _layouts


def _mode(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.tensor.debug").CommDebugMode()


def _told(mode: Any) -> Any:
    counts = {str(name): count for name, count in mode.get_comm_counts().items()}
    by_module = {
        name: {key: {str(each): count for each, count in found.items()} for key, found in both.items()}
        for name, both in mode.comm_module_counts.items()
    }
    return counts, by_module, mode.get_total_counts(), repr(mode)


def groups(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Every collective of a group, as one asks for it."""
    mode = _mode(torch)
    one, two = torch.ones(2), torch.ones(4)
    with mode:
        dist.all_reduce(one)
        dist.all_reduce(one, async_op=True).wait()
        dist.broadcast(one, 0)
        dist.reduce(one, 0)
        dist.all_gather([torch.ones(2), torch.ones(2)], one)
        dist.all_gather_into_tensor(two, one)
        dist.reduce_scatter_tensor(one, two)
        dist.reduce_scatter(one, [torch.ones(2), torch.ones(2)])
        dist.gather(one, [torch.ones(2), torch.ones(2)] if rank == 0 else None)
        dist.scatter(one, [torch.ones(2), torch.ones(2)] if rank == 0 else None)
        dist.all_to_all_single(two, torch.ones(4))
        dist.barrier()
    values = one.tolist(), two.tolist()
    return _told(mode), values


def functional(torch: Any, dist: Any, rank: int, size: int) -> Any:
    f: Any = importlib.import_module(f"{torch.__name__}.distributed._functional_collectives")
    group, x, mode = dist.group.WORLD, torch.arange(4.0) + rank, _mode(torch)
    with mode:
        found = [
            f.all_reduce(x, "sum", group),
            f.all_gather_tensor(x, 0, group),
            f.reduce_scatter_tensor(x, "sum", 0, group),
            f.all_to_all_single(x, None, None, group),
            f.broadcast(x, 0, group),
            *f.all_reduce_coalesced([x, x + 1], "max", group),
            *f.all_gather_into_tensor_coalesced([x, x + 1], group),
        ]
        values = [each.tolist() for each in found]
    direct = torch.ops._c10d_functional.all_reduce(x, "sum", group.group_name)
    direct = torch.ops._c10d_functional.wait_tensor(direct)
    return _told(mode), values, direct.tolist()


def trained(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """One step of a small network whose layers are split, or whose gradients are reduced."""
    t, parallel = _layouts.tools(torch)
    nn, mode = torch.nn, _mode(torch)
    torch.manual_seed(0)
    mesh = dist.init_device_mesh("cpu", (size,))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.act, self.down = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)

        def forward(self, x: Any) -> Any:
            return self.down(self.act(self.up(x)))

    net: Any = Net()
    if how == "layers":
        net = parallel.parallelize_module(
            net, mesh, {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
        )
    elif how == "parts":
        fsdp: Any = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
        for each in (net.up, net.down, net):
            fsdp.fully_shard(each, mesh=mesh)
    else:
        net = nn.parallel.DistributedDataParallel(net)
    x = torch.ones(4, 8)
    with mode:
        net(x).sum().backward()
    sharding = {name: str(found) for name, found in mode.get_sharding_info().items()}
    shown = mode.generate_comm_debug_tracing_table(noise_level=0) if how == "layers" else ""
    return _told(mode), sharding, shown
