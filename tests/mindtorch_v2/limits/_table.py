"""The tables of hostile calls (`calls/*.txt`) and the process that runs them.

Each call is a line; the indented line below it, beginning with `=`, is PyTorch's answer, written down by
`python -m tests.mindtorch_v2.limits.ask`. A second line beginning with `~` is ours where it is meant to differ, and the
comment above the call says why. Invariant: whatever a call does, it cannot take the test process with it.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "calls"
PATIENCE = 40.0


@dataclass
class Call:
    source: str
    answer: str | None = None
    ours: str | None = None
    comment: str = ""

    @property
    def expected(self) -> str | None:
        return self.answer if self.ours is None else self.ours


def groups() -> list[str]:
    return sorted(p.stem for p in FOLDER.glob("*.txt"))


def read(group: str) -> list[Call]:
    calls: list[Call] = []
    comment = ""
    for line in (FOLDER / f"{group}.txt").read_text().splitlines():
        if line.startswith("  = "):
            calls[-1].answer = line[4:]
        elif line.startswith("  ~ "):
            calls[-1].ours = line[4:]
        elif line.startswith("#") or not line:
            comment += line + "\n"
        else:
            calls.append(Call(line, comment=comment))
            comment = ""
    return calls


def write(group: str, calls: list[Call]) -> None:
    lines: list[str] = []
    for call in calls:
        lines += call.comment.splitlines()
        lines.append(call.source)
        lines.append(f"  = {call.answer}")
        if call.ours is not None:
            lines.append(f"  ~ {call.ours}")
    (FOLDER / f"{group}.txt").write_text("\n".join(lines) + "\n")


def run(library: str, device: str, sources: list[str]) -> list[str]:
    """What each call answers; a process that dies or falls silent costs one call, and a new one goes on behind it."""
    answers: list[str] = []
    while len(answers) < len(sources):
        answers += _some(library, device, sources[len(answers) :])
    return answers


def _some(library: str, device: str, sources: list[str]) -> list[str]:
    command = [sys.executable, "-m", f"{__package__}._child", library, device]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root, env=environment
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        child.stdin.write(json.dumps(sources).encode())
        child.stdin.close()
        answers: list[str] = []
        while len(answers) < len(sources):
            ready, _, _ = select.select([child.stdout], [], [], PATIENCE)
            line = child.stdout.readline() if ready else b""
            if not line:
                child.kill()
                code = child.wait()
                said = child.stderr.read().decode()[-300:]
                answers.append(f"process ended with {code}: {said}" if ready else "no answer")
                return answers
            answers.append(json.loads(line))
        return answers
