"""Steps that ranks take together: each does its part, one looks at all, each gets its share.

Invariant: what any rank raises, all raise, so that none waits for another that has left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import distributed_c10d as dist
from .api import CheckpointException, wrapped

_Failed = tuple[BaseException, str]


class Together:
    """The ranks of a group; alone, if there is no group."""

    def __init__(self, group: Any, use_dist: bool, coordinator: int = 0) -> None:
        self.group = group
        self.use_dist = use_dist
        self.rank = dist.get_rank(group) if use_dist else 0
        self.size = dist.get_world_size(group) if use_dist else 1
        self.coordinator = coordinator if use_dist else 0
        self.is_coordinator = self.rank == self.coordinator

    def _gather(self, value: Any) -> list[Any]:
        if not self.use_dist:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self.group)
        return found

    def _told(self, value: Any) -> Any:
        """What the coordinator has."""
        if not self.use_dist:
            return value
        held = [value]
        dist.broadcast_object_list(held, group=self.group, group_src=self.coordinator)
        return held[0]

    @staticmethod
    def _try(fn: Callable[[], Any]) -> tuple[Any, _Failed | None]:
        try:
            return fn(), None
        except BaseException as error:
            return None, wrapped(error)

    @staticmethod
    def _raise(step: str, failures: list[_Failed | None]) -> None:
        failed = {rank: each for rank, each in enumerate(failures) if each is not None}
        if failed:
            raise CheckpointException(step, failed)

    def reduce_scatter(self, step: str, local: Callable[[], Any], whole: Callable[[list[Any]], list[Any]]) -> Any:
        """Each rank's part; one rank makes of all a share for each."""
        told = self._gather(self._try(local))
        self._raise(step, [failed for _, failed in told])
        parts = [value for value, _ in told]
        shares, failed = self._told(self._try(lambda: whole(parts)) if self.is_coordinator else None)
        self._raise(step, [failed if rank == self.coordinator else None for rank in range(self.size)])
        return shares[self.rank]

    def all_reduce(self, step: str, local: Callable[[], Any], whole: Callable[[list[Any]], Any]) -> Any:
        """Each rank's part; what one rank makes of all, for all."""
        return self.reduce_scatter(step, local, lambda parts: [whole(parts)] * self.size)
