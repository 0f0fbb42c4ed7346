"""Short calls of what programs use of `torch.distributed`, and what they answer, as plain data.

Invariant: both libraries run the same lines on two ranks; what a line answers, or raises, is the same on both.
"""

from __future__ import annotations

import importlib
from typing import Any

LAYOUTS = """
d(S(0)).redistribute(placements=[R()])
d(S(0)).redistribute(mesh, [S(1)])
d(R()).redistribute(mesh, [P()])
str(d(S(-1)).placements)
loc(P(), A + rank).redistribute(mesh, [R()])
loc(P("avg"), A + rank).redistribute(mesh, [S(0)])
loc(P("max"), A + rank).full_tensor()
loc(P("min"), A + rank) + 1
loc(P(), A) * 2
loc(P(), A) + loc(P(), A)
loc(P(), A) + d(R())
loc(P(), A) * loc(P(), A)
torch.relu(loc(P(), A - 10))
d(S(2))
d(S(-3))
T.DTensor.from_local(A[:3] if rank == 0 else A[3:], mesh, [S(0)], shape=A.shape, stride=A.stride())
T.DTensor.from_local(A, mesh, [S(0)], shape=(5, 4))
str(T.DTensor.from_local(A[:3], mesh, [S(0)]).shape)
gradient(d(S(0)), lambda t: t.to_local())
d(S(0)) + A
d(S(0)).sum().item()
repr(d(S(0), torch.ones(4)))
len(d(S(0)))
[tuple(x.shape) for x in d(S(1))]
d(S(0)) @ d(R(), A.t().contiguous())
d(S(1)) @ d(S(0), A.t().contiguous())
[d(S(0)).sum(0), d(S(0)).sum(1), d(S(0)).mean(), d(S(0)).max(), d(S(0)).argmax()]
[d(S(0)).softmax(0), d(S(0)).t(), d(S(1)).clone(), d(S(0))[1:3], d(S(0)).add_(d(R()))]
torch.cat([d(S(0)), d(S(0))])
list(d(S(0)).topk(2))
nn.functional.layer_norm(d(S(0)), (4,))
torch.linalg.vector_norm(d(S(0)))
T.zeros(5, 4, device_mesh=mesh, placements=[S(0)])
T.ones((5, 4), dtype=torch.int64, device_mesh=mesh, placements=[R()])
T.full((3,), 2.0, device_mesh=mesh, placements=[S(0)])
par.parallelize_module(model(), mesh, {"0": par.ColwiseParallel(), "2": par.RowwiseParallel()})(A)
par.parallelize_module(nn.Sequential(nn.LayerNorm(4)), mesh, {"0": par.SequenceParallel(sequence_dim=0)})(A[:4])
entropy(d(S(1)).requires_grad_(), torch.tensor([0, 1, 2, 3, 0]))
entropy(d(S(1)).requires_grad_(), d(R(), torch.tensor([0, 1, 2, 3, 0])))
entropy(d(S(1), A.view(5, 2, 2).sin()).requires_grad_(), torch.tensor([[0, 1], [1, 1], [0, 0], [1, -100], [0, 1]]))
entropy(d(S(1), A.view(5, 2, 2, 1).sin()).requires_grad_(), torch.ones(5, 2, 1).long(), reduction="sum")
entropy(d(S(0), A[0]).requires_grad_(), torch.tensor(2))
str(mesh["x"])
mesh["y"]
str(dm.init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))._flatten("ab"))
[mesh.get_rank(), mesh.get_local_rank(), mesh.size(), mesh.ndim, str(mesh.shape), list(mesh.get_coordinate())]
str(dm.init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))["a", "b"])
dm.init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))["b", "a"]
dm.init_device_mesh("cpu", (3,))
dm.init_device_mesh("cpu", (2,), mesh_dim_names=("a", "b"))
dm.init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "a"))
dm.init_device_mesh("cpu:0", (2,))
str(dm.DeviceMesh.from_group(dist.group.WORLD, "cpu"))
"""
CALLS = """
fc.all_reduce(A + rank, "sum", mesh)
fc.all_gather_tensor(A + rank, 1, mesh)
fc.reduce_scatter_tensor(A[:4] + rank, "avg", 0, mesh)
fc.all_to_all_single(A[:4] + 10 * rank, [1, 3] if rank == 0 else [3, 1], [1, 3] if rank == 0 else [3, 1], mesh)
fc.broadcast(A + rank, 1, mesh)
list(fc.all_reduce_coalesced([A + rank, A * 2], "sum", mesh))
gradient(A, lambda x: fc.all_gather_tensor_autograd(x, 0, mesh) * (rank + 1.0))
fc.all_reduce(A, "foo", mesh)
fc.all_reduce(A, "sum", 3)
gradient(A, lambda x: nf.all_reduce(x.clone()) * (rank + 1))
gradient(A, lambda x: sum((i + 1) * t for i, t in enumerate(nf.all_gather(x))))
gradient(A, lambda x: nf.broadcast(x, 0) * (rank + 1))
gradient(A, lambda x: nf.reduce(x, 0) * (rank + 1))
gradient(A, lambda x: nf.scatter([x, x * 2], 0) * (rank + 2.0))
gradient(A, lambda x: sum(t * (i + 1) for i, t in enumerate(nf.all_to_all([x.new_zeros(5, 4)] * 2, [x, 3 * x]))))
trained(DDP(model()))
trained(DDP(model(), gradient_as_bucket_view=True))
trained(DDP(model(), static_graph=True))
trained(DDP(model(), find_unused_parameters=True))
trained(DDP(model(), bucket_cap_mb=1e-5))
DDP(nn.ReLU())
DDP(model(), device_ids=[0])
DDP(model()).register_comm_hook(None, 3)
DDP(model()).register_comm_hook(None, lambda a: a)
trained(split())
trained(split(reshard_after_forward=False))
trained(split(reshard_after_forward=2))
trained(split(mp_policy=fs.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)))
trained(split(mesh=mesh))
trained(split(shard_placement_fn=lambda p: S(p.dim() - 1)))
trained(split(offload_policy=fs.CPUOffloadPolicy(pin_memory=False)))
fs.fully_shard(fs.fully_shard(model()))
fs.fully_shard(model(), reshard_after_forward=3)
fs.fully_shard(nn.ModuleList([nn.Linear(2, 2)]))
shares()
shares(parameters_as_bucket_view=True)
optim.ZeroRedundancyOptimizer([], torch.optim.Adam)
optim.ZeroRedundancyOptimizer(model().parameters(), torch.optim.Adam).state_dict()
join.Join([])
list(samplers.DistributedSampler(list(range(7)), shuffle=True, seed=3))
list(samplers.DistributedSampler(list(range(7)), shuffle=False, drop_last=True))
samplers.DistributedSampler([1], num_replicas=2, rank=5)
loaded()
"""


