"""How much memory a step of training takes at its peak: PyTorch and mindtorch_v2, each model in a process of its own.

    make bench                       the table, after that of the models
    bench_memory.py --only GPT       only models whose name a pattern finds
    bench_memory.py --check          fails where ours takes more than PyTorch, beyond what varies from run to run

Invariant: what is compared is the growth of the resident memory from after the import to its peak over five steps, so
that the size of a library itself does not count.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import bench_models

STEPS = 5
# Allocators round, and pages come by the two mebibytes: less than this is no difference.
NOISE_MIB, NOISE_SHARE = 8.0, 0.05


def resident(field: str) -> float:
    """MiB by the kernel's own count: VmRSS is now, VmHWM the most so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"the kernel does not say {field}")


def growth(library: str, name: str) -> float:
    """In a fresh process: MiB that the steps of a model took at most."""
    t = importlib.import_module(library)
    t.set_num_threads(1)
    t.nn.functional.relu(t.zeros(1))
    before = resident("VmRSS")
    step = bench_models.training(t, dict(bench_models.MODELS)[name])
    for _ in range(STEPS):
        step()
    return resident("VmHWM") - before


def measured(library: str, name: str) -> float:
    command = [sys.executable, __file__, "--one", library, name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[-1])


def run(only: str) -> list[dict[str, object]]:
    print(f"{'peak of training steps':44}{'torch MiB':>12}{'ours MiB':>12}{'ratio':>8}")
    found: list[dict[str, object]] = []
    for name, _ in bench_models.MODELS:
        if not re.search(only, name):
            continue
        theirs, ours = measured("torch", name), measured("mindtorch_v2", name)
        kept = ours <= theirs + max(NOISE_MIB, theirs * NOISE_SHARE)
        found.append({"name": name, "torch_mib": theirs, "ours_mib": ours, "ratio": theirs / ours, "kept": kept})
        print(f"{name:44}{theirs:12.1f}{ours:12.1f}{theirs / ours:8.2f}{'' if kept else '  MORE'}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Peak memory of training steps, PyTorch against mindtorch_v2.")
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "MODEL"), help="one figure, in this process")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only models whose name the pattern finds")
    parser.add_argument("--check", action="store_true", help="exit with an error where ours takes more")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures to a file")
    options = parser.parse_args()
    if options.one:
        print(growth(*options.one))
        return 0
    found = run(options.only)
    if options.json:
        Path(options.json).write_text(json.dumps({"threads": 1, "lines": found}, indent=1))
    return 1 if options.check and not all(line["kept"] for line in found) else 0


if __name__ == "__main__":
    sys.exit(main())
