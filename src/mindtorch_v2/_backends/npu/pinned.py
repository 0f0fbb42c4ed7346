"""Page-locked host memory, which the device copies to and from while the host goes on.

Invariant: a block is reused, or given back, only after every copy that was started with it has run. Its finaliser makes
no vendor call, for the reasons given in `allocator`.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any, ClassVar, Final, final

from ... import _native
from ..common.pinning import root_owner
from . import errors, runtime
from .acl_loader import ensure_acl
from .memory import Vendor, add_cache, allocator
from .memory_stats import Counter

_LEAST: Final = 512


def size_class(nbytes: int) -> int:
    """Blocks have sizes that are powers of two."""
    return max(_LEAST, 1 << (nbytes - 1).bit_length())


@final
class PinnedBlock:
    """Owner of the memory of a CPU storage."""

    # Tells the core, which does not import this module, what the memory is.
    pinned: ClassVar[bool] = True

    def __init__(self, ptr: int, size: int, late: list[tuple[int, int, list[tuple[Vendor, int]]]]) -> None:
        self.ptr: Final = ptr
        self.size: Final = size
        # Events behind the copies that use it, with the device they belong to.
        self.events: Final[list[tuple[Vendor, int]]] = []
        self.late: Final = late

    def __del__(self) -> None:
        self.late.append((self.ptr, self.size, self.events))


@final
class Spent:
    """Microseconds in a vendor function."""

    def __init__(self) -> None:
        self.total, self.least, self.most, self.count = 0.0, 0.0, 0.0, 0

    def since(self, start: int) -> None:
        spent = (time.perf_counter_ns() - start) / 1000
        self.least = min(self.least, spent) if self.count else spent
        self.most = max(self.most, spent)
        self.total += spent
        self.count += 1

    def as_dict(self) -> dict[str, float]:
        mean = self.total / self.count if self.count else 0
        return {"total": self.total, "max": self.most, "min": self.least, "count": self.count, "avg": mean}


@final
class HostStatistics:
    """What `torch.npu.host_memory_stats` tells. Blocks that finalisers gave back count as active until looked at."""

    def __init__(self) -> None:
        self.counters: Final = {
            name: Counter() for name in ("allocations", "allocated_bytes", "active_requests", "active_bytes")
        }
        self.alloc_time, self.free_time = Spent(), Spent()

    def owned(self, size: int) -> None:
        self.counters["allocations"].up(1)
        self.counters["allocated_bytes"].up(size)

    def released(self, size: int) -> None:
        self.counters["allocations"].down(1)
        self.counters["allocated_bytes"].down(size)

    def taken(self, size: int) -> None:
        self.counters["active_requests"].up(1)
        self.counters["active_bytes"].up(size)

    def returned(self, size: int) -> None:
        self.counters["active_requests"].down(1)
        self.counters["active_bytes"].down(size)

    def reset_peak(self) -> None:
        for counter in self.counters.values():
            counter.peak = counter.current

    def reset_accumulated(self) -> None:
        for counter in self.counters.values():
            counter.allocated = counter.freed = 0
        self.alloc_time, self.free_time = Spent(), Spent()

    def nested(self) -> dict[str, Any]:
        found: dict[str, Any] = {name: counter.as_dict() for name, counter in self.counters.items()}
        found["num_host_alloc"] = found["allocations"]["allocated"]
        found["num_host_free"] = found["allocations"]["freed"]
        found["host_alloc_time"], found["host_free_time"] = self.alloc_time.as_dict(), self.free_time.as_dict()
        return found


@final
class Host:
    """The free blocks."""

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self.free: Final[dict[int, list[int]]] = {}
        # Freed by finalisers, and those of them whose copies had not run when last looked at.
        self.late: Final[list[tuple[int, int, list[tuple[Vendor, int]]]]] = []
        # The events of every block by its address, for the end of the process.
        self.events: Final[dict[int, list[tuple[Vendor, int]]]] = {}
        self.registered: bool = False
        self.stats: Final = HostStatistics()

    def take(self, nbytes: int) -> PinnedBlock:
        size = size_class(nbytes)
        self.collect(False)
        with self.lock:
            free = self.free.get(size)
            if free:
                self.stats.taken(size)
                return self.block(free.pop(), size)
        runtime.use(runtime.current_device())
        if not self.registered:
            self.registered = True
            runtime.on_shutdown(25, close)
            add_cache(self.give_back)
        out = ctypes.c_void_p()
        start = time.perf_counter_ns()
        allocate_host = ensure_acl().aclrtMallocHost
        code = allocate_host(ctypes.byref(out), size)
        if code in errors.OUT_OF_MEMORY:
            self.give_back()
            code = allocate_host(ctypes.byref(out), size)
        errors.check(code, "aclrtMallocHost", f"{size} bytes of page-locked memory")
        with self.lock:
            self.stats.alloc_time.since(start)
            self.stats.owned(size)
            self.stats.taken(size)
        return self.block(out.value or 0, size)

    def block(self, ptr: int, size: int) -> PinnedBlock:
        made = PinnedBlock(ptr, size, self.late)
        self.events[ptr] = made.events
        return made

    def collect(self, wait: bool) -> None:
        """Make blocks whose copies have run free again."""
        todo = len(self.late)
        for _ in range(todo):
            try:
                freed = self.late.pop(0)
            except IndexError:
                # Another thread is collecting too.
                return
            ptr, size, events = freed
            try:
                while events:
                    vendor, event = events[len(events) - 1]
                    if wait:
                        vendor.wait(event)
                    elif not vendor.done(event):
                        break
                    events.pop()
                    vendor.recycle(event)
            except BaseException:
                self.late.append(freed)
                raise
            if events:
                self.late.append(freed)
                continue
            with self.lock:
                self.free.setdefault(size, []).append(ptr)
                self.stats.returned(size)

    def give_back(self) -> None:
        """Return free blocks to the system."""
        self.collect(True)
        with self.lock:
            sizes = {ptr: size for size, found in self.free.items() for ptr in found}
            addresses = list(sizes)
            self.free.clear()
            for ptr in addresses:
                del self.events[ptr]
        if addresses:
            release = ensure_acl().aclrtFreeHost
            bad = 0
            for ptr in addresses:
                start = time.perf_counter_ns()
                bad = release(ptr) or bad
                with self.lock:
                    self.stats.free_time.since(start)
                    self.stats.released(sizes[ptr])
            errors.check(bad, "aclrtFreeHost")


HOST: Final = Host()


def allocate(nbytes: int) -> Any:
    """A CPU storage in page-locked memory. Starts the NPU runtime."""
    if nbytes == 0:
        return _native.Storage(0)
    block = HOST.take(nbytes)
    return _native.Storage.wrap(block.ptr, nbytes, block)


def block_of(storage: Any) -> PinnedBlock | None:
    """The block a CPU storage lies in, None for ordinary memory."""
    owner = root_owner(storage)
    return owner if isinstance(owner, PinnedBlock) else None


def note_copy(block: PinnedBlock, index: int, stream: int) -> None:
    """A copy on `stream` of a device was started with the block."""
    vendor: Vendor = allocator(index).vendor
    block.events.append((vendor, vendor.record(stream)))


def close() -> None:
    """At the end of the process, when no copy runs: events and what is free go back. What tensors hold stays theirs
    to the end, because other code that runs at exit may read it."""
    for events in HOST.events.values():
        while events:
            vendor, event = events.pop()
            vendor.recycle(event)
    if HOST.lock.acquire(False):
        for ptr, _, _ in HOST.late:
            ensure_acl().aclrtFreeHost(ptr)
        HOST.late.clear()
        for ptr in [p for found in HOST.free.values() for p in found]:
            ensure_acl().aclrtFreeHost(ptr)
        HOST.free.clear()
        HOST.lock.release()
