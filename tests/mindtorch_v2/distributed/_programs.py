"""What ranks do when they are asked. Each gets the library, its `distributed`, its rank and the number of ranks."""

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import Any

from . import _random


def value(torch: Any, dtype: str, rank: int, shape: tuple[int, ...], layout: str = "contiguous") -> Any:
    """Rank r's tensor: small whole numbers, so that every order of a sum gives the same."""
    count = 1
    for size in shape:
        count *= size
    flat = (torch.arange(count) * (rank + 2) + rank) % 5 + 1
    if dtype.startswith("complex"):
        data = torch.complex(flat.float(), (flat + 1).float()).to(getattr(torch, dtype))
    else:
        data = flat.to(getattr(torch, dtype))
    data = data.reshape(shape)
    if layout == "transposed":
        return data.t().contiguous().t()
    if layout == "strided":
        wide = torch.zeros(shape[0], shape[1] * 2, dtype=data.dtype)
        wide[:, ::2] = data
        return wide[:, ::2]
    return data


def wait(work: Any, async_op: bool) -> None:
    if async_op:
        (work.wait if hasattr(work, "wait") else work.result)()


def all_reduce(
    torch: Any, dist: Any, rank: int, size: int, dtype: str, op: str, shape: Any, layout: str, async_op: bool
) -> Any:
    t = value(torch, dtype, rank, shape, layout)
    wait(dist.all_reduce(t, getattr(dist.ReduceOp, op), async_op=async_op), async_op)
    return t.tolist()


