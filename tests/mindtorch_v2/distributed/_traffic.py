"""What ranks give to each other while they train, in bytes, and when: counted by the transport, or by what the vendor's
library is asked for; read from a profile."""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

WIDTH = 96
LAYERS = 3


def network(torch: Any) -> Any:
    """Layers whose sizes are multiples of 2, 3 and 4; each is a module of its own."""
    nn = torch.nn
    torch.manual_seed(1)
    return nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)])


def sizes(torch: Any) -> list[int]:
    """Bytes of each layer's parameters."""
    return [sum(each.numel() * each.element_size() for each in layer.parameters()) for layer in network(torch)]


@contextlib.contextmanager
def counted(torch: Any, dist: Any, group: Any) -> Iterator[Callable[[], dict[str, int]]]:
    """Bytes by operation since then: of gloo's transport, or what HCCL's functions were given to send."""
    backend = group._get_backend("npu" if "npu" in group._backends else "cpu")
    if backend.name() == "gloo":
        before = backend._bytes_sent()
        yield lambda: {name: size - before.get(name, 0) for name, size in backend._bytes_sent().items()}
        return
    hccl = importlib.import_module("mindtorch_v2._backends.npu.hccl")
    found: Counter[str] = Counter()
    width = {code: dtype.itemsize for dtype, code in hccl.DTYPES.items()}
    # Where the number of elements and the dtype stand; of a reduce-scatter, elements that each rank gets.
    where = {"HcclAllReduce": (2, 3), "HcclBroadcast": (1, 2), "HcclReduceScatter": (2, 3), "HcclAllGather": (2, 3)}

    def around(name: str, collective: Any) -> Any:
        def called(*arguments: Any) -> Any:
            count, code = (arguments[at] for at in where[name])
            found[name] += count * width[code]
            return collective(*arguments)

        return called

    hccl.watch(around)
    try:
        yield lambda: dict(found)
    finally:
        hccl.watch(None)


def step_bytes(torch: Any, dist: Any, rank: int, size: int, how: str, shared: bool) -> Any:
    """Bytes of the third of three training steps, by operation."""
    if not shared:
        os.environ["MINDTORCH_SHARED_MEMORY"] = "0"
    try:
        group = dist.new_group(list(range(size)))
    finally:
        os.environ.pop("MINDTORCH_SHARED_MEMORY", None)
    model, data = network(torch), torch.ones(4, WIDTH)
    if how == "split":
        fsdp = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
        meshes = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
        mesh = meshes.DeviceMesh.from_group(group, data.device.type)
        for layer in list(model)[1:]:
            fsdp.fully_shard(layer, mesh=mesh)
        fsdp.fully_shard(model, mesh=mesh)
    else:
        # Buckets of one layer: what is counted does not depend on how the smallest are joined.
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.03)
    if how == "shares":
        zero = importlib.import_module(f"{torch.__name__}.distributed.optim")
        optimizer = zero.ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.SGD, process_group=group, parameters_as_bucket_view=False, lr=0.1
        )
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    step()  # DDP makes its buckets anew when this one begins, and tells the others which
    with counted(torch, dist, group) as bytes_of:
        step()
        told = {name: count for name, count in bytes_of().items() if count}
    dist.destroy_process_group(group)
    return told


def collective_bytes(torch: Any, dist: Any, rank: int, size: int, count: int, shared: bool) -> Any:
    """Bytes of one collective of each kind, by its name; `count` elements of every rank."""
    os.environ["MINDTORCH_SHARED_MEMORY"] = "1" if shared else "0"
    try:
        group = dist.new_group(list(range(size)))
    finally:
        os.environ.pop("MINDTORCH_SHARED_MEMORY", None)
    dist.all_reduce(torch.ones(1 << 17), group=group)  # the first large one also says where shared memory is
    one, many = torch.ones(count), torch.ones(count * size)
    with counted(torch, dist, group) as bytes_of:
        dist.all_reduce(one, group=group)
        dist.all_gather_single(many, one, group=group)
        dist.reduce_scatter_single(one, many, group=group)
        dist.broadcast(one, 0, group=group)
        dist.barrier(group=group)
        told = bytes_of()
    dist.destroy_process_group(group)
    return told


def _settled(work: Any) -> None:
    last = time.monotonic() + 20
    while not work.is_completed() and time.monotonic() < last:
        time.sleep(0.001)


def trace(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """The names, threads and times of what a step consists of."""
    model = network(torch)
    data = torch.ones(4, WIDTH)
    if how == "split":
        fsdp = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
        for layer in model:
            fsdp.fully_shard(layer)
        fsdp.fully_shard(model)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.03)
        # Backward of the first layer waits until the last one's bucket is reduced: the trace must show it between.

        def watched(module: Any, inputs: Any, out: Any) -> None:
            out.register_hook(lambda grad: _settled(model.reducer.buckets[0].work))

    for _ in range(2):
        model(data).square().mean().backward()
    if how != "split":  # before, there is one bucket
        model.module[0].register_forward_hook(watched)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if data.device.type == "npu":
        activities.append(torch.profiler.ProfilerActivity.NPU)
    with torch.profiler.profile(activities=activities) as profiled:
        model(data).square().mean().backward()
        if data.device.type == "npu":
            torch.npu.synchronize()
    return [
        (event.name, event.thread, event.time_range.start, event.time_range.end, str(event.device_type))
        for event in profiled.events()
    ]
