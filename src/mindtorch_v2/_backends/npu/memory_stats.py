"""Counters of the caching allocator, with PyTorch's names.

Invariant: of every counter `current == allocated - freed` since the last reset of those two, and `peak` is
the largest `current` since the last reset of the peaks.
"""

from __future__ import annotations

import threading
import time
from typing import Final, final

from ..._mypyc import i64


@final
class Counter:
    """A number that goes up and down."""

    def __init__(self) -> None:
        self.current: i64 = 0
        self.peak: i64 = 0
        self.allocated: i64 = 0
        self.freed: i64 = 0

    def up(self, n: i64) -> None:
        self.current += n
        self.allocated += n
        if self.current > self.peak:
            self.peak = self.current

    def down(self, n: i64) -> None:
        self.current -= n
        self.freed += n

    def as_dict(self) -> dict[str, int]:
        return {"current": self.current, "peak": self.peak, "allocated": self.allocated, "freed": self.freed}


@final
class Group:
    """The counters of the small pools, of the large pools, or of both."""

    def __init__(self) -> None:
        self.allocation: Final = Counter()
        self.allocated_bytes: Final = Counter()
        self.requested_bytes: Final = Counter()
        self.active: Final = Counter()
        self.active_bytes: Final = Counter()
        self.inactive_split: Final = Counter()
        self.inactive_split_bytes: Final = Counter()
        self.segment: Final = Counter()
        self.reserved_bytes: Final = Counter()

    def counters(self) -> dict[str, Counter]:
        return {
            "allocation": self.allocation,
            "allocated_bytes": self.allocated_bytes,
            "requested_bytes": self.requested_bytes,
            "active": self.active,
            "active_bytes": self.active_bytes,
            "inactive_split": self.inactive_split,
            "inactive_split_bytes": self.inactive_split_bytes,
            "segment": self.segment,
            "reserved_bytes": self.reserved_bytes,
        }

    def taken(self, size: i64, requested: i64) -> None:
        self.allocation.up(1)
        self.allocated_bytes.up(size)
        self.requested_bytes.up(requested)
        self.active.up(1)
        self.active_bytes.up(size)

    def given_back(self, size: i64, requested: i64) -> None:
        """The owner let go; the device may still be using it."""
        self.allocation.down(1)
        self.allocated_bytes.down(size)
        self.requested_bytes.down(requested)

    def idle(self, size: i64) -> None:
        self.active.down(1)
        self.active_bytes.down(size)

    def split_up(self, blocks: i64, size: i64) -> None:
        self.inactive_split.up(blocks)
        self.inactive_split_bytes.up(size)

    def split_down(self, blocks: i64, size: i64) -> None:
        self.inactive_split.down(blocks)
        self.inactive_split_bytes.down(size)

    def reserved(self, size: i64) -> None:
        self.segment.up(1)
        self.reserved_bytes.up(size)

    def released(self, size: i64) -> None:
        self.segment.down(1)
        self.reserved_bytes.down(size)


@final
class Statistics:
    """Everything counted for one device."""

    def __init__(self) -> None:
        self.all: Final = Group()
        self.small: Final = Group()
        self.large: Final = Group()
        self.retries: i64 = 0
        self.ooms: i64 = 0
        self.waits: i64 = 0
        self.mallocs: i64 = 0
        self.frees: i64 = 0

    def groups(self) -> dict[str, Group]:
        return {"all": self.all, "large_pool": self.large, "small_pool": self.small}

    def reset_peak(self) -> None:
        for group in self.groups().values():
            for counter in group.counters().values():
                counter.peak = counter.current

    def reset_accumulated(self) -> None:
        for group in self.groups().values():
            for counter in group.counters().values():
                counter.allocated = 0
                counter.freed = 0
        self.retries = 0
        self.ooms = 0
        self.waits = 0
        self.mallocs = 0
        self.frees = 0

    def nested(self) -> dict[str, object]:
        """PyTorch's nested dictionary."""
        out: dict[str, object] = {}
        groups = self.groups()
        for name in self.all.counters():
            out[name] = {kind: group.counters()[name].as_dict() for kind, group in groups.items()}
        # Blocks here are split whatever their size, so none is oversized.
        nothing = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
        out["oversize_allocations"] = dict(nothing)
        out["oversize_segments"] = dict(nothing)
        out["max_split_size"] = -1
        out["num_alloc_retries"] = int(self.retries)
        out["num_ooms"] = int(self.ooms)
        out["num_sync_all_streams"] = int(self.waits)
        out["num_device_alloc"] = int(self.mallocs)
        out["num_device_free"] = int(self.frees)
        return out


def flatten(nested: dict[str, object]) -> dict[str, int]:
    """`{"segment": {"all": {"peak": 1}}}` as `{"segment.all.peak": 1}`, sorted by name."""
    out: dict[str, int] = {}
    todo: list[tuple[str, object]] = list(nested.items())
    while todo:
        name, value = todo.pop()
        if isinstance(value, dict):
            todo.extend((f"{name}.{key}", inner) for key, inner in value.items())
        elif isinstance(value, int):
            out[name] = value
    return dict(sorted(out.items()))


_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def bytes_text(n: int) -> str:
    """1536 as `1.50 KiB`."""
    value = float(n)
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{n} B" if unit == 0 else f"{value:.2f} {_UNITS[unit]}"


_ROWS: Final = (
    ("allocated_bytes", "allocated"),
    ("requested_bytes", "requested"),
    ("active_bytes", "active"),
    ("reserved_bytes", "reserved"),
    ("inactive_split_bytes", "not releasable"),
    ("allocation", "allocations"),
    ("active", "active blocks"),
    ("segment", "segments"),
    ("inactive_split", "free parts"),
)


def summary(stats: dict[str, int], index: int, abbreviated: bool) -> str:
    """A table for people."""
    rule = "-" * 79
    lines = [
        rule,
        f"NPU memory, device {index}: {stats['num_ooms']} out of memory, {stats['num_alloc_retries']} retries",
        rule,
        f"{'':<24}|{'now':>12} |{'peak':>12} |{'taken':>12} |{'returned':>12}",
    ]
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for key, title in _ROWS:
        lines.append(rule)
        for pool in pools:
            cells = [stats[f"{key}.{pool}.{kind}"] for kind in ("current", "peak", "allocated", "freed")]
            shown = [bytes_text(n) if key.endswith("bytes") else str(n) for n in cells]
            name = title if pool == "all" else "  " + pool.replace("_", " ")
            lines.append(f"{name:<24}|" + " |".join(f"{text:>12}" for text in shown))
    lines.append(rule)
    return "\n".join(lines) + "\n"


@final
class Notes:
    """Blocks handed out and taken back while somebody watches: (time, device, address, bytes, thread)."""

    def __init__(self) -> None:
        self.on: bool = False
        self.seen: list[tuple[int, int, int, int, int]] = []

    def start(self) -> None:
        self.seen = []
        self.on = True

    def add(self, index: int, address: int, nbytes: int) -> None:
        self.seen.append((time.perf_counter_ns(), index, address, nbytes, threading.get_native_id()))

    def stop(self) -> list[tuple[int, int, int, int, int]]:
        self.on = False
        return self.seen


NOTES: Final = Notes()
