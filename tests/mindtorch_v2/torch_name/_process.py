"""Programs in processes of their own, where `torch` is this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindtorch_v2

SOURCE = str(Path(mindtorch_v2.__file__).parents[1])


def environment() -> dict[str, str]:
    """The package under test, wherever it is, and nothing else on the path."""
    return {**os.environ, "PYTHONPATH": SOURCE}


def python(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], env=environment(), cwd=cwd, capture_output=True, text=True, timeout=300
    )


def answer(code: str, *, runner: bool = True, cwd: Path | None = None) -> Any:
    """What a program prints, as JSON; it is run with `torch` as this package, or with PyTorch."""
    done = python(*(("-m", "mindtorch_v2.torch", "-q") if runner else ()), "-c", code, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