def shown(torch: Any, kind: Any, value: Any) -> Any:
    """A value as plain data; a tensor with what can be seen of it."""
    if isinstance(value, kind):
        local = tuple(value.to_local().shape)
        places = (str(value.placements), tuple(value.shape), tuple(value.stride()), local)
        return [*places, shown(torch, kind, value.full_tensor())]
    if isinstance(value, torch.Tensor):
        told = [round(float(each), 3) for each in value.detach().flatten().tolist()]
        return [str(value.dtype).rpartition(".")[2], tuple(value.shape), told]
    if isinstance(value, (list, tuple)):
        return [shown(torch, kind, each) for each in value]
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def _rooms(torch: Any, dist: Any) -> dict[str, Any]:
    """Modules and classes by the names that lines have for them."""
    rooms = {
        "T": "distributed.tensor",
        "par": "distributed.tensor.parallel",
        "dm": "distributed.device_mesh",
        "fs": "distributed.fsdp",
        "fc": "distributed._functional_collectives",
        "nf": "distributed.nn.functional",
        "optim": "distributed.optim",
        "join": "distributed.algorithms.join",
        "data": "utils.data",
        "samplers": "utils.data.distributed",
    }
    found = {name: importlib.import_module(f"{torch.__name__}.{home}") for name, home in rooms.items()}
    layouts: Any = found["T"]
    kinds = {"S": layouts.Shard, "R": layouts.Replicate, "P": layouts.Partial}
    return {
        **found,
        **kinds,
        "torch": torch,
        "dist": dist,
        "nn": torch.nn,
        "DDP": torch.nn.parallel.DistributedDataParallel,
    }


