"""Measures everything once and publishes it: `published.json` with the figures, `published.svg` with a picture of them.

    make bench-publish             measures all parts (calls; kernels and models by one and two threads; memory)
    publish.py --draw              draws the picture again from the figures that are there
    publish.py --parts memory      measures some parts again and keeps the others' figures

Invariant: every figure comes from the benchmarks beside this file, run here and now, with what the machine can do at
most beside it; earlier publications stay in the history as their means.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FIGURES, PICTURE = HERE / "published.json", HERE / "published.svg"

# A part's name, and the command that measures it.
PARTS: dict[str, list[str]] = {
    "calls": ["bench_calls.py", "--rounds", "10"],
    "kernels, 1 thread": ["bench_kernels.py"],
    "kernels, 2 threads": ["bench_kernels.py", "--threads", "2"],
    "models, 1 thread": ["bench_models.py"],
    "models, 2 threads": ["bench_models.py", "--threads", "2"],
    "memory": ["bench_memory.py"],
}
COLOURS = ("#2563eb", "#e0702d", "#f0b429", "#16915a", "#7fc8a9", "#8b5cf6")


def limits(threads: int) -> dict[str, float]:
    """What the machine can do at most, by a program built for it."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "limits"))
        compiler = shlex.split(os.environ.get("CXX", "g++"))
        flags = ["-O3", "-march=native", "-pthread", str(HERE / "limits.cpp"), "-o", program]
        subprocess.run([*compiler, *flags], check=True)
        done = subprocess.run([program, str(threads)], check=True, stdout=subprocess.PIPE, text=True)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def measured(command: list[str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        subprocess.run([sys.executable, str(HERE / command[0]), *command[1:], "--json", str(path)], check=False)
        if not path.exists():
            raise SystemExit(f"{command[0]} gave no figures")
        lines: list[dict[str, Any]] = json.loads(path.read_text())["lines"]
    return [{k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()} for line in lines]


def summary(lines: list[dict[str, Any]]) -> dict[str, float]:
    ratios = [line["ratio"] for line in lines]
    return {
        "lines": len(ratios),
        "mean": round(math.exp(statistics.fmean(map(math.log, ratios))), 3),
        "at_least_one": round(sum(ratio >= 1.0 for ratio in ratios) / len(ratios), 3),
        "worst": min(ratios),
    }


def revision() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() or "unknown"


def curve(ratios: list[float], left: float, width: float, place: Any) -> str:
    """Sorted ratios as a line from the worst to the best."""
    last = max(len(ratios) - 1, 1)
    return " ".join(f"{left + width * i / last:.1f},{place(ratio):.1f}" for i, ratio in enumerate(sorted(ratios)))


def axis(left: float, width: float, place: Any) -> list[str]:
    found = []
    for ratio in (0.25, 0.5, 1, 2, 4, 8):
        y, stroke = place(ratio), "#555" if ratio == 1 else "#ddd"
        found.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="{stroke}"/>')
        found.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    return found


def draw(figures: dict[str, Any]) -> str:
    """Two fields: the ratios of each part, sorted, and the means of every publication."""
    width, height, left, top = 430.0, 280.0, 40.0, 40.0
    second = left + width + 60

    def place(ratio: float) -> float:
        share = (math.log2(min(max(ratio, 0.2), 10)) - math.log2(0.2)) / math.log2(50)
        return top + height * (1 - share)

    out = [*axis(left, width, place), *axis(second, width, place)]
    out.append(f'<text x="{left}" y="20">PyTorch\'s time over ours, each line, from worst to best</text>')
    out.append(f'<text x="{second}" y="20">means of each publication</text>')
    history = figures["history"]
    step = width / max(len(history) - 1, 1)
    for i, (name, colour) in enumerate(zip(PARTS, COLOURS)):
        if name not in figures["parts"]:
            continue
        lines = figures["parts"][name]
        points = curve([line["ratio"] for line in lines], left, width, place)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        past = [
            (second + k * step, each["parts"][name]["mean"]) for k, each in enumerate(history) if name in each["parts"]
        ]
        dots = [f'<circle cx="{x:.1f}" cy="{place(mean):.1f}" r="4" fill="{colour}"/>' for x, mean in past]
        joined = " ".join(f"{x:.1f},{place(mean):.1f}" for x, mean in past)
        out += [f'<polyline points="{joined}" fill="none" stroke="{colour}"/>', *dots]
        y = top + height + 24 + 18 * i
        said = summary(lines)
        text = f"{name}: mean {said['mean']:.2f} of {said['lines']:.0f} lines, {said['at_least_one']:.0%} at least 1"
        out.append(f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{left + 18}" y="{y}">{escape(text)}</text>')
    y = top + height + 24
    for k, text in enumerate((figures["date"], figures["processor"], *limit_words(figures["limits"]))):
        out.append(f'<text x="{second}" y="{y + 18 * k}">{escape(text)}</text>')
    size = f'width="{second + width + 20:.0f}" height="{top + height + 24 + 18 * len(PARTS):.0f}"'
    style = 'font-family="sans-serif" font-size="13" fill="#222"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', ground, *out, "</svg>\n"])


def limit_words(found: dict[str, dict[str, float]]) -> list[str]:
    words = []
    for threads, each in found.items():
        copies = [value for name, value in each.items() if name.startswith("copy")]
        rates = (
            f"{each['gflops_float32']:.0f} GFLOP/s, copies {max(copies):.0f} GB/s in caches, {copies[-1]:.0f} in memory"
        )
        words.append(f"{threads} thread(s): {rates}")
    return words


def publish(names: list[str]) -> dict[str, Any]:
    before = json.loads(FIGURES.read_text()) if FIGURES.exists() else {"parts": {}, "history": []}
    parts = {**before["parts"], **{name: measured(PARTS[name]) for name in names}}
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    entry = {"date": date, "revision": revision(), "parts": {name: summary(lines) for name, lines in parts.items()}}
    # What one revision has published is published once.
    history = [each for each in before["history"] if each["revision"] != entry["revision"]]
    return {
        "date": date,
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "limits": {str(threads): limits(threads) for threads in (1, 2)},
        "history": [*history, entry],
        "parts": parts,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure everything, and publish figures and a picture.")
    parser.add_argument("--draw", action="store_true", help="only draw the picture again")
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS), help="measure only these")
    options = parser.parse_args()
    figures = json.loads(FIGURES.read_text()) if options.draw else publish(options.parts)
    if not options.draw:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    PICTURE.write_text(draw(figures))
    for name, lines in figures["parts"].items():
        said = summary(lines)
        print(f"{name:22} mean {said['mean']:.2f}, {said['at_least_one']:.0%} at least 1.0, worst {said['worst']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
