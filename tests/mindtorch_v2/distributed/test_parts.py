"""Optimizers in shares, normalization over groups, and meshes of ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import SUBJECT_NAME, mindtorch_only
from .._subject import subject as torch
from . import _programs
from ._ranks import Ranks


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 4)
    yield made
    made.close()


def test_shares_of_an_optimizer(ranks: Ranks) -> None:
    want = _programs.adam_alone(torch)
    found = ranks.values("zero", SUBJECT_NAME)
    assert sum(held for _, held, _ in found) == len(want)
    for parameters, held, whole in found:
        assert held < len(want) and whole == len(want)
        for mine, theirs in zip(parameters, want):
            assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-6)


@mindtorch_only  # PyTorch's is for accelerators
def test_statistics_of_all_ranks(ranks: Ranks) -> None:
    out, grad, mean, var = _programs.batch_norm_alone(torch, 4)
    for rank, found in enumerate(ranks.values("sync_batch_norm")):
        part = slice(rank * 3, rank * 3 + 3)
        assert torch.tensor(found[0]).sub(out[part]).abs().max() < 1e-5
        assert torch.tensor(found[1]).sub(grad[part]).abs().max() < 1e-4
        assert found[2] == pytest.approx(mean, abs=1e-6) and found[3] == pytest.approx(var, rel=1e-5)


def test_a_mesh(ranks: Ranks) -> None:
    for rank, found in enumerate(ranks.values("mesh")):
        row, column = divmod(rank, 2)
        sums = (float(row * 4 + 1), float(column * 2 + 2))
        parts = ([[0, 1], [2, 3]], (row, column), column, *sums, [row * 2, row * 2 + 1])
        assert found == (*parts, 4, (2, 2), 2, 2)


REFUSED = [
    "distributed.tensor.debug.visualize_sharding(None)",
    "distributed.rpc.init_rpc(None)",
    "distributed.optim.DistributedOptimizer(None)",
    "distributed.pipelining.pipeline(None)",
    "distributed.shrink_group([])",
]


@mindtorch_only
@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_served_is_refused_by_name(line: str) -> None:
    import importlib

    path = line.partition("(")[0]
    room = path.partition(".Fully")[0] if ".Fully" in path else path.rpartition(".")[0]
    home: Any = importlib.import_module(f"mindtorch_v2.{room}")
    with pytest.raises(NotImplementedError, match=path.rpartition(".")[2]):
        eval(f"home.{line[len(room) + 1 :]}", {"home": home})


@mindtorch_only
def test_one_process_that_looks_like_three() -> None:
    from mindtorch_v2 import distributed

    dist: Any = distributed
    dist.init_process_group("fake", rank=1, world_size=3)
    try:
        x = torch.arange(3.0)
        dist.all_reduce(x)
        outs = [torch.zeros(3) for _ in range(3)]
        dist.all_gather(outs, x)
        part = torch.zeros(1)
        dist.reduce_scatter_single(part, x)
        assert x.tolist() == [0, 1, 2] and [each.tolist() for each in outs] == [[0, 1, 2]] * 3
        assert part.tolist() == [1.0] and dist.get_world_size() == 3 and dist.get_backend() == "fake"
        assert dist.new_group([0, 2]) == dist.GroupMember.NON_GROUP_MEMBER
        sampler = torch.utils.data.DistributedSampler(range(9), shuffle=False)
        assert list(sampler) == [1, 4, 7]
    finally:
        dist.destroy_process_group()


@mindtorch_only
def test_without_mpi_the_error_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['mpi4py'] = sys.modules['mpi4py.MPI'] = None\n"
        "import mindtorch_v2.distributed as dist\n"
        "try:\n    dist.init_process_group('mpi')\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "doesn't have MPI built in" in done.stdout and "pip install mpi4py mpich" in done.stdout, done.stderr


@mindtorch_only
def test_without_a_name_cpus_have_gloo_and_npus_hccl() -> None:
    code = (
        "import mindtorch_v2 as torch, mindtorch_v2.distributed as dist\n"
        "dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)\n"
        "device, host = torch.ones(3, device='npu'), torch.ones(2)\n"
        "dist.all_reduce(device)\ndist.all_reduce(host)\n"
        "print(dist.get_backend_config(), device.tolist(), host.tolist(), dist.is_backend_available('hccl'))\n"
        "dist.destroy_process_group()\n"
    )
    env = {**os.environ, "MINDTORCH_NPU": os.environ.get("MINDTORCH_NPU") or "emulator"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout == "cpu:gloo,npu:hccl [1.0, 1.0, 1.0] [1.0, 1.0] True\n", done.stderr


NAMED = [
    *("tensor", "tensor.parallel", "tensor.placement_types", "tensor.experimental", "tensor.device_mesh"),
    *("tensor.debug", "tensor.parallel.api", "tensor.parallel.style", "tensor.parallel.loss", "fsdp", "fsdp.wrap"),
    *("fsdp.api", "fsdp.fully_sharded_data_parallel", "checkpoint.state_dict", "checkpoint.stateful"),
    *("checkpoint.filesystem", "checkpoint.metadata", "checkpoint.planner", "checkpoint.default_planner"),
    *("checkpoint.format_utils", "checkpoint.optimizer", "checkpoint.hf_storage", "checkpoint.storage"),
    *("checkpoint.api", "checkpoint.state_dict_saver", "checkpoint.state_dict_loader", "checkpoint.utils"),
    *("checkpoint.planner_helpers", "checkpoint.staging", "pipelining", "pipelining.stage"),
    *("pipelining.schedules", "pipelining.microbatch", "launcher.api", "elastic.rendezvous"),
]


@mindtorch_only
@pytest.mark.parametrize("name", NAMED)
def test_public_names_are_there(oracle: Any, name: str) -> None:
    import importlib

    mine = importlib.import_module(f"mindtorch_v2.distributed.{name}")
    theirs = importlib.import_module(f"torch.distributed.{name}")
    assert [each for each in theirs.__all__ if not hasattr(mine, each)] == []


UNSERVED = [
    *("elastic.rendezvous.RendezvousParameters", "elastic.agent.server.WorkerSpec"),
    *("elastic.timer.expires", "elastic.events.record", "elastic.metrics.put_metric", "_shard.shard_parameter"),
    "_shard.sharded_tensor.ShardedTensor",
]


@mindtorch_only
@pytest.mark.parametrize("name", UNSERVED)
def test_what_is_not_served_says_so_by_name(name: str) -> None:
    import importlib

    room, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(f"mindtorch_v2.distributed.{room}"), last)
    with pytest.raises(NotImplementedError, match=f"{last} is not served"):
        found()
    if isinstance(found, type):
        assert not isinstance(3, found)


def _wrapped(torch: Any, wrapper: Any, kind: str) -> Any:
    """Names, result and gradients of a model with wrapped layers, and of the same loaded from its state."""
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(3, 4, dtype=torch.float64), torch.nn.Tanh())
    model = torch.nn.Sequential(inner, torch.nn.Linear(4, 2, dtype=torch.float64))
    for at, param in enumerate(model.parameters()):
        torch.nn.init.constant_(param, 0.1 * (at + 1))
    plain = [name for name, _ in model.named_parameters()]
    if kind == "offload":
        model[0] = wrapper.offload_wrapper(model[0])
    elif kind == "policy":
        wrapper.apply_activation_checkpointing(
            model, auto_wrap_policy=lambda module, recurse, nonwrapped_numel: recurse or nonwrapped_numel > 12
        )
    else:
        made = getattr(wrapper.CheckpointImpl, kind)
        wrapper.apply_activation_checkpointing(
            model,
            lambda module: wrapper.checkpoint_wrapper(module, made),
            lambda module: isinstance(module, torch.nn.Linear),
        )
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    out = model(x)
    out.sum().backward()
    state = model.state_dict()
    model.load_state_dict({name: value * 2 for name, value in state.items()})
    kinds = [type(module).__name__ for module in model.modules()]
    names = [name for name, _ in model.named_parameters()]
    again = model(x).tolist()
    return plain, kinds, names, list(state), out.tolist(), x.grad.tolist(), again, model[0][0].in_features


@mindtorch_only
@pytest.mark.parametrize("kind", ["NO_REENTRANT", "REENTRANT", "offload", "policy"])
def test_wrapped_modules_as_pytorchs(oracle: Any, kind: str) -> None:
    import importlib

    home = "distributed.algorithms._checkpoint.checkpoint_wrapper"
    mine = importlib.import_module("mindtorch_v2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = _wrapped(mine, importlib.import_module(f"mindtorch_v2.{home}"), kind)
        want = _wrapped(oracle, importlib.import_module(f"torch.{home}"), kind)
    assert got[:4] == want[:4] and got[7] == want[7]
    for a, b in zip(got[4:7], want[4:7]):
        for one, two in zip(a, b):
            assert one == pytest.approx(two)
