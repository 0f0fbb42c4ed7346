"""Fuzz the public API by hand: `python -m tests.mindtorch_v2.fuzz --minutes 120 --seed 1`.

`--seed N --count 1` repeats one program (with `--no-samples` if it was found so), `--call "r = torch.eye(2**62)"` runs
a text. With PyTorch installed its own samples are mutated too, and it is asked whether it says the same of what looks
like a finding; `--oracle` asks it about every call: what only one of the two accepts, and other exceptions.

The last lines count what a user would see (crashes, hangs, words of the inside) apart from what the last net of
operators' calls caught, where a rule lacks a check; a run is clean when there is neither.

Invariant: nothing that a program does ends the run; every finding has a seed and a text.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path

from . import _samples, _worker
from ._driver import Fuzzer, Settings, ask


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mindtorch_v2.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--count", type=int, help="so many programs instead of minutes")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"), help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2000, help="programs per process")
    parser.add_argument("--memory", type=int, default=1500, help="megabytes that programs may use")
    parser.add_argument("--seconds", type=float, default=15.0, help="for one program; more is a hang")
    parser.add_argument("--devices", default="cpu,meta,npu")
    parser.add_argument("--oracle", action="store_true", help="compare every outcome with PyTorch's")
    parser.add_argument("--no-samples", action="store_true", help="programs that need no PyTorch, as CI runs them")
    parser.add_argument("--call", help="run this text in both libraries")
    parser.add_argument("--out", type=Path, help="also write findings to this file")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = parse()
    if options.work:
        kind, directory, first, last, skipped = options.work.split("|")
        if kind == "answer":
            _worker.answer(Path(directory), options.memory, options.oracle, "npu" in options.devices)
        else:
            seeds, devices = list(range(int(first), int(last))), options.devices.split(",")
            _worker.work(Path(directory), seeds, devices, options.memory, set(skipped.split(";")), options.oracle)
        return 0
    present = importlib.util.find_spec("torch") is not None
    with tempfile.TemporaryDirectory(prefix="fuzz") as name:
        room = Path(name)
        settings = Settings(
            room, options.devices, options.memory, options.seconds, options.batch, options.jobs, options.out
        )
        if options.call:
            for oracle in (False, True)[: 1 + present]:
                outcome = ask(settings, [(0, "", options.call)], oracle)[0]
                print("PyTorch:" if oracle else "here:", *outcome, sep="  ")
            return 0
        if present and not options.no_samples:
            _samples.record(room / "samples.json")
        fuzzer = Fuzzer(settings, present, options.oracle)
        print(f"fuzzing from seed {options.seed}", flush=True)
        fuzzer.run(options.seed, options.count, time.monotonic() + options.minutes * 60)
        print(fuzzer.report())
        fuzzer.save()
    return 0 if fuzzer.clean else 1


if __name__ == "__main__":
    sys.exit(main())
