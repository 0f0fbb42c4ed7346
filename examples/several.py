"""Training on several processes that begins again where it stopped: DistributedDataParallel and a checkpoint.

    python -m mindtorch_v2.distributed.run --standalone --nproc-per-node 2 --max-restarts 3 examples/several.py

The environment says who this process is (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), whoever starts it:
torchrun, `several_slurm.sh`, `several_ray.py`. With `--device npu` the group is `hccl`, and each process has a device.
"""

from __future__ import annotations

import argparse
import os

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist


def train(steps: int, path: str, device: str) -> float:
    """The loss after so many steps, of which some may have been done by earlier processes."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device == "npu":
        torch.npu.set_device(local)
        device = f"npu:{local}"
    dist.init_process_group("hccl" if device != "cpu" else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.05)
    first = 0
    if os.path.exists(path):
        kept = torch.load(path, map_location=device)
        layers.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = int(kept["step"])
    model = torch.nn.parallel.DistributedDataParallel(layers)
    x = torch.randn(24, 4, generator=torch.Generator().manual_seed(1)).to(device)
    y = x.square().sum(1, keepdim=True)
    mine = slice(rank * len(x) // size, (rank + 1) * len(x) // size)
    for step in range(first, steps):
        optimizer.zero_grad()
        (model(x[mine]) - y[mine]).square().mean().backward()
        optimizer.step()
        if rank == 0:  # a file is whole or not there, whenever the process ends
            torch.save(
                {"model": layers.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, path + ".new"
            )
            os.replace(path + ".new", path)
        dist.barrier()
        stumble(rank, step)
    loss = float((layers(x) - y).square().mean())
    if rank == 0:
        print(f"{size} processes, steps {first} to {steps}, loss {loss:.6f}", flush=True)
    dist.destroy_process_group()
    return loss


def stumble(rank: int, step: int) -> None:
    """For trying it out: SEVERAL_KILL="1:3" ends rank 1 after step 3, the first time it gets there."""
    told = os.environ.get("SEVERAL_KILL", "")
    if told == f"{rank}:{step}" and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        os.kill(os.getpid(), 9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--checkpoint", default="several.pt")
    parser.add_argument("--device", default="cpu", choices=["cpu", "npu"])
    given = parser.parse_args()
    train(given.steps, given.checkpoint, given.device)
