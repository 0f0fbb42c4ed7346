"""Schedules of a pipeline: in which order a stage does forward and backward of microbatches.

Invariant: gradients are those of the mean of the microbatches' losses, whatever the order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from ... import Tensor, cat, no_grad
from ._stage import PipelineStage

__all__ = ["PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe"]


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


class PipelineScheduleSingle(ABC):
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
        given = {"args_chunk_spec": args_chunk_spec, "kwargs_chunk_spec": kwargs_chunk_spec}
        for name, value in {**given, "output_merge_spec": output_merge_spec}.items():
            if value is not None:
                raise NotImplementedError(f"{type(self).__name__}(): argument '{name}' must be None")
        if not isinstance(stage, PipelineStage):
            raise TypeError(f"{type(self).__name__}(): stage must be a PipelineStage, got {type(stage).__name__}")
        if n_microbatches < 1:
            raise ValueError(f"{type(self).__name__}(): n_microbatches must be positive, got {n_microbatches}")
        self._stage, self._n_microbatches, self._loss_fn = stage, n_microbatches, loss_fn
        self._has_backward, self.scale_grads = loss_fn is not None, scale_grads

    @abstractmethod
    def _order(self, count: int) -> Iterator[bool]:
        """Of `count` microbatches each forward (True) and each backward (False)."""

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
        if losses is not None and self._stage.is_last and self._has_backward:
            losses[:] = values
        return _merged(found) if self._stage.is_last and return_outputs else None

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Forward of a batch."""
        with no_grad():
            found, values = self._run(args, kwargs, target, {}, False)
        if losses is not None and self._stage.is_last and self._loss_fn is not None:
            losses[:] = values
        return _merged(found) if self._stage.is_last else None

    def _run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any, loss_kwargs: dict[str, Any], backward: bool
    ) -> tuple[list[Any], list[Any]]:
        stage, count = self._stage, self._n_microbatches
        if args and not stage.is_first:
            raise RuntimeError(f"stage {stage.stage_index} takes its inputs from the one before, not from step()")
        loss_fn = self._loss_fn if target is not None else None
        if backward and stage.is_last and loss_fn is None:
            raise RuntimeError("the last stage needs a target for backward")
        rows = list(zip(*[_chunks(each, count) for each in args])) or [()] * count
        names = {name: _chunks(value, count) for name, value in kwargs.items()}
        targets = _chunks(target, count)
        found: list[Any] = []
        values: list[Any] = []

        def one(at: int) -> None:
            def loss(out: Any) -> Any:
                assert loss_fn is not None
                return loss_fn(out, targets[at], **loss_kwargs)

            own = {name: value[at] for name, value in names.items()}
            out, value = stage.forward(rows[at], own, loss if loss_fn is not None else None)
            if stage.is_last:
                found.append(out)
                values.append(value)

        at = 0
        for forward in self._order(count):
            if forward:
                one(at)
                at += 1
            elif backward:
                stage.backward()
            else:
                stage.forget()
        stage.finish()
        if backward and self.scale_grads:
            stage.scale_grads(count)
        return found, values


class ScheduleGPipe(PipelineScheduleSingle):
    """All forwards, then all backwards."""

    __module__ = "torch.distributed.pipelining.schedules"

    def _order(self, count: int) -> Iterator[bool]:
        yield from [True] * count + [False] * count


class Schedule1F1B(PipelineScheduleSingle):
    """As many forwards as there are stages to come, then one backward and one forward in turn."""

    __module__ = "torch.distributed.pipelining.schedules"

    def _order(self, count: int) -> Iterator[bool]:
        first = min(count, self._stage.num_stages - self._stage.stage_index)
        yield from [True] * first
        for _ in range(count - first):
            yield from (False, True)
        yield from [False] * first
