"""Schedules of a pipeline: in which order a stage does forward and backward of microbatches.

Invariant: gradients are those of the mean of the microbatches' losses, whatever the order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from ... import Tensor, cat, no_grad
from ._stage import PipelineStage, rank_of

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
]


class Kind(Enum):
    """Forward; backward, or its two halves: gradients of a stage's inputs, and those of its parameters."""

    FORWARD, BACKWARD, INPUTS, PARAMETERS = range(4)


# Which of the rank's stages, and what.
Action = tuple[int, Kind]
_F, _B, _I, _W = Kind


def _chunks(value: Any, count: int) -> list[Any]:
    """A tensor along its first dimension; anything else is the same for all."""
    if not isinstance(value, Tensor):
        return [value] * count
    if value.dim() == 0 or value.shape[0] < count:
        raise RuntimeError(f"a tensor of shape {tuple(value.shape)} cannot be split into {count} microbatches")
    return list(value.tensor_split(count))


def _merged(found: list[Any]) -> Any:
    if isinstance(found[0], (list, tuple)):
        return type(found[0])(_merged(list(each)) for each in zip(*found))
    return cat(found) if isinstance(found[0], Tensor) and found[0].dim() else found


class _Schedule(ABC):
    """In which order the stages of a rank do forward and backward of microbatches."""

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Any, scale_grads: bool, **refused: Any
    ) -> None:
        where = f"{type(self).__name__}()"
        for name, value in refused.items():
            if value is not None:
                raise NotImplementedError(f"{where}: argument '{name}' must be None")
        for each in stages:
            if not isinstance(each, PipelineStage):
                raise TypeError(f"{where}: stage must be a PipelineStage, got {type(each).__name__}")
        if n_microbatches < 1:
            raise ValueError(f"{where}: n_microbatches must be positive, got {n_microbatches}")
        self._stages, self._n_microbatches, self._loss_fn = stages, n_microbatches, loss_fn
        self._has_backward, self.scale_grads = loss_fn is not None, scale_grads
        self._has_first, self._has_last = any(each.is_first for each in stages), any(each.is_last for each in stages)

    @abstractmethod
    def _order(self, count: int) -> Iterator[Action]:
        """What this rank does with `count` microbatches; each action is about the oldest that still needs it."""

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Forward and backward of a batch. The first stage is given inputs, the last one targets; the last one gives
        the model's outputs, and its `losses` those of the microbatches."""
        found, values = self._run(args, kwargs, target, loss_kwargs or {}, self._has_backward)
        if losses is not None and self._has_last and self._has_backward:
            losses[:] = values
        return _merged(found) if self._has_last and return_outputs else None

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Forward of a batch."""
        with no_grad():
            found, values = self._run(args, kwargs, target, {}, False)
        if losses is not None and self._has_last and self._loss_fn is not None:
            losses[:] = values
        return _merged(found) if self._has_last else None

    def _run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any, loss_kwargs: dict[str, Any], backward: bool
    ) -> tuple[list[Any], list[Any]]:
        count = self._n_microbatches
        if args and not self._has_first:
            index = self._stages[0].stage_index
            raise RuntimeError(f"stage {index} takes its inputs from the one before, not from step()")
        loss_fn = self._loss_fn if target is not None else None
        if backward and self._has_last and loss_fn is None:
            raise RuntimeError("the last stage needs a target for backward")
        rows = list(zip(*[_chunks(each, count) for each in args])) or [()] * count
        names = {name: _chunks(value, count) for name, value in kwargs.items()}
        targets = _chunks(target, count)
        found: list[Any] = []
        values: list[Any] = []

        def one(stage: PipelineStage, at: int) -> None:
            def loss(out: Any) -> Any:
                assert loss_fn is not None
                return loss_fn(out, targets[at], **loss_kwargs)

            own = {name: value[at] for name, value in names.items()}
            out, value = stage.forward(rows[at], own, loss if loss_fn is not None else None)
            if stage.is_last:
                found.append(out)
                values.append(value)

        done = [0] * len(self._stages)
        for which, kind in self._order(count):
            stage = self._stages[which]
            if kind is _F:
                one(stage, done[which])
                done[which] += 1
            elif backward:
                {_B: stage.backward, _I: stage.backward_inputs, _W: stage.backward_parameters}[kind]()
            elif kind is not _W:
                stage.forget()
        for stage in self._stages:
            stage.finish()
            if backward and self.scale_grads:
                stage.scale_grads(count)
        return found, values


class PipelineScheduleSingle(_Schedule):
    """A schedule of one stage on each rank."""

    __module__ = "torch.distributed.pipelining.schedules"

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage],
            n_microbatches,
            loss_fn,
            scale_grads,
            args_chunk_spec=args_chunk_spec,
            kwargs_chunk_spec=kwargs_chunk_spec,
            output_merge_spec=output_merge_spec,
        )
        self._stage = stage
        if stage.num_stages != stage.group_size:
            raise ValueError(
                f"Pipeline group size {stage.group_size} does not match number of stages {stage.num_stages}; a rank "
                "with several stages needs a schedule of several, as ScheduleInterleaved1F1B"
            )


class ScheduleGPipe(PipelineScheduleSingle):
    """All forwards, then all backwards."""

    __module__ = "torch.distributed.pipelining.schedules"

    def _order(self, count: int) -> Iterator[Action]:
        yield from [(0, _F)] * count + [(0, _B)] * count


class Schedule1F1B(PipelineScheduleSingle):
    """As many forwards as there are stages to come, then one backward and one forward in turn."""

    __module__ = "torch.distributed.pipelining.schedules"

    def __init__(self, stage: PipelineStage, n_microbatches: int, *settings: Any, **named: Any) -> None:
        super().__init__(stage, n_microbatches, *settings, **named)
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages "
                f"({stage.num_stages})."
            )

    def _order(self, count: int) -> Iterator[Action]:
        first = min(count, self._stage.num_stages - self._stage.stage_index)
        yield from [(0, _F)] * first
        for _ in range(count - first):
            yield from ((0, _B), (0, _F))
        yield from [(0, _B)] * first


class PipelineScheduleMulti(_Schedule):
    """A schedule of several stages on each rank."""

    __module__ = "torch.distributed.pipelining.schedules"
    # Whether stages go there and back again: the first rank has the first one and the last one.
    _back = False

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            list(stages),
            n_microbatches,
            loss_fn,
            scale_grads,
            args_chunk_spec=args_chunk_spec,
            kwargs_chunk_spec=kwargs_chunk_spec,
            output_merge_spec=output_merge_spec,
            backward_requires_autograd=None if backward_requires_autograd else False,
            defer_pp_recv=True if defer_pp_recv else None,
        )
        first = self._stages[0]
        indices = [each.stage_index for each in self._stages]
        everywhere = range(first.num_stages)
        wanted = [each for each in everywhere if rank_of(each, first.group_size, self._back) == first.group_rank]
        if indices != wanted:
            raise ValueError(f"{type(self).__name__}(): this rank has the stages {wanted}, got {indices}")
        self.n_local_stages, self.rank, self.pp_group_size = len(indices), first.group_rank, first.group_size
        mail: dict[int, deque[Any]] = {}
        for each in self._stages:
            each.arrange(self._back, mail)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All forwards of a rank's first stage, then of its next; then backwards, of its last stage first."""

    __module__ = "torch.distributed.pipelining.schedules"

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        output_merge_spec: Any = None,
        *settings: Any,
        **named: Any,
    ) -> None:
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, *settings, **named)

    def _order(self, count: int) -> Iterator[Action]:
        for which in range(self.n_local_stages):
            yield from [(which, _F)] * count
        for which in reversed(range(self.n_local_stages)):
            yield from [(which, _B)] * count