def _gradient(value: Any, function: Any) -> Any:
    x = value.detach().clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


class _Runs:
    """Small trainings that lines ask for."""

    def __init__(self, names: dict[str, Any], rows: Any, rank: int) -> None:
        self.names, self.rows, self.rank = names, rows, rank
        self.torch: Any = names["torch"]

    def model(self) -> Any:
        self.torch.manual_seed(0)
        nn = self.torch.nn
        return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

    def _steps(self, made: Any, optimizer: Any) -> list[float]:
        losses = []
        for _ in range(2):
            loss = made(self.rows / 20 + self.rank).float().square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(round(float(loss), 3))
        return losses

    def trained(self, made: Any) -> Any:
        return self._steps(made, self.torch.optim.SGD(made.parameters(), lr=0.01))

    def shares(self, **options: Any) -> Any:
        made = self.names["DDP"](self.model())
        kind = self.names["optim"].ZeroRedundancyOptimizer
        self._steps(made, kind(made.parameters(), self.torch.optim.Adam, lr=0.1, **options))
        return [each.detach() for each in made.parameters()]

    def split(self, **options: Any) -> Any:
        made = self.model()
        self.names["fs"].fully_shard(made[0], **options)
        return self.names["fs"].fully_shard(made, **options)

    def entropy(self, scores: Any, target: Any, **options: Any) -> Any:
        with self.names["par"].loss_parallel():
            loss = self.torch.nn.functional.cross_entropy(scores, target, **options)
            loss.backward()
        return [loss, scores.grad]

    def loaded(self) -> Any:
        data, given = self.names["data"], self.names["data"].TensorDataset(self.rows)
        return list(data.DataLoader(given, 2, sampler=self.names["samplers"].DistributedSampler(given, shuffle=False)))


def _tools(torch: Any, dist: Any, rank: int) -> dict[str, Any]:
    """The names that lines use."""
    names, rows = _rooms(torch, dist), torch.arange(20.0).reshape(5, 4)
    layouts, mesh = names["T"], names["dm"].init_device_mesh("cpu", (2,), mesh_dim_names=("x",))
    runs = _Runs(names, rows, rank)
    for each in ("model", "trained", "shares", "split", "entropy", "loaded"):
        names[each] = getattr(runs, each)
    return {
        **names,
        "rank": rank,
        "mesh": mesh,
        "A": rows,
        "gradient": _gradient,
        "d": lambda place, t=rows: layouts.distribute_tensor(t.clone(), mesh, [place]),
        "loc": lambda place, t: layouts.DTensor.from_local(t, mesh, [place], run_check=False),
    }


def answers(torch: Any, dist: Any, rank: int, size: int, lines: str) -> Any:
    """What each line gives, or what it raises."""
    names, found = _tools(torch, dist, rank), []
    for line in lines.strip().splitlines():
        try:
            found.append(shown(torch, names["T"].DTensor, eval(line, dict(names))))
        except Exception as error:
            told = str(error).split("\nException raised")[0].replace("mindtorch_v2.", "torch.")
            found.append([type(error).__name__, told[:200]])
    return found
