"""Draws a trace of torch.profiler as a picture: a row of bars for each depth of calls, and one for the device."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WIDTH, ROW, LEFT, TOP, DEEPEST = 1000, 22, 8, 34, 5
COLOURS = {"backward": "#e0702d", "optimizer": "#16915a", "device": "#8b5cf6", "forward": "#2563eb"}


def slices(trace: Any) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") != "python_function" and e["dur"] > 0]


def depths(row: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Each slice with the number of slices it stands in."""
    found, around = [], []
    for e in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
        while around and e["ts"] >= around[-1] - 1e-3:
            around.pop()
        found.append((len(around), e))
        around.append(e["ts"] + e["dur"])
    return found


def colour(e: dict[str, Any], phases: dict[str, list[tuple[float, float]]]) -> str:
    if e.get("cat") == "kernel":
        return COLOURS["device"]
    if "Optimizer" in e["name"] or any(s <= e["ts"] <= t for s, t in phases["optimizer"]):
        return COLOURS["optimizer"]
    inside = any(start <= e["ts"] <= end for start, end in phases["backward"])
    return COLOURS["backward" if inside else "forward"]


def svg(trace: Any) -> str:
    """The picture, as SVG. Bars too narrow to see are left out, names too long for their bar too."""
    every = [e for e in slices(trace) if e.get("cat") in ("cpu_op", "user_annotation", "kernel", None)]
    start = min(e["ts"] for e in every)
    end = max(e["ts"] + e["dur"] for e in every)
    scale = (WIDTH - 2 * LEFT) / (end - start)
    phases = {
        phase: [(e["ts"], e["ts"] + e["dur"]) for e in every if any(mark in e["name"] for mark in marks)]
        for phase, marks in {"backward": ("backward", "Backward", "autograd::"), "optimizer": ("Optimizer",)}.items()
    }
    rows: dict[Any, list[dict[str, Any]]] = {}
    for e in every:
        rows.setdefault((e.get("cat") == "kernel", e["pid"], e["tid"]), []).append(e)
    bars, top = [], TOP
    for key in sorted(rows, key=str):
        placed = [(min(depth, DEEPEST), e) for depth, e in depths(rows[key])]
        for depth, e in placed:
            x, width = LEFT + (e["ts"] - start) * scale, e["dur"] * scale
            if width < 0.4:
                continue
            y = top + depth * ROW
            bars.append(
                f'<g><title>{escape(e["name"])}: {e["dur"] / 1000:.3f} ms</title><rect x="{x:.1f}" y="{y}" '
                f'width="{max(width - 0.4, 0.4):.1f}" height="{ROW - 2}" rx="2" fill="{colour(e, phases)}" '
                f'opacity="{1 - 0.1 * depth:.1f}"/>'
            )
            name = e["name"].removeprefix("aten::").removeprefix("autograd::engine::evaluate_function: ")
            letters = int((width - 8) / 6.4)
            if letters >= min(len(name), 5):
                shown = name if len(name) <= letters else name[: letters - 1] + "…"
                bars.append(f'<text x="{x + 4:.1f}" y="{y + 14}">{escape(shown)}</text>')
            bars.append("</g>")
        top += (max(depth for depth, _ in placed) + 1) * ROW + 12
    length = (end - start) / 1000
    step = next(step for power in range(6) for step in (10**power, 2 * 10**power, 5 * 10**power) if length / step <= 10)
    marks = [
        f'<line x1="{LEFT + 1000 * ms * scale:.1f}" x2="{LEFT + 1000 * ms * scale:.1f}" y1="24" y2="{top}"/>'
        f'<text class="mark" x="{LEFT + 1000 * ms * scale + 3:.1f}" y="18">{ms} ms</text>'
        for ms in range(0, int(length) + 1, step)
    ]
    style = "text{font:11px ui-monospace,monospace;fill:#fff}.mark{fill:#6b7280}line{stroke:#9ca3af;stroke-opacity:.35}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img" aria-label="a training step">'
        f"<style>{style}</style>{''.join(marks)}{''.join(bars)}</svg>\n"
    )


def of_the_demo(device: str = "cpu") -> Any:
    """The trace of a step of examples/demo.py, after a few that nobody looks at."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--device", device, "--small", "--steps", "4"]
        subprocess.run([*command, "--trace", "--out", folder], check=True, stdout=subprocess.DEVNULL)
        return json.loads((Path(folder) / "trace.json").read_text())


if __name__ == "__main__":
    trace = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(svg(trace))
