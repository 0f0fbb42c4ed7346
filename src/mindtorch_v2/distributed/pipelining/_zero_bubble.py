"""Schedules that fill the gaps of a pipeline with gradients of parameters, which nobody waits for.

Invariant: what a rank does follows from the numbers of ranks and microbatches alone, and the orders of all ranks
together are those of one possible run: whoever waits for a message waits for one that will come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._schedules import Action, Kind, PipelineScheduleMulti, _Rounds
from ._stage import PipelineStage

__all__ = ["ScheduleDualPipeV", "ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble"]

_F, _B, _I, _W = Kind


class ScheduleInterleavedZeroBubble(_Rounds):
    """As `ScheduleInterleaved1F1B`, with gradients of parameters as many backwards later as the rank has before it."""

    __module__ = "torch.distributed.pipelining.schedules"
    _title = "Zero bubble"

    def _order(self, count: int) -> Iterator[Action]:
        total = self.n_local_stages * count
        further = self.pp_group_size - 1 - self.rank
        ahead = min(total, (self.n_local_stages - 1) * self.microbatches_per_round + further)
        for step in range(ahead):
            yield self._forward(step), _F
        for step in range(total):
            if ahead + step < total:
                yield self._forward(ahead + step), _F
            yield self._backward(step), _I
            if step >= self.rank:
                yield self._backward(step - self.rank), _W
        for step in range(max(0, total - self.rank), total):
            yield self._backward(step), _W


class _There(PipelineScheduleMulti):
    """Two stages on a rank: microbatches come by on their way there, and on their way back."""

    _back = True

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        if self.n_local_stages != 2:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {self.n_local_stages}.")


class _Run:
    """A run in which forwards and both halves of a backward take one unit of time each.

    A rank does what others wait for before what nobody waits for, and begins a microbatch only while it holds less
    than one for each stage."""

    def __init__(self, ranks: int, count: int) -> None:
        self.ranks, self.count, self.last = ranks, count, 2 * ranks - 1
        self.done: dict[tuple[int, Kind], int] = {}  # by stage
        self.orders: list[list[Action]] = [[] for _ in range(ranks)]
        while any(len(each) < 6 * count for each in self.orders):
            chosen = [self._choice(rank) for rank in range(ranks)]
            for rank, action in enumerate(chosen):
                if action is not None:
                    self.orders[rank].append(action)
                    place = (self._stage(rank, action[0]), action[1])
                    self.done[place] = self.done.get(place, 0) + 1

    def _stage(self, rank: int, which: int) -> int:
        return self.last - rank if which else rank

    def _count(self, stage: int, kind: Kind) -> int:
        return self.done.get((stage, kind), 0)

    def _ready(self, stage: int, kind: Kind) -> bool:
        """Whether a stage has what its next action of a kind needs."""
        at = self._count(stage, kind)
        if kind is _F:
            return at < (self.count if stage == 0 else self._count(stage - 1, _F))
        if kind is _I:
            return at < self._count(stage, _F) and (stage == self.last or at < self._count(stage + 1, _I))
        return at < self._count(stage, _I)

    def _choice(self, rank: int) -> Action | None:
        stages = [self._stage(rank, which) for which in (0, 1)]
        held = sum(self._count(each, _F) - self._count(each, _W) for each in stages)
        for which, kind in ((1, _I), (0, _I), (1, _F), (0, _F), (1, _W), (0, _W)):
            begins = which == 0 and kind is _F
            if self._ready(stages[which], kind) and not (begins and held >= 2 * self.ranks):
                return which, kind
        return None


class ScheduleZBVZeroBubble(_There):
    """Stages there and back again, with gradients of parameters where a rank would wait."""

    __module__ = "torch.distributed.pipelining.schedules"

    def _order(self, count: int) -> Iterator[Action]:
        yield from _Run(self.pp_group_size, count).orders[self.rank]


class ScheduleDualPipeV(_There):
    """Stages there and back again; a forward of one beside a backward of the other, and halves at the ends alone."""

    __module__ = "torch.distributed.pipelining.schedules"

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        if n_microbatches < self._stages[0].num_stages:
            raise ValueError(
                "DualPipeV requires at least as many microbatches as stages, but got "
                f"{n_microbatches} microbatches and {self._stages[0].num_stages} stages."
            )

    def _order(self, count: int) -> Iterator[Action]:
        behind, reached = self.pp_group_size - 1 - self.rank, self.rank + 1
        yield from [(0, _F)] * (2 * behind)
        yield from [(0, _F), (1, _F)] * reached
        yield from [(1, _I), (1, _W), (1, _F)] * behind
        yield from [(0, _F), (1, _B), (1, _F), (0, _B)] * (count - 2 * self.pp_group_size + reached)
        yield from [(1, _B), (1, _F), (0, _B)] * behind
        # The last backwards in halves: inputs first, as other ranks wait for them.
        whole = reached // 2
        yield from [(1, _B), (0, _B)] * whole
        left = [1, 0] * (reached - whole)
        yield from [(which, _I) for which in left]
        later = list(left)
        for _ in range(behind):
            later.append(0)
            yield from ((later.pop(0), _W), (0, _I))
        yield from [(which, _W) for which in later]
