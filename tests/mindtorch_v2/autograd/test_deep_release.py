"""Long graphs that are freed at once: Python puts off the deallocation of what lies deep, which must not touch memory
that an object does not own."""

from __future__ import annotations

import os
import subprocess
import sys

from .._subject import SUBJECT_NAME

PROGRAM = """
import {0} as torch
for _ in range(20):
    x = torch.ones(3, 8, requires_grad=True)
    y = x
    for _ in range(300):
        a, b = y.chunk(2, 1)
        y = torch.cat((a * b, a.tanh()), 1)
    g, = torch.autograd.grad(y.sum(), [x], create_graph=True)
    del a, b, y, x
    del g
print("freed")
"""


def test_nothing_is_written_before_an_object() -> None:
    environment = {**os.environ, "PYTHONMALLOC": "debug"}
    command = [sys.executable, "-c", PROGRAM.format(SUBJECT_NAME)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "freed\n", done.stderr[-500:]
