"""How many samples a second a `DataLoader` with worker processes gives, here and in PyTorch.

Each library runs in a process of its own, which iterates when told to; the passes alternate, so that both see the same
machine. `python benchmarks/bench_data.py [--passes 7] [--workers 2] [--only large]`. Times include starting the
workers unless the name says otherwise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
import warnings
from typing import Any


class Samples:
    """Tensors of one shape, made when asked for."""

    def __init__(self, library: Any, size: int, shape: tuple[int, ...], label: bool = True) -> None:
        self.library, self.size, self.shape, self.label = library, size, shape, label

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> Any:
        sample = self.library.empty(self.shape).fill_(i)
        return (sample, i) if self.label else sample


# Samples in a pass, their shape, and options.
CASES: dict[str, tuple[int, tuple[int, ...], dict[str, Any]]] = {
    "tiny: 16 numbers, batches of 32": (6400, (16,), {"batch_size": 32}),
    "tiny, one by one": (2000, (16,), {"batch_size": None}),
    "small: 3x32x32, batches of 64": (6400, (3, 32, 32), {"batch_size": 64}),
    "large: 3x224x224, batches of 32": (640, (3, 224, 224), {"batch_size": 32}),
    "large, one by one": (400, (3, 224, 224), {"batch_size": None}),
    "huge: 16 MB, one by one": (64, (4, 1024, 1024), {"batch_size": None}),
    "persistent: 3x32x32, batches of 64": (6400, (3, 32, 32), {"batch_size": 64, "persistent_workers": True}),
    "starting two workers": (2, (1,), {"batch_size": 1}),
}


def serve(name: str, workers: int) -> None:
    """Iterate over a case each time a line with its name comes, and say how long that took."""
    warnings.simplefilter("ignore")
    library = importlib.import_module(name)
    loader_class = importlib.import_module(f"{name}.utils.data").DataLoader
    loaders: dict[str, Any] = {}
    for line in sys.stdin:
        case = line.strip()
        size, shape, options = CASES[case]
        if case not in loaders:
            loaders[case] = loader_class(Samples(library, size, shape), num_workers=workers, **options)
            if "persistent_workers" in options:
                next(iter(loaders[case]))
        begin = time.perf_counter()
        total = 0
        for batch in loaders[case]:
            first = batch[0]
            total += int(first.flatten()[-1])
        print(json.dumps([time.perf_counter() - begin, total]), flush=True)


class Library:
    """A library in a process of its own."""

    def __init__(self, name: str, workers: int) -> None:
        command = [sys.executable, __file__, "--serve", name, "--workers", str(workers)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, case: str) -> tuple[float, int]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        seconds, total = json.loads(self.process.stdout.readline())
        return seconds, total

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true", help="fail where PyTorch is faster")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.workers)
        return
    ours, theirs = (Library(name, options.workers) for name in ("mindtorch_v2", "torch"))
    slower = []
    print(f"{'samples/s':40} {'here':>10} {'PyTorch':>10} {'ratio':>7}")
    for case, (size, _, _) in CASES.items():
        if options.only not in case:
            continue
        times: list[list[float]] = [[], []]
        for i in range(options.passes + 1):
            results = [library.run(case) for library in ((ours, theirs) if i % 2 else (theirs, ours))]
            assert results[0][1] == results[1][1], case
            if i:  # the first one warms up
                for row, result in zip(times if i % 2 else reversed(times), results):
                    row.append(result[0])
        here, there = (size / statistics.median(row) for row in times)
        print(f"{case:40} {here:10.0f} {there:10.0f} {here / there:6.2f}x", flush=True)
        if here < there:
            slower.append(case)
    ours.close()
    theirs.close()
    if options.check and slower:
        sys.exit(f"slower than PyTorch: {', '.join(slower)}")


if __name__ == "__main__":
    main()
