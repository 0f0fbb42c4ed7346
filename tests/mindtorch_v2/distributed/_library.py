"""The Gloo library as the engine of `gloo`, built where its headers are."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[3] / "csrc" / "gloo_engine" / "build.py"


@functools.cache
def built() -> str:
    """Where the library is; a test is skipped where it cannot be built, and says why."""
    done = subprocess.run([sys.executable, BUILD], capture_output=True, text=True, check=False)
    if "headers of the Gloo library were not found" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


@contextmanager
def engine() -> Iterator[None]:
    """Processes that are started inside use the library."""
    os.environ.update(MINDTORCH_GLOO="library", MINDTORCH_GLOO_LIBRARY=built())
    try:
        yield
    finally:
        del os.environ["MINDTORCH_GLOO"], os.environ["MINDTORCH_GLOO_LIBRARY"]
