"""`torchrun`: workers are started, watched, started again, and what they raise is told."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


# -- every option -----------------------------------------------------------------------------------------------------
def test_options_are_pytorchs(oracle: Any) -> None:
    """Their names in both spellings, their defaults, and what they are in the environment."""
    found, want = (
        {
            name: (action.default, action.nargs, action.choices)
            for action in importlib.import_module(f"{library}.distributed.run").get_args_parser()._actions
            for name in action.option_strings
        }
        for library in ("mindtorch_v2", "torch")
    )
    assert found == want


TELLS = r"""
import os, sys
names = sys.argv[1].split(",")
sys.stdout.write(" ".join(["out", *(str(os.environ.get(name)) for name in names), *sys.argv[2:]]) + "\n")
print("apple" if os.environ["RANK"] == "1" else "pear", file=sys.stderr)
"""


def told(folder: Path, *arguments: str, names: str = "RANK", module: str = "run", **environment: str) -> Any:
    script = folder / "tells.py"
    script.write_text(TELLS)
    command = [sys.executable, "-m", f"mindtorch_v2.distributed.{module}", "--nproc-per-node", "2", *arguments]
    return subprocess.run(
        [*command, str(script), names], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_output_of_some_workers_is_seen(tmp_path: Path) -> None:
    done = told(tmp_path, "--standalone", "--local-ranks-filter=1", "--tee=2", "--log-dir", str(tmp_path / "logs"))
    assert done.returncode == 0 and lines(done.stdout) == ["out 1"] and "[default1]:apple" in done.stderr
    assert "pear" not in done.stderr
    kept = {path.parts[-2]: path.read_text() for path in (tmp_path / "logs").rglob("stderr.log")}
    assert kept == {"0": "pear\n", "1": "apple\n"}
    wrong = told(tmp_path, "--standalone", "--local-ranks-filter=x")
    assert wrong.returncode == 1 and "ValueError: --local_ranks_filter must be a comma-separated list" in wrong.stderr


def test_lines_are_kept_by_their_words(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    options = ("--standalone", "--tee=3", "--log-dir", str(logs), "--duplicate-stderr-filters", "apple,plum")
    done = told(tmp_path, *options, TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE="[${role_name}-${rank}] ")
    assert done.returncode == 0 and lines(done.stdout) == ["[default-0] out 0", "[default-1] out 1"]
    assert [path.read_text() for path in logs.rglob("filtered_*.log")] == ["[default-1] apple\n"]


def test_a_worker_sees_its_own_device(tmp_path: Path) -> None:
    names = "LOCAL_RANK,ASCEND_RT_VISIBLE_DEVICES"
    done = told(tmp_path, "--standalone", "--virtual-local-rank", names=names, ASCEND_RT_VISIBLE_DEVICES="4, 6,7")
    assert done.returncode == 0 and lines(done.stdout) == ["out 0 4", "out 0 6"]
    done = told(tmp_path, "--standalone", "--virtual-local-rank", names=names, ASCEND_RT_VISIBLE_DEVICES="4")
    assert done.returncode == 1 and "local_rank 1 exceeds available NPUs" in done.stderr


def test_a_script_in_the_same_interpreter(tmp_path: Path) -> None:
    done = told(tmp_path, "--standalone", "--run-path", "--redirects=1", "--log-dir", str(tmp_path / "logs"))
    assert done.returncode == 0, done.stderr
    assert sorted(path.read_text() for path in (tmp_path / "logs").rglob("stdout.log")) == ["out 0\n", "out 1\n"]


def test_the_former_launcher_tells_the_place(tmp_path: Path) -> None:
    done = told(tmp_path, "--master-port=0", module="launch")
    assert done.returncode == 0 and "FutureWarning" in done.stderr
    # The place comes before the script's own arguments.
    assert lines(done.stdout) == ["out None RANK"] * 2
    done = told(tmp_path, "--master-port=0", "--use-env", module="launch")
    assert lines(done.stdout) == ["out 0", "out 1"]


def test_nodes_are_numbered_as_they_come(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mindtorch_v2.torch", "-q", "-m", "torch.distributed.run", "--nnodes=2"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=job", "--rdzv-conf=timeout=60"]
    agents = [subprocess.Popen([*command, str(script), "0"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        printed = [agent.communicate(timeout=120)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    assert sorted(printed) == [f"rank {rank} of 2 3.0 0\n" for rank in range(2)]
    assert [agent.returncode for agent in agents] == [0, 0]


WRONG = {
    "--rdzv-backend=zeus": "ValueError: The rendezvous backend 'zeus' is not registered",
    "--rdzv-conf=timeout": "ValueError: The rendezvous configuration string must be in format",
    "--nnodes=0": "AssertionError: min_nodes must be > 0",
    "--max-restarts=-1": "AssertionError: max_restarts must be >= 0",
    "--logs-specs=none": "ValueError: Could not find entrypoint under 'torchrun.logs_specs[none]' key",
    "--numa-binding=node": "NotImplementedError: --numa-binding is not served",
    "--event-log-handler=console": "NotImplementedError: LaunchConfig(): argument 'event_log_handler' must be 'null'",
    "--nnodes=1:2": "NotImplementedError: --nnodes=1:2: a number of nodes that changes is not served",
    "--signals-to-handle=SIGNONE": "ValueError: signals_to_handle: there is no signal SIGNONE",
}


@pytest.mark.parametrize("option", WRONG)
def test_wrong_options(tmp_path: Path, option: str) -> None:
    done = told(tmp_path, "--master-port=0", option)
    assert done.returncode == 1 and WRONG[option] in done.stderr, done.stderr
