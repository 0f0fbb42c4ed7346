"""Memory of CPU and NPU while it is watched: every block that is given or taken back, with its time.

Invariant: watching changes which functions run, not what the allocators do.
"""

from __future__ import annotations

from .._backends.npu.memory_stats import NOTES
from .._native import watch_memory
from .recorder import Record, Session, Thread


def watch() -> None:
    watch_memory(True)
    NOTES.start()


def collect(session: Session) -> None:
    """Records of what was noted, in order of time."""
    notes = [(time, -1, address, nbytes, thread) for time, address, nbytes, thread in watch_memory(False)]
    notes += NOTES.stop()
    notes.sort()
    totals: dict[int, int] = {}
    for time, device, address, nbytes, thread in notes:
        if not session.start <= time <= session.end:
            continue
        totals[device] = totals.get(device, 0) + nbytes
        r = Record("[memory]", "cpu_instant_event", _thread(session, thread), time)
        r.end = time
        r.device = device
        r.address = address
        r.nbytes = nbytes
        r.total = totals[device]
        session.records.append(r)


def _thread(session: Session, native: int) -> Thread:
    found = session.threads.get(native)
    if found is None:
        # A thread that does not take part, and still frees memory.
        found = Thread(len(session.threads) + 1)
        found.native, found.name = native, f"thread {native}"
        session.threads[native] = found
    return found
