"""Runs a function of a test module in a process whose emulator is another chip.

Invariant: this process keeps its own device; a chip is chosen once, from the environment.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def on_chip(chip: str, function: Callable[[], None]) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND_EMULATOR", "ASCEND_RT"))}
    command = [sys.executable, "-m", __name__, function.__module__, function.__name__]
    done = subprocess.run(
        command, cwd=ROOT, env=kept | {"ASCEND_EMULATOR_CHIP": chip}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def main() -> None:
    module, name = sys.argv[1:]
    getattr(importlib.import_module(module), name)()


if __name__ == "__main__":
    main()
