"""`ordinary.py`, a program that knows PyTorch only, by every way to the name `torch`: the losses are PyTorch's."""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from ._process import SOURCE

pytestmark = mindtorch_only
PROGRAM = str(Path(__file__).with_name("ordinary.py"))
FIRST_LINE = (
    "import sys, mindtorch_v2.torch, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
# As pip puts the distribution `torch` beside the package: its folder is on the path.
INSTALLED = os.pathsep.join((str(Path(SOURCE, "mindtorch_v2", "_torch_path")), SOURCE))
WAYS: dict[str, tuple[list[str], str]] = {
    "runner": (["-m", "mindtorch_v2.torch", "-q", PROGRAM], SOURCE),
    "first line": (["-c", FIRST_LINE, PROGRAM], SOURCE),
    "installed": ([PROGRAM], INSTALLED),
    "PyTorch": ([PROGRAM], ""),
}


@functools.cache
def printed(way: str) -> Any:
    arguments, path = WAYS[way]
    environment = {**os.environ, "PYTHONPATH": path}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *arguments, folder], env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4) if isinstance(a, float) else bool(a == b)


@pytest.mark.parametrize("way", ["runner", "first line", "installed"])
def test_the_program_trains(way: str) -> None:
    found = printed(way)
    assert found == printed("runner"), "one package, one result"
    losses = [*found["first"]["losses"], *found["second"]["losses"]]
    assert len(losses) == 12 and losses[-1] < losses[0] and found["first"]["profiled"]


@pytest.mark.oracle
def test_losses_are_pytorchs() -> None:
    _oracle.load()
    ours, theirs = printed("runner"), printed("PyTorch")
    assert close(ours, theirs), (ours, theirs)
