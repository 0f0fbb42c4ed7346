"""Runs every client's program on this package's `torch` and, where it is, on PyTorch, and compares what they print.

    python tests/clients/run.py --ours PYTHON [--oracle PYTHON] [names...]

`--ours`: a Python with the clients, this package and its distribution `torch`. `--oracle`: a Python with PyTorch; the
clients are those of the first. Programs run side by side, each in a process of its own with one thread. Prints a table,
and fails if a program does, or if numbers differ. `--results` keeps what was found, for the table of docs/programs.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
# The libraries of the first environment, behind the second's own; its module for the device is no part of PyTorch.
START = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); sys.argv.pop(0); sys.modules['torch_npu'] = None; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


# Of programs with many parts, the one that `--short` runs.
SHORT = {
    "several": "accelerate",
    "timm": "resnet18",
    "transformers_decoders": "llama",
    "transformers_encoders": "bert",
    "transformers_experts": "mixtral",
    "transformers_images": "vit",
    "transformers_mixed": "clip",
    "transformers_npu": "llama",
    "transformers_pairs": "t5",
    "transformers_speech": "whisper",
    "transformers_states": "mamba",
}


# Programs of many minutes.
LONG = ("transformers_decoders", "transformers_npu")


def programs(short: bool) -> list[str]:
    names = sorted(p.stem for p in PROGRAMS.glob("*.py") if not p.stem.startswith("_"))
    return [f"{name}/{SHORT[name]}" if short and name in SHORT else name for name in names]


def report(
    python: str, name: str, parts: list[str], folder: str | None, limit: float
) -> tuple[list[dict[str, Any]], str]:
    """The stages of a program in one environment, and what it wrote to standard error."""
    path = str(PROGRAMS / f"{name}.py")
    command = [python, path, *parts] if folder is None else [python, "-c", START, folder, path, *parts]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MINDTORCH"))}
    environment.update(PYTHONPATH=str(HERE), HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    environment.update(TOKENIZERS_PARALLELISM="false", KERAS_BACKEND="torch", PYTHONSAFEPATH="1")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return [{"stage": "all", "error": f"longer than {limit:.0f} s", "seconds": limit}], ""
    lines = [line for line in done.stdout.splitlines() if line.startswith("REPORT ")]
    if not lines:
        return [{"stage": "start", "error": done.stderr.strip().splitlines()[-1:], "seconds": 0.0}], done.stderr
    stages: list[dict[str, Any]] = json.loads(lines[-1][7:])
    return stages, done.stderr


def differs(mine: Any, theirs: Any, tolerance: float) -> str | None:
    """Where two reports differ; None where they do not."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        if mine.keys() != theirs.keys():
            return f"names {sorted(mine.keys() ^ theirs.keys())}"
        return next((f"{k}: {d}" for k in mine if (d := differs(mine[k], theirs[k], tolerance))), None)
    if isinstance(mine, list) and isinstance(theirs, list):
        if len(mine) != len(theirs):
            return f"lengths {len(mine)} and {len(theirs)}"
        return next((f"[{i}] {d}" for i, p in enumerate(zip(mine, theirs)) if (d := differs(*p, tolerance))), None)
    if isinstance(mine, float) and isinstance(theirs, float):
        close = math.isclose(mine, theirs, rel_tol=tolerance, abs_tol=tolerance) or (mine != mine and theirs != theirs)
        return None if close else f"{mine} and {theirs}"
    return None if mine == theirs else f"{mine!r} and {theirs!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="programs, or program/part; all of them by default")
    parser.add_argument("--ours", required=True, help="a Python with the clients and this package's torch")
    parser.add_argument("--oracle", help="a Python with PyTorch")
    parser.add_argument("--short", action="store_true", help="every client, and one part of those that have many")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time")
    parser.add_argument("--results", type=Path, help="a file for what was found, as JSON")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one program")
    parser.add_argument("--tolerance", type=float, default=2e-4)
    parser.add_argument("--verbose", type=int, default=0, help="show so many characters of what a program wrote")
    given = parser.parse_args()
    folder = subprocess.run(
        [given.ours, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    begun, failed, results = time.monotonic(), 0, {}
    print(f"{'client':34} {'stages':>6} {'slowest':>18} {'compared':>9}  first failure")
    with ThreadPoolExecutor(given.jobs) as pool:
        # The longest first, so that none is alone at the end.
        order = sorted(given.names or programs(given.short), key=lambda name: name.partition("/")[0] not in LONG)
        for name, mine, theirs in [started(pool, given, name, folder) for name in order]:
            other = theirs.result()[0] if theirs else None
            for part, line in table(name.partition("/")[0], mine.result()[0], other, given.tolerance).items():
                print(line.pop("text"), flush=True)
                failed += line["error"] is not None
                results[part] = line
            if given.verbose:
                print(mine.result()[1][-given.verbose :])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(results)} parts, {failed} failed, {time.monotonic() - begun:.0f} s; "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    if given.results:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(results, indent=1))
    return int(failed > 0)


Report = tuple[list[dict[str, Any]], str]


def started(
    pool: ThreadPoolExecutor, given: argparse.Namespace, name: str, folder: str
) -> tuple[str, Future[Report], Future[Report] | None]:
    """A program, handed to the pool for this package and for PyTorch."""
    program, _, part = name.partition("/")
    parts = [part] if part else []
    mine = pool.submit(report, given.ours, program, parts, None, given.limit)
    theirs = pool.submit(report, given.oracle, program, parts, folder, given.limit) if given.oracle else None
    return name, mine, theirs


def table(
    name: str, mine: list[dict[str, Any]], theirs: list[dict[str, Any]] | None, tolerance: float
) -> dict[str, dict[str, Any]]:
    """The lines of one program: a line for each of its parts."""
    lines: dict[str, dict[str, Any]] = {}
    for part in dict.fromkeys(s.get("part", "") for s in mine):
        own = [s for s in mine if s.get("part", "") == part]
        error = first_error(own, theirs, part, tolerance)
        slowest = max(own, key=lambda s: s["seconds"])
        passed = [s["stage"] for s in own if "error" not in s]
        compared = "-" if theirs is None else "no" if error else "yes"
        title = name + (part and "/" + part)
        text = (
            f"{title:34} {len(passed):>3}/{len(own):<2} {slowest['stage']:>11} {slowest['seconds']:5.1f}s "
            f"{compared:>9}  {error or ''}"
        )
        lines[title] = dict(text=text, passed=passed, compared=compared == "yes", error=error)
    return lines


def first_error(
    mine: list[dict[str, Any]], theirs: list[dict[str, Any]] | None, part: str, tolerance: float
) -> str | None:
    """What is wrong with one part of a program: a stage that failed, or numbers that are not PyTorch's."""
    for stage in mine:
        if "error" in stage:
            return f"{stage['stage']}: {stage['error']}"
    if theirs is None:
        return None
    known = {s["stage"]: s for s in theirs if s.get("part", "") in (part, "")}
    for stage in mine:
        other = known.get(stage["stage"], {"error": "it has not come so far"})
        if "error" in other:
            return f"{stage['stage']} fails on PyTorch: {other['error']}"
        what = differs(stage["numbers"], other["numbers"], tolerance)
        if what:
            return f"{stage['stage']} differs: {what}"
    return None


if __name__ == "__main__":
    sys.exit(main())
