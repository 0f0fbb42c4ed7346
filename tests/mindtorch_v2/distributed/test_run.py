"""`torchrun`: workers are started, watched, started again, and what they raise is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .._subject import mindtorch_only

pytestmark = mindtorch_only

WORKER = """
import os, sys
import torch, torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    dist.init_process_group("gloo")
    t = torch.ones(1) * (dist.get_rank() + 1)
    dist.all_reduce(t)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), t.item(), os.environ["LOCAL_RANK"], flush=True)
    if dist.get_rank() == 1 and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < int(sys.argv[1]):
        raise ValueError("on purpose")
    dist.destroy_process_group()

main()
"""


def torchrun(folder: Path, *arguments: str, failures: int) -> subprocess.CompletedProcess[str]:
    script = folder / "worker.py"
    script.write_text(WORKER)
    command = [sys.executable, "-m", "mindtorch_v2.torch", "-q", "-m", "torch.distributed.run"]
    command += ["--standalone", "--nproc-per-node", "2", *arguments, str(script), str(failures)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_worker_that_fails_once_is_started_again(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    done = torchrun(tmp_path, "--max-restarts=1", "--log_dir", str(logs), "--redirects", "1", failures=1)
    assert done.returncode == 0, done.stderr
    kept = sorted(path.relative_to(logs).parts[1:] for path in logs.rglob("stdout.log"))
    assert kept == [(f"attempt_{a}", str(rank), "stdout.log") for a in (0, 1) for rank in (0, 1)]
    for path in logs.rglob("attempt_1/*/stdout.log"):
        rank = path.parts[-2]
        assert path.read_text() == f"rank {rank} of 2 3.0 {rank}\n"


def test_what_a_worker_raised_is_told(tmp_path: Path) -> None:
    done = torchrun(tmp_path, failures=9)
    assert done.returncode == 1
    cause = done.stderr.partition("Root Cause (first observed failure):")[2]
    assert "rank      : 1 (local_rank: 1)" in cause and "ValueError: on purpose" in cause