class _Rounds(PipelineScheduleMulti):
    """Rounds of microbatches through a rank's stages in turn; backwards go the other way around."""

    _title = ""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self.number_of_rounds = max(1, n_microbatches // self.pp_group_size)
        self.microbatches_per_round = n_microbatches // self.number_of_rounds
        if n_microbatches % self.number_of_rounds:
            raise ValueError(
                f"{self._title} requires the number of microbatches to be a multiple of the number of rounds "
                f"({self.number_of_rounds}), but got {n_microbatches}."
            )

    def _forward(self, step: int) -> int:
        """Whose turn the step-th forward is."""
        return step // self.microbatches_per_round % self.n_local_stages

    def _backward(self, step: int) -> int:
        return self.n_local_stages - 1 - self._forward(step)


class ScheduleInterleaved1F1B(_Rounds):
    """Rounds of microbatches through a rank's stages in turn; as soon as backwards come, one of each in turn."""

    __module__ = "torch.distributed.pipelining.schedules"
    _title = "Interleaved 1F1B"

    def _order(self, count: int) -> Iterator[Action]:
        total = self.n_local_stages * count
        further = 2 * (self.pp_group_size - 1 - self.rank)
        ahead = min(total, (self.n_local_stages - 1) * self.microbatches_per_round + further)
        for step in range(ahead):
            yield self._forward(step), _F
        for step in range(total):
            if ahead + step < total:
                yield self._forward(ahead + step), _F
            yield self._backward(step), _B
