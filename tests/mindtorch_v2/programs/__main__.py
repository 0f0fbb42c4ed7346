"""Many random programs by hand: `python -m tests.mindtorch_v2.programs --count 100000 --jobs 2`.

Invariant: a program that brings its process down is a failure with a seed, not the end of the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import IO, NamedTuple

# Programs per process: what one program leaves behind does not pile up, and a crash costs little.
CHUNK = 1000


class Running(NamedTuple):
    process: subprocess.Popen[str]
    first: int
    last: int


def work(first: int, last: int) -> None:
    """Judge seeds; a line per seed that differs, and the number of the last one begun."""
    import importlib

    from .. import _npu, _oracle
    from ._seeds import judge

    reference, subject = _oracle.load(), importlib.import_module("mindtorch_v2")
    emulator = _npu.start()
    for seed in range(first, last):
        print(f"@{seed}", flush=True)
        text = judge(seed, reference, subject)[1]
        if text is None and emulator is not None and emulator.violations():
            text = f"seed {seed}: the vendor's contract was broken: {emulator.violations()}"
        if emulator is not None:
            emulator.clear_violations()
        if text is not None:
            print(f"!{seed}\n{text}", flush=True)


def start(first: int, last: int) -> Running:
    command = [sys.executable, "-m", str(__package__), "--work", f"{first}:{last}"]
    return Running(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), first, last)


def collect(running: Running) -> tuple[list[int], int]:
    """The failing seeds of a process that has ended or will, and where to go on after a crash."""
    assert running.process.stdout is not None
    failing, begun = read(running.process.stdout)
    if running.process.wait() == 0:
        return failing, running.last
    print(f"seed {begun}: the process ended with {running.process.returncode}", flush=True)
    return [*failing, begun], begun + 1


def read(lines: IO[str]) -> tuple[list[int], int]:
    failing: list[int] = []
    begun = -1
    for line in lines:
        if line.startswith("@"):
            begun = int(line[1:])
        elif line.startswith("!"):
            failing.append(int(line[1:]))
        else:
            print(line, end="", flush=True)
    return failing, begun


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mindtorch_v2.programs", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(5), "big"), help="the first one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        first, _, last = options.work.partition(":")
        work(int(first), int(last))
        return 0
    begin, end = time.monotonic(), options.seed + options.count
    chunks = [(first, min(first + CHUNK, end)) for first in range(options.seed, end, CHUNK)]
    active: list[Running] = []
    failing: list[int] = []
    done = 0
    print(f"{options.count} programs from seed {options.seed}", flush=True)
    while chunks or active:
        while chunks and len(active) < options.jobs:
            active.append(start(*chunks.pop(0)))
        running = active.pop(0)
        found, reached = collect(running)
        failing += found
        done += reached - running.first
        if reached < running.last:
            chunks.insert(0, (reached, running.last))
        print(f"{done} done, {len(failing)} differ, {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{done} programs, {len(failing)} differ" + (f": {' '.join(map(str, failing))}" if failing else ""))
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
