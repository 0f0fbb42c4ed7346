"""Every program of examples/ runs and learns what it sets out to learn; on the NPU it takes a few steps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .. import _npu
from .._subject import mindtorch_only
from ..profiler._format import check
from ._run import ROOT, run

pytestmark = mindtorch_only

SHARED = {"chart.py", "common.py"}
# What the last line must say, as numbers between two limits.
LEARNS = {
    "images.py": (["--steps", "60"], r"accuracy ([\d.]+)", 0.85, 1.0),
    "vit.py": (["--steps", "120"], r"accuracy ([\d.]+)", 0.6, 1.0),
    "lstm.py": (["--steps", "60"], r"loss from [\d.]+ to ([\d.]+)", 1.0, 2.7),
    "vae.py": (["--steps", "80"], r"bound from [\d.]+ to ([\d.]+)", 20, 85),
    "gan.py": (["--steps", "600"], r"([\d]+)% of the points", 30, 100),
    "own_device.py": ([], r"loss ([\d.]+)$", 0.0, 0.05),
}
TRAINING = ["images.py", "vit.py", "lstm.py", "vae.py", "gan.py"]
ELSEWHERE = {"demo.py", "autograd_function.py", "custom_operator.py", "killed.py", "profiling.py"}  # below; test_demo
ELSEWHERE |= {"several.py", "several_ray.py"}  # distributed/test_jobs


def test_every_example_is_run_and_described() -> None:
    files = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert files == SHARED | set(LEARNS) | ELSEWHERE
    text = (ROOT / "examples" / "README.md").read_text()
    assert [name for name in sorted(files) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", LEARNS)
def test_learns(name: str, tmp_path: Path) -> None:
    arguments, pattern, low, high = LEARNS[name]
    printed = run(name, *arguments, folder=tmp_path)
    (found,) = re.findall(pattern, printed.splitlines()[-1])
    assert low <= float(found) <= high, printed


@pytest.mark.parametrize("name", TRAINING)
@_npu.emulator_only
def test_a_step_on_the_npu(name: str, tmp_path: Path) -> None:
    assert run(name, "--device", "npu", "--steps", 1, folder=tmp_path, MINDTORCH_NPU="")


def test_what_a_vae_draws(tmp_path: Path) -> None:
    run("vae.py", "--steps", 2, folder=tmp_path)
    assert (tmp_path / "vae.png").read_bytes().startswith(b"\x89PNG")


def test_autograd_function() -> None:
    printed = run("autograd_function.py")
    assert "differences: True; second derivatives: True" in printed and "rounding found 5" in printed


@pytest.mark.parametrize("device", ["cpu", pytest.param("npu", marks=_npu.emulator_only)])
def test_custom_operator(device: str) -> None:
    printed = run("custom_operator.py", "--device", device, MINDTORCH_NPU="")
    assert printed.count("SUCCESS") == 4 and re.search(rf"on {device} +True", printed)


def test_killed() -> None:
    printed = run("killed.py", "--steps", 40, "--kills", 2)
    assert printed.splitlines()[-1] == "killed 2 times; the weights are equal"
    assert printed.count("goes on after step") == 2


def test_profiling(tmp_path: Path) -> None:
    printed = run("profiling.py", "--steps", 1, folder=tmp_path)
    assert "aten::convolution" in printed and "make pictures" in printed
    events = check(json.loads((tmp_path / "trace.json").read_text()))
    assert {"make pictures", "ProfilerStep#2"} <= {e["name"] for e in events}
