"""What this process holds of the system: descriptors, child processes, names of shared memory.

Invariant: `kept_level` fails when a piece of work leaves more of any of these behind than it found.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path


def children(pid: int) -> set[int]:
    """All descendants of a process."""
    found: set[int] = set()
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        own = [int(n) for task in tasks for n in (task / "children").read_text().split()]
    except OSError:  # ended meanwhile
        return found
    for child in own:
        found |= {child} | children(child)
    return found


def _is_of_others(name: str) -> bool:
    """Whether a running process that has nothing to do with this one made a segment; its number is in the name."""
    maker = int(name.split("_")[1])
    return maker != os.getpid() and os.path.exists(f"/proc/{maker}") and maker not in children(os.getpid())


def held() -> tuple[int, int, tuple[str, ...]]:
    """Descriptors, descendants, and names of segments in /dev/shm."""
    descriptors = len(os.listdir("/proc/self/fd"))
    found = [n for n in os.listdir("/dev/shm") if re.match(r"torch_\d+_", n)]
    names = tuple(sorted(n for n in found if not _is_of_others(n)))
    return descriptors, len(children(os.getpid())), names


@contextlib.contextmanager
def kept_level(seconds: float = 20.0) -> Iterator[None]:
    """Count before and after; threads that close something in the background get a moment to do so."""
    before = held()
    yield
    end = time.monotonic() + seconds
    after = held()
    while (after[0] > before[0] or after[1] > before[1] or set(after[2]) - set(before[2])) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.02)
        after = held()
    assert after[0] <= before[0], f"{after[0] - before[0]} descriptors more than before"
    assert after[1] <= before[1], f"{after[1] - before[1]} processes more than before"
    assert not set(after[2]) - set(before[2]), f"shared memory left: {set(after[2]) - set(before[2])}"
