"""Training that survives being killed: a process trains, another kills it again and again, and nothing is lost.

Every few steps the worker saves model, optimizer, step and random state. Saving to a path replaces the file whole or
not at all, so there is always a checkpoint to go on from. The weights at the end are those of a run nobody disturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def train(path: Path, steps: int, every: int, pause: float) -> nn.Module:
    """Train up to `steps`, from the checkpoint if there is one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    done = 0
    if path.exists():
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        done = state["step"]
        print(f"  process {os.getpid()} goes on after step {done}", flush=True)
    while done < steps:
        x = torch.rand(64, 2) * 4 - 2
        loss = nn.functional.mse_loss(model(x), (x[:, :1] * x[:, 1:]).sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        time.sleep(pause)
        if done % every == 0 or done == steps:
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "random": torch.get_rng_state(),
                    "step": done,
                },
                path,
            )
    print(f"  process {os.getpid()} has finished, loss {loss.item() if steps else 0:.4f}", flush=True)
    return model


def step_of(path: Path) -> int:
    return torch.load(path)["step"] if path.exists() else 0


def disturbed(path: Path, steps: int, every: int, kills: int) -> int:
    """Start workers until one finishes; kill the first `kills` of them at a random moment after some progress."""
    killed = 0
    command = [sys.executable, __file__, "--worker", str(path), "--steps", str(steps), "--every", str(every)]
    while True:
        before = step_of(path)
        # A worker that may live hurries; the others give us the time to kill them.
        worker = subprocess.Popen([*command, "--pause", "0.02" if killed < kills else "0"])
        while killed < kills and worker.poll() is None and step_of(path) < before + every:
            time.sleep(0.01)
        if killed < kills and worker.poll() is None:
            time.sleep(random.random() * 0.1)
            worker.send_signal(signal.SIGKILL)
        if worker.wait() == 0:
            return killed
        killed += 1
        print(f"  process {worker.pid} was killed; the checkpoint says step {step_of(path)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--worker", type=Path)
    given = parser.parse_args()
    if given.worker:
        train(given.worker, given.steps, given.every, given.pause)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        print("Undisturbed:")
        whole = train(Path(folder) / "whole.pt", given.steps, given.every, 0.0).state_dict()
        print("Killed on the way:")
        path = Path(folder) / "checkpoint.pt"
        killed = disturbed(path, given.steps, given.every, given.kills)
        pieces = torch.load(path)["model"]
    equal = all(torch.equal(whole[name], pieces[name]) for name in whole)
    print(f"killed {killed} times; the weights are {'equal' if equal else 'DIFFERENT'}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
