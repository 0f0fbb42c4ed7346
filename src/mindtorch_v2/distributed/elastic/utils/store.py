"""`torch.distributed.elastic.utils.store`: agents that exchange notes by a store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from ... import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_DONE = "/num_members"
_LAST = "/last_member"


@contextlib.contextmanager
def store_timeout(store: Any, timeout: float) -> Iterator[None]:
    """Inside, the store waits as long as this, in seconds."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store: Any, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """What all ranks have put under a prefix and their number; rank 0, whose store it may be, leaves last."""
    found = [store.get(f"{prefix}{other}") for other in range(world_size)]
    barrier(store, world_size, f"{prefix}/finished", rank=rank)
    return found


def synchronize(
    store: Any, data: bytes, rank: int, world_size: int, key_prefix: str, timeout: float = 300
) -> list[bytes]:
    """Put one's own note, and read all."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def barrier(
    store: Any,
    world_size: int,
    key_prefix: str,
    barrier_timeout: float = 300,
    rank: int | None = None,
    rank_tracing_decoder: Callable[[int], str] | None = None,
    trace_timeout: float = 10,
) -> None:
    """Wait until as many have come. With their ranks given, rank 0 says who is missing if they do not."""
    with store_timeout(store, barrier_timeout):
        if rank is not None:
            store.set(f"{key_prefix}{rank}/came", b"1")
        if store.add(key_prefix + _DONE, 1) == world_size:
            store.set(key_prefix + _LAST, b"1")
        try:
            store.wait([key_prefix + _LAST])
        except RuntimeError as error:
            missing = [] if rank != 0 else _missing(store, world_size, key_prefix)
            if not missing:
                raise
            shown = ", ".join((rank_tracing_decoder or str)(each) for each in missing)
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} (world_size={world_size}, "
                f"missing_ranks=[{shown}], timeout={barrier_timeout})"
            ) from error


def _missing(store: Any, world_size: int, key_prefix: str) -> list[int]:
    return [rank for rank in range(world_size) if not store.check([f"{key_prefix}{rank}/came"])]
