"""libhccl.so and the functions with collectives inside: ranks that are threads and ranks that are processes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from .._subject import mindtorch_only
from ._ranks import run_scenarios, start

pytestmark = mindtorch_only
LIBRARY = ["reductions", "movements", "parts", "disagreements", "mistakes"]
PRODUCTS = ["fused", "fused_small_integers", "grouped", "experts", "formats"]
BATCHES = ["batches", "quantized_exchange"]


@pytest.mark.parametrize("scenarios", [LIBRARY, PRODUCTS, BATCHES], ids=["library", "products", "batches"])
def test_ranks_as_threads(scenarios: list[str]) -> None:
    run_scenarios(scenarios)


def pair(first_stop: str = "", second_stop: str = "") -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Two processes, the second told where the first is."""
    first = start("process", "0", "2", first_stop, devices=1)
    assert first.stdout is not None
    root = first.stdout.readline().strip()
    assert root.startswith("emulated_"), root
    second = start("process", "1", "2", second_stop, devices=1)
    assert second.stdin is not None
    second.stdin.write(root + "\n")
    second.stdin.flush()
    return first, second


def test_ranks_as_processes() -> None:
    for child in pair():
        output, _ = child.communicate(timeout=120)
        assert child.returncode == 0 and "done" in output, output


@pytest.mark.parametrize("point", ["before", "joined", "step0"])
def test_a_killed_rank_is_noticed_and_leaves_nothing(point: str) -> None:
    shared = Path("/dev/shm")
    before = set(os.listdir(shared)) if shared.exists() else set()
    first, second = pair(second_stop=point)
    assert second.stdout is not None and second.stdout.readline().strip() == "stopped"
    second.send_signal(signal.SIGKILL)
    second.wait()
    if point == "before":  # it never came: the other waits for it, and is killed as well
        first.send_signal(signal.SIGKILL)
        first.wait()
    else:
        output, _ = first.communicate(timeout=120)
        assert first.returncode == 7 and "failed 507018 21" in output, output
    second.communicate()
    left = {name for name in (set(os.listdir(shared)) if shared.exists() else set()) - before if "ascend" in name}
    assert not left
