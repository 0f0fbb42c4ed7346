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
LIBRARY = ["reductions", "movements", "parts", "disagreements", "mistakes", "faults"]
PRODUCTS = ["fused", "fused_small_integers", "grouped", "experts", "formats"]
BATCHES = [
    "batches",
    "quantized_exchange",
    "shared_experts",
    "members_of_experts",
    "experts_in_steps",
    "small_floats_to_experts",
]


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


STEPS = range(3)
POINTS = ["before", "joined", *(f"{what}{i}" for i in STEPS for what in ("launched", "step")), "left"]
# Where the other rank may have all it needs already: in the last step, whose numbers have been sent.
LAST = {"launched2", "step2", "left"}


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_rank_is_noticed_and_leaves_nothing(point: str, victim: int) -> None:
    shared = Path("/dev/shm")
    before = set(os.listdir(shared)) if shared.exists() else set()
    children = pair(*(point if rank == victim else "" for rank in range(2)))
    killed, other = children[victim], children[1 - victim]
    assert killed.stdout is not None and killed.stdout.readline().strip() == "stopped"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    if point == "before":  # it never came: the other waits for it, and is killed as well
        other.send_signal(signal.SIGKILL)
        other.communicate()
    else:
        output, _ = other.communicate(timeout=120)
        noticed = other.returncode == 7 and "failed 507018 21" in output
        assert noticed or (point in LAST and other.returncode == 0 and "done" in output), output
    killed.communicate()
    left = {name for name in (set(os.listdir(shared)) if shared.exists() else set()) - before if "ascend" in name}
    assert not left
