"""How collectives are named in profiles: `c10d::allreduce_` where one is asked for, `gloo:all_reduce` where it is done.

Invariant: a collective is in the profile of the thread that asked for it, whichever thread does it.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.keys import PROFILE
from .._dispatch.state import modes
from ._options import OpType

__all__ = ["Doing", "Stretch", "asked", "session"]

# What is asked for, and what is done.
NAMES: dict[OpType, tuple[str, str]] = {
    OpType.BROADCAST: ("broadcast_", "broadcast"),
    OpType.ALLREDUCE: ("allreduce_", "all_reduce"),
    OpType.ALLREDUCE_COALESCED: ("allreduce_coalesced_", "all_reduce"),
    OpType.REDUCE: ("reduce_", "reduce"),
    OpType.ALLGATHER: ("allgather_", "all_gather"),
    OpType._ALLGATHER_BASE: ("_allgather_base_", "all_gather"),
    OpType.ALLGATHER_COALESCED: ("allgather_coalesced_", "all_gather"),
    OpType.GATHER: ("gather_", "gather"),
    OpType.SCATTER: ("scatter_", "scatter"),
    OpType.REDUCE_SCATTER: ("reduce_scatter_", "reduce_scatter"),
    OpType._REDUCE_SCATTER_BASE: ("_reduce_scatter_base_", "reduce_scatter"),
    OpType.ALLTOALL: ("alltoall_", "all_to_all"),
    OpType.ALLTOALL_BASE: ("alltoall_base_", "all_to_all"),
    OpType.SEND: ("send", "send"),
    OpType.RECV: ("recv_", "recv"),
    OpType.RECVANYSOURCE: ("recv_any_source_", "recvAnySource"),
    OpType.BARRIER: ("barrier", "barrier"),
    OpType.COALESCED: ("coalesced", "coalesced"),
}


def session() -> Any:
    """The profile that this thread takes part in, or None."""
    if not modes() & PROFILE:
        return None
    from .._profiler.recorder import Active

    found = Active.session
    return found if found is not None and found.options.cpu else None


class Stretch:
    """A name in a profile, for what is done inside; nothing where there is no profile."""

    __slots__ = ("_name", "_record", "_session")

    def __init__(self, name: str, profile: Any) -> None:
        self._name, self._session = name, profile
        self._record: Any = None

    def __enter__(self) -> None:
        if self._session is not None:
            self._record = self._session.begin(self._name, "cpu_op")

    def __exit__(self, *_: Any) -> None:
        if self._record is not None:
            self._session.finish(self._record)


class Doing:
    """A collective that is being done, beside what its thread does; nothing where there is no profile."""

    __slots__ = ("_record", "_session")

    def __init__(self, backend: str, kind: OpType, tensors: Any, profile: Any) -> None:
        self._session = profile
        self._record: Any = None
        if profile is not None:
            self._record = profile.begin_detached(f"{backend}:{NAMES[kind][1]}", tensors)

    def end(self) -> None:
        if self._record is not None:
            self._session.end_detached(self._record)


def asked(kind: OpType) -> Stretch:
    """The stretch in which a collective is asked for."""
    profile = session()
    return Stretch(f"c10d::{NAMES[kind][0]}" if profile is not None else "", profile)
