"""Runs a program of examples/ as a user would, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run(name: str, *arguments: object, folder: Path | None = None, **environment: str) -> str:
    """What the program printed; it must end well. `folder`: where it runs."""
    path = os.environ.get("PYTHONPATH")
    if path:  # relative to where the tests were started
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(part).resolve()) for part in path.split(os.pathsep))
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
