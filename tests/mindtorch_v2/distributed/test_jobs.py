"""`examples/several.py`, by torchrun, Slurm's script and Ray: the same losses, and a lost process is made good."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .._subject import mindtorch_only

pytestmark = mindtorch_only

EXAMPLES = Path(__file__).parents[3] / "examples"
TORCHRUN = ["-m", "mindtorch_v2.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
# What stands for Slurm here: the first names this machine, the second starts as many tasks as the job has.
SCONTROL = "#!/bin/bash\necho localhost\n"
SRUN = """#!/bin/bash
shift
for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task SLURM_LOCALID=$task "$@" & done
for ((task = 0; task < SLURM_NTASKS; task++)); do wait -n || exit 1; done
"""


def ended(folder: Path, *command: str, **environment: str) -> str:
    """What a command prints that ends well."""
    path = os.pathsep.join(str(Path(part).resolve()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep))
    env = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def told(folder: Path, *command: str, **environment: str) -> tuple[str, str]:
    """The steps and the loss that the last processes print."""
    printed = ended(folder, *command, **environment)
    found = re.findall(r"2 processes, (steps \d+ to \d+), loss ([\d.]+)", printed)
    assert len(found) == 1, printed
    steps, loss = found[0]
    return str(steps), str(loss)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    steps, loss = told(tmp_path_factory.mktemp("plain"), sys.executable, *TORCHRUN, str(EXAMPLES / "several.py"))
    assert steps == "steps 0 to 20" and float(loss) < 8.0
    return loss


def test_a_killed_worker_is_started_again_and_goes_on(undisturbed: str, tmp_path: Path) -> None:
    shared = set(os.listdir("/dev/shm"))
    script = str(EXAMPLES / "several.py")
    steps, loss = told(tmp_path, sys.executable, *TORCHRUN, script, SEVERAL_KILL="1:3")
    assert steps == "steps 4 to 20" and loss == undisturbed
    assert os.listdir(tmp_path) == ["several.pt"] and set(os.listdir("/dev/shm")) - shared == set()


def test_slurm(undisturbed: str, tmp_path: Path) -> None:
    programs, work = tmp_path / "programs", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    for name, text in (("scontrol", SCONTROL), ("srun", SRUN)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    job = {"SLURM_JOB_NODELIST": "node[1]", "SLURM_JOB_ID": str(os.getpid()), "SLURM_NTASKS": "2"}
    job |= {"PYTHON": sys.executable, "SEVERAL_SCRIPT": str(EXAMPLES / "several.py")}
    job["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    assert told(work, "bash", str(EXAMPLES / "several_slurm.sh"), **job) == ("steps 0 to 20", undisturbed)


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install ray")
def test_ray(undisturbed: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "several_ray.py"), "--checkpoint", str(tmp_path / "several.pt")]
    # Ray keeps a file in the home folder.
    printed = ended(tmp_path, *command, HOME=str(tmp_path))
    losses = re.findall(r"losses \[([\d.]+), ([\d.]+)\]", printed)
    assert [f"{float(loss):.6f}" for loss in losses[0]] == [undisturbed] * 2
