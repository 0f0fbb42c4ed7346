"""Saving and loading a checkpoint, beside PyTorch where it is installed.

    .venv/bin/python benchmarks/bench_checkpoint.py --megabytes 1024 --folder /tmp

Replacing a file waits for the disk here, and not in PyTorch: the old file is given up when the new one is on it.

Invariant: the libraries take turns, each gets its best round, and both write the same bytes to the same place.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any


def seconds(code: Callable[[], Any]) -> float:
    """What one call takes, without freeing its result."""
    start = time.perf_counter()
    result = code()
    taken = time.perf_counter() - start
    del result
    return taken


def state(library: Any, megabytes: int) -> dict[str, Any]:
    """A model's worth of tensors: a few large ones, and many small."""
    large = [library.full((megabytes << 16,), 0.5) for _ in range(4)]
    small = [library.full((64,), 0.25) for _ in range(400)]
    return {f"layer.{i}.weight": t for i, t in enumerate([*large, *small])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    given = parser.parse_args()
    names = ["mindtorch_v2", *(["torch"] if importlib.util.find_spec("torch") else [])]
    libraries = {name: importlib.import_module(name) for name in names}
    values = {name: state(library, given.megabytes) for name, library in libraries.items()}
    best: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for _ in range(given.rounds):
            for name, library in libraries.items():
                path = os.path.join(folder, f"{name}.pt")
                if os.path.exists(path):
                    os.remove(path)
                save = partial(library.save, values[name], path)
                work = {
                    "save": save,
                    "save, replacing": save,
                    "load": partial(library.load, path),
                    "load, mapped": partial(library.load, path, mmap=True),
                }
                for what, code in work.items():
                    best[what, name] = min(best.get((what, name), float("inf")), seconds(code))
    print(f"{given.megabytes} MiB of float32, best of {given.rounds}")
    for what in ("save", "save, replacing", "load", "load, mapped"):
        line = f"  {what:16}"
        for name in libraries:
            taken = best[what, name]
            rate = (
                f"{given.megabytes / 1024 / taken:6.2f} GiB/s" if "mapped" not in what else f"{taken * 1e3:6.1f} ms   "
            )
            line += f"  {name:13}{rate}"
        if len(libraries) == 2:
            line += f"  {best[what, 'torch'] / best[what, 'mindtorch_v2']:5.2f} x PyTorch"
        print(line)


if __name__ == "__main__":
    main()
