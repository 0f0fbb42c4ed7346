"""`torch.distributed.breakpoint`: a debugger on one rank, while the others wait."""

from __future__ import annotations

import pdb  # noqa: T100 (it is what is asked for)
import sys
from datetime import timedelta

from . import distributed_c10d as dist

__all__ = ["breakpoint"]


class _State:
    """How often it was called, where the first calls are skipped."""

    seen = 0


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Stop in the debugger on one rank; the others wait until it goes on. The first `skip` calls do nothing."""
    if skip > 0:
        _State.seen += 1
        if _State.seen <= skip:
            return
    if dist.get_rank() == rank:
        print(f"rank {rank} stops here; the others wait for `continue`", file=sys.stderr)
        pdb.Pdb().set_trace(sys._getframe(1))
    dist.monitored_barrier(timeout=timedelta(seconds=timeout_s))