def nothing(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Barriers, and tensors without elements, that some reach before others."""
    import time

    told = []
    for late in range(size):
        time.sleep(0.02 if rank == late else 0.0)
        dist.barrier()
        empty = torch.zeros(0, 3)
        dist.all_reduce(empty)
        outs = [torch.zeros(0, 3) for _ in range(size)]
        dist.all_gather(outs, empty)
        dist.broadcast(empty, late)
        told.append([tuple(each.shape) for each in outs])
    dist.barrier(device_ids=[rank if "npu" in str(dist.get_backend_config()) else 0])
    return told


def uneven_all_to_all(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Rank r sends r + s rows to rank s."""
    source = torch.arange(sum(rank + to for to in range(size)) * 2).reshape(-1, 2) + 100 * rank
    into = [came + rank for came in range(size)]
    out = source.new_zeros((sum(into), 2))
    dist.all_to_all_single(out, source, into, [rank + to for to in range(size)])
    return out.tolist()


def large(torch: Any, dist: Any, rank: int, size: int, dtype: str, count: int) -> Any:
    """Whether reductions and gatherings of tensors that are shared, not sent, are as they should be."""
    parts = [value(torch, dtype, each, (count, 1)) for each in range(size)]
    total = parts[0].clone()
    for each in parts[1:]:
        total += each
    mine = parts[rank].clone()
    dist.all_reduce(mine)
    outs = [torch.zeros_like(mine) for _ in range(size)]
    dist.all_gather(outs, parts[rank])
    scattered = torch.zeros_like(mine)
    dist.reduce_scatter(scattered, [parts[rank] * (each + 1) for each in range(size)])
    whole = torch.zeros_like(torch.cat(parts))
    dist.all_gather_single(whole, parts[rank])
    return (
        torch.equal(mine, total),
        all(torch.equal(out, part) for out, part in zip(outs, parts)),
        torch.equal(scattered, total * (rank + 1)),
        torch.equal(whole, torch.cat(parts)),
    )


def coalesced(torch: Any, dist: Any, rank: int, size: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        many = [value(torch, "float32", rank, (each + 1, 2)) for each in range(3)]
        dist.all_reduce_coalesced(many)
        outs = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
        dist.all_gather_coalesced(outs, [torch.full((2,), float(rank)), torch.full((3,), float(rank))])
    with dist._coalescing_manager() as manager:
        later = [torch.ones(2) * rank, torch.ones(3) * rank]
        for each in later:
            dist.all_reduce(each)
    del manager
    return [t.tolist() for t in many], [[t.tolist() for t in each] for each in outs], [t.tolist() for t in later]


def messages(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """A ring with tags in the other order, from anyone, and in a batch."""
    after, before = (rank + 1) % size, (rank - 1) % size
    works = [dist.isend(torch.full((3,), float(rank * 10 + tag)), after, tag=tag) for tag in (1, 2)]
    got = {}
    for tag in (2, 1):
        t = torch.zeros(3)
        got[tag] = (dist.recv(t, before, tag=tag), t.tolist())
    for work in works:
        work.wait()
    anyone = []
    if dist.get_backend() == "hccl":  # which has no such message
        anyone = [(each, float(each)) for each in range(1, size)] if rank == 0 else []
    elif rank == 0:
        for _ in range(size - 1):
            t = torch.zeros(1)
            source = dist.recv(t, tag=5)
            anyone.append((source, t.item()))
    else:
        dist.send(torch.full((1,), float(rank)), 0, tag=5)
    t = torch.zeros(2)
    ops = [dist.P2POp(dist.irecv, t, before), dist.P2POp(dist.isend, torch.full((2,), float(rank)), after)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return got, sorted(anyone), t.tolist()


def objects(torch: Any, dist: Any, rank: int, size: int) -> Any:
    every: list[Any] = [None] * size
    dist.all_gather_object(every, {"rank": rank, "text": "x" * rank * 100})
    some: list[Any] | None = [None] * size if rank == 1 else None
    dist.gather_object((rank, "object"), some, 1)
    given: list[Any] = ["a", {"b": 2}] if rank == 0 else [None, None]
    dist.broadcast_object_list(given, 0)
    one: list[Any] = [None]
    dist.scatter_object_list(one, [f"for {each}" for each in range(size)] if rank == 0 else None, 0)
    sent: list[Any] = [None]
    if rank == 0:
        dist.send_object_list([["from", 0]], 1)
    elif rank == 1:
        dist.recv_object_list(sent, 0)
    return every, some, given, one, sent


def groups(torch: Any, dist: Any, rank: int, size: int) -> Any:
    pair = dist.new_group([0, size - 1])
    mine, every = dist.new_subgroups(1)
    t = torch.ones(1) * (rank + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.all_reduce(t, group=pair)
    told = (
        dist.get_rank(pair),
        dist.get_world_size(pair),
        t.item(),
        mine.size(),
        len(every),
        dist.get_process_group_ranks(mine),
        dist.get_backend(mine),
        dist.get_backend_config(),
    )
    if rank in (0, size - 1):
        dist.broadcast(t, group_src=1, group=pair)
        dist.destroy_process_group(pair)
    return told


def functional(torch: Any, dist: Any, rank: int, size: int, fc: str, nf: str) -> Any:
    import importlib

    f, n = importlib.import_module(fc), importlib.import_module(nf)
    world = dist.group.WORLD
    x = value(torch, "float32", rank, (size * 2, size))
    told: list[Any] = [
        f.all_reduce(x, "sum", world).tolist(),
        f.all_gather_tensor(x, 1, world).tolist(),
        f.reduce_scatter_tensor(x, "avg", 1, world).tolist(),
        f.all_to_all_single(x, None, None, world).tolist(),
        f.wait_tensor(f.broadcast(x, 0, world)).tolist(),
    ]
    leaf = x.clone().requires_grad_()
    (f.all_to_all_single_autograd(leaf, None, None, world) * (rank + 1)).sum().backward()
    told.append(leaf.grad.tolist())
    for name in ("all_reduce", "all_gather", "broadcast"):
        leaf = x.clone().requires_grad_()
        out = n.broadcast(leaf, 0) if name == "broadcast" else getattr(n, name)(leaf)
        out = torch.cat(out) if isinstance(out, (list, tuple)) else out
        (out * (rank + 1)).sum().backward()
        told.append((out.tolist(), leaf.grad.tolist()))
    return told


def program(torch: Any, dist: Any, rank: int, size: int, seed: int) -> Any:
    return _random.program(torch, dist, rank, size, seed)


def refused(torch: Any, dist: Any, rank: int, size: int, line: str, more: dict[str, Any] | None = None) -> Any:
    """What a wrong call raises, or that it raises nothing."""
    space = {"torch": torch, "dist": dist, "rank": rank, "size": size, **(more or {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(line, space)
    return "nothing"


def refused_on_a_mesh(torch: Any, dist: Any, rank: int, size: int, line: str) -> Any:
    """The same of a line with the names of `_wrong_layouts` and a mesh of all ranks."""
    import importlib

    from ._wrong_layouts import NAMES

    more = {short: importlib.import_module(f"{torch.__name__}.distributed.{room}") for short, room in NAMES.items()}
    return refused(torch, dist, rank, size, line, {**more, "mesh": dist.init_device_mesh("cpu", (size,))})


def late(torch: Any, dist: Any, rank: int, size: int, seconds: float) -> Any:
    """Rank 0 waits for others that do not come in time."""
    import time

    if rank == 0:
        dist.all_reduce(torch.ones(3))
    else:
        time.sleep(seconds)
    return "nothing"


def absent(torch: Any, dist: Any, rank: int, size: int) -> Any:
    from datetime import timedelta

    if rank != size - 1:
        dist.monitored_barrier(timeout=timedelta(seconds=1))
    return "nothing"


def reduced_on_device(torch: Any, dist: Any, rank: int, size: int, made: str) -> Any:
    """A collective, and its value on the host, where at the latest a failure is noticed."""
    t = eval(made, {"torch": torch, "rank": rank, "size": size})
    dist.all_reduce(t)
    return t.tolist()


def broken(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Breaches of the vendor's contract that the emulator has seen."""
    import ctypes
    import importlib

    loader: Any = importlib.import_module("mindtorch_v2._backends.npu.acl_loader")
    buffer = ctypes.create_string_buffer(1 << 16)
    ask = loader.ensure_acl().emulator.ascendEmulatorViolations
    ask.restype = ctypes.c_uint64
    ask(buffer, ctypes.c_size_t(len(buffer)))
    return buffer.value.decode(errors="replace").splitlines()


def stay_away(torch: Any, dist: Any, rank: int, size: int, who: int) -> Any:
    return "nothing" if rank == who else reduced_on_device(torch, dist, rank, size, "torch.ones(3)")


def steps(torch: Any, dist: Any, rank: int, size: int, how: str, who: int, at: int, where: str) -> Any:
    """Training steps; at one of them a rank dies, is stopped, or raises, before or inside backward."""
    import os
    import signal
    import time

    def strike(*_: Any) -> None:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            raise ValueError("this rank errs")

    torch.manual_seed(0)
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    started = time.monotonic()
    for step in range(4):
        if rank == who and step == at:
            if where == "backward":
                ddp.module.weight.register_hook(strike)
            else:
                strike()
        optimizer.zero_grad()
        try:
            ddp(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            ddp.module.weight.sum().item()
        except RuntimeError as error:
            return step, type(error).__name__, str(error), time.monotonic() - started
    return "nothing"


def after_fault(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """What a rank still has of a group that failed, once it has left it: threads, connections, shared memory."""
    import os
    import threading

    dist.destroy_process_group()
    threads = [each.name for each in threading.enumerate() if each.name.startswith("pt_")]
    links = []
    for each in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the list itself
            links.append(os.readlink(f"/proc/self/fd/{each}"))
    with open("/proc/self/maps") as file:
        mapped = [line for line in file if "mindtorch_gloo" in line or "/dev/shm" in line]
    return threads, sum(each.startswith("socket:") for each in links), mapped


def die(torch: Any, dist: Any, rank: int, size: int, who: int, count: int = 100_000, late: float = 0.0) -> Any:
    import os
    import signal
    import time

    if rank == who:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        time.sleep(late)
    t = torch.ones(count)
    dist.all_reduce(t)
    return t.tolist()


def left_over(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Threads and open files of a process, with a group and after it."""
    import os

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    dist.all_reduce(torch.ones(3), async_op=True).wait()
    before, files = threading.active_count(), open_files()
    dist.destroy_process_group()
    return before, threading.active_count(), files, open_files()


# -- DistributedDataParallel --------------------------------------------------------------------------------------
def model(torch: Any) -> Any:
    nn = torch.nn
    made = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 40), nn.LayerNorm(40), nn.ReLU(), nn.Linear(40, 3))
    with torch.no_grad():
        for index, each in enumerate(made.parameters()):
            each.copy_((torch.arange(each.numel()).reshape(each.shape) * 0.37 + index).sin() * 0.2)
    return made


def batch(torch: Any, step: int, rows: slice) -> Any:
    return (torch.arange(24 * 6).reshape(24, 6).float() * 0.11 + step).cos()[rows]


def train(torch: Any, dist: Any, rank: int, size: int, settings: dict[str, Any], accumulate: bool) -> Any:
    """Losses and parameters of a few steps; every rank takes its part of each batch."""
    ddp = torch.nn.parallel.DistributedDataParallel(model(torch), **settings)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    rows = 24 // size
    part = slice(rank * rows, (rank + 1) * rows)
    losses = []
    for step in range(4):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        if accumulate:
            with ddp.no_sync():
                ddp(batch(torch, step + 10, part)).pow(2).mean().backward()
        loss = ddp(batch(torch, step, part)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [each.detach().flatten().tolist() for each in ddp.module.parameters()]


def alone(torch: Any, accumulate: bool) -> Any:
    """The same in one process."""
    made = model(torch)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        if accumulate:
            made(batch(torch, step + 10, slice(None))).pow(2).mean().backward()
        made(batch(torch, step, slice(None))).pow(2).mean().backward()
        optimizer.step()
    return [each.detach().flatten().tolist() for each in made.parameters()]


def unused(torch: Any, dist: Any, rank: int, size: int, find: bool) -> Any:
    """A model of which ranks use different parts."""
    nn = torch.nn

    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any, which: int) -> Any:
            return self.a(x) if which == 0 else self.b(self.a(x))

    made = Parts()
    with torch.no_grad():
        for index, each in enumerate(made.parameters()):
            each.copy_((torch.arange(each.numel()).reshape(each.shape) * 0.7 + index).sin())
    ddp = nn.parallel.DistributedDataParallel(made, find_unused_parameters=find)
    which = rank % 2 if find else 0
    ddp(torch.ones(2, 2), which).sum().backward()
    told = [
        None if each.grad is None else [round(x, 4) for x in each.grad.flatten().tolist()] for each in made.parameters()
    ]
    if not find:
        ddp(torch.ones(2, 2), which)
    return told


def join(torch: Any, dist: Any, rank: int, size: int) -> Any:
    ddp = torch.nn.parallel.DistributedDataParallel(model(torch))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with ddp.join():
        for step in range(1 + rank):
            optimizer.zero_grad()
            ddp(batch(torch, step, slice(0, 4)) + rank).pow(2).mean().backward()
            optimizer.step()
    return [[round(x, 4) for x in each.detach().flatten().tolist()[:20]] for each in ddp.module.parameters()]


def hooked(torch: Any, dist: Any, rank: int, size: int, library: str, name: str) -> Any:
    import importlib

    home = f"{library}.distributed.algorithms.ddp_comm_hooks"
    default: Any = importlib.import_module(f"{home}.default_hooks")
    power: Any = importlib.import_module(f"{home}.powerSGD_hook")
    ddp = torch.nn.parallel.DistributedDataParallel(model(torch))
    if "powerSGD" in name:
        ddp.register_comm_hook(power.PowerSGDState(None, 1, start_powerSGD_iter=2), getattr(power, name))
    else:
        ddp.register_comm_hook(None, getattr(default, name))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        ddp(batch(torch, step, slice(rank * 4, rank * 4 + 4))).pow(2).mean().backward()
        optimizer.step()
    return [each.detach().flatten().tolist() for each in ddp.module.parameters()]


def overlap(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Which buckets were sent before backward had reached the first parameter, and how many there are."""
    ddp = torch.nn.parallel.DistributedDataParallel(model(torch), bucket_cap_mb=0.001)
    first = next(ddp.module.parameters())
    sent: list[int] = []
    ddp(batch(torch, 0, slice(0, 4))).sum().backward()  # after this step buckets are made anew
    with contextlib.ExitStack() as stack:
        handle = first.register_hook(lambda grad: sent.append(ddp.reducer.next_bucket))
        stack.callback(handle.remove)
        ddp(batch(torch, 0, slice(0, 4))).sum().backward()
    return sent[0], len(ddp.reducer.buckets)


_BUCKETS: dict[str, dict[str, Any]] = {
    "plain": {},
    "views": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.01},
    "static": {"static_graph": True, "bucket_cap_mb": 0.01},
    "unused": {"find_unused_parameters": True, "bucket_cap_mb": 0.01},
    "small": {"bucket_cap_mb": 0.01},
    "list": {"bucket_cap_mb_list": [0.002, 0.01]},
    "together": {"batched_grad_copy": True, "bucket_cap_mb": 0.01},
    "skipped": {"find_unused_parameters": True, "skip_all_reduce_unused_params": True, "bucket_cap_mb": 0.001},
}


def buckets(torch: Any, dist: Any, rank: int, size: int, how: str) -> Any:
    """Buckets and what DDP tells of them in four steps of a network whose parts run in another order; gradients."""
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.c, self.b = (nn.Linear(40, 40) for _ in range(3))
            self.left = nn.Linear(3, 3)
            self.d = nn.Linear(40, 5)

        def forward(self, value: Any) -> Any:
            return self.d(self.b(self.a(self.c(value))))

    torch.manual_seed(0)
    network = Network()
    with torch.no_grad():
        for each in network.parameters():
            each.copy_(torch.linspace(-0.1, 0.1, each.numel()).view(each.shape))
    if how not in ("static", "unused", "skipped"):
        del network.left
    ddp = nn.parallel.DistributedDataParallel(network, **_BUCKETS[how])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    seen: list[Any] = []

    def hook(state: Any, bucket: Any) -> Any:
        seen.append((bucket.index(), bucket.is_last(), [each.numel() for each in bucket.parameters()]))
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0] / size)

    hook.__annotations__.clear()  # PyTorch takes its own classes or nothing
    if how == "small":
        ddp.register_comm_hook(None, hook)
    told = []
    for _ in range(4):
        optimizer.zero_grad()
        ddp(torch.full((2, 40), 1.0 + rank)).sum().backward()
        optimizer.step()
        data = ddp._get_ddp_logging_data()
        names = [name for name in data if "bucket" in name or "order" in name or "unused" in name]
        told.append({name: data[name] for name in sorted((*names, "iteration"))})
    grads = [None if each.grad is None else each.grad.sum().item() for each in ddp.parameters()]
    return told, seen, ddp._has_rebuilt_buckets, grads


def delayed(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """Gradients of which some are reduced when that of the input is there."""
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    with torch.no_grad():
        for each in network.parameters():
            each.fill_(0.5 + rank)
    names = [("1.weight", network[1].weight), ("1.bias", network[1].bias)]
    source = torch.nn.Parameter(torch.ones(2, 4))
    settings = {"delay_all_reduce_named_params": names, "param_to_hook_all_reduce": source}
    ddp = torch.nn.parallel.DistributedDataParallel(network, **settings)
    told = []
    for step in range(2):
        ddp(source * (1.0 + rank + step)).sum().backward()
        dist.barrier()
        told.append([each.grad.tolist() for each in ddp.parameters()])
    return told


# -- sharded optimizers, normalization over groups ----------------------------------------------------------------
def zero(torch: Any, dist: Any, rank: int, size: int, library: str) -> Any:
    """Steps with a shared out Adam, its whole state, and that state taken up again."""
    import importlib

    kind: Any = importlib.import_module(f"{library}.distributed.optim").ZeroRedundancyOptimizer
    made = model(torch)
    optimizer = kind(made.parameters(), torch.optim.Adam, lr=0.01)
    for step in range(3):
        if step == 2:
            optimizer.consolidate_state_dict(to=0)
            whole: list[Any] = [optimizer.state_dict() if rank == 0 else None]
            dist.broadcast_object_list(whole, 0)
            optimizer = kind(made.parameters(), torch.optim.Adam, lr=0.5)
            optimizer.load_state_dict(whole[0])
        optimizer.zero_grad()
        made(batch(torch, step, slice(0, 8))).pow(2).mean().backward()
        optimizer.step()
    held = sum(1 for _ in optimizer.optim.state)
    return [each.detach().flatten().tolist() for each in made.parameters()], held, len(whole[0]["state"])


def adam_alone(torch: Any) -> Any:
    made = model(torch)
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        made(batch(torch, step, slice(0, 8))).pow(2).mean().backward()
        optimizer.step()
    return [each.detach().flatten().tolist() for each in made.parameters()]


def sync_batch_norm(torch: Any, dist: Any, rank: int, size: int) -> Any:
    norm = torch.nn.SyncBatchNorm(3)
    x = (torch.arange(12 * 3 * 2).reshape(12, 3, 2).float() * 0.7).sin()
    rows = 12 // size
    mine = x[rank * rows : (rank + 1) * rows].clone().requires_grad_()
    out = norm(mine)
    (out * out * mine.detach()).sum().backward()
    return out.tolist(), mine.grad.tolist(), norm.running_mean.tolist(), norm.running_var.tolist()


def batch_norm_alone(torch: Any, size: int) -> Any:
    norm = torch.nn.BatchNorm1d(3)
    x = (torch.arange(12 * 3 * 2).reshape(12, 3, 2).float() * 0.7).sin().requires_grad_()
    out = norm(x)
    (out * out * x.detach()).sum().backward()
    return out.detach(), x.grad, norm.running_mean.tolist(), norm.running_var.tolist()


def mesh(torch: Any, dist: Any, rank: int, size: int) -> Any:
    """A mesh of 2 x 2, its parts and their groups."""
    made = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    t = torch.ones(1) * rank
    dist.all_reduce(t, group=made.get_group("tp"))
    u = torch.ones(1) * rank
    dist.all_reduce(u, group=made["dp"].get_group())
    flat = made["dp", "tp"]._flatten("all")
    return (
        made.mesh.tolist(),
        made.get_coordinate(),
        made.get_local_rank("tp"),
        t.item(),
        u.item(),
        made["tp"].mesh.tolist(),
        flat.size(),
        made.shape,
        made.size(0),
        made.ndim,
    )
