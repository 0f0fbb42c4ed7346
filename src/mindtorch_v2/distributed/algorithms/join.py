"""`Join`: processes with fewer inputs than others take part, with nothing of their own, until all are done.

Invariant: in every iteration each process that has not joined says so (one all-reduce of a 1), and each that has joined
answers with a 0, and then with whatever its joinables would have sent.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

from ... import _dtype as _t
from .. import distributed_c10d as dist

__all__ = ["Join", "Joinable", "JoinHook"]


class JoinHook:
    """What a process that has joined does for a joinable."""

    def main_hook(self) -> None:
        """In every iteration of the others: their collectives, with nothing of one's own."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Once, when all have joined."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """Something with collectives in every iteration, such as DDP or a sharded optimizer."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process that has joined does."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where the tensors of the join context's own collectives are."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of the join context's own collectives."""


class Join:
    """`with Join([model, optimizer]):` around a loop whose number of iterations differs between processes."""

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [each.join_hook(**kwargs) for each in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        for place, each in enumerate(joinables):
            each._join_config = _JoinConfig(enable, throw_on_early_termination, place == 0)
        group = joinables[0].join_process_group
        device = joinables[0].join_device
        for each in joinables:
            if each.join_process_group != group:
                raise ValueError("Using join context manager with multiple process groups")
            device = each.join_device if device is None else device
        self._process_group, self._device = group, device
        self._rank = dist.get_rank(group)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._enable or kind:
            return
        rounds, last = 0, True
        warned = False
        while True:
            left = self._left()
            if left == 0:
                break
            last = False
            if self._throw:
                self._stop_others()
            for hook in self._join_hooks:
                hook.main_hook()
            rounds += 1
            if rounds >= 1000 and not warned:
                warned = True
                warnings.warn(
                    f"Detected uneven input skew of greater than 1000. This means that rank {self._rank} has at least "
                    "1000 fewer inputs than other currently-active ranks. This level of skew could lead to performance "
                    "degradation during training.",
                    stacklevel=2,
                )
        for hook in self._join_hooks:
            hook.post_hook(last)

    def _left(self) -> int:
        from ... import zeros

        count = zeros(1, device=self._device)
        dist.all_reduce(count, group=self._process_group)
        return int(count.item())

    def _stop_others(self) -> None:
        from ... import ones

        dist.all_reduce(ones(1, device=self._device), group=self._process_group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Say that this process has not joined; the work of that, and the number of those that have not."""
        from ... import ones, zeros

        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        device, group = joinable.join_device, joinable.join_process_group
        count = ones(1, dtype=_t.float32, device=device)
        work = dist.all_reduce(count, group=group, async_op=True)
        if config.throw_on_early_termination:
            stop = zeros(1, device=device)
            dist.all_reduce(stop, group=group)
            if stop.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
