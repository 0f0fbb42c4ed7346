"""When a model is averaged: every so many steps, after a while without.

Invariant: an averager counts the calls of `average_parameters`, whether they average or not.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ... import distributed_c10d as dist
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]

_NEEDLESS = (
    "no need to use model averaging because the communication cost of all-reducing parameters will be no less than "
    "the cost of all-reducing gradients by DistributedDataParallel in the backward pass. Therefore, only "
    "DistributedDataParallel should be used for this case."
)


class ModelAverager(ABC):
    """What decides at each step whether a model is averaged."""

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = dist.group.WORLD if process_group is None else process_group
        if self.process_group is None:
            raise TypeError("Invariant encountered: value was None when it should not be")
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is time."""
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """Averages at every `period`-th step, from step `warmup_steps` on."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(f"When period is 1, {_NEEDLESS}", stacklevel=2)
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step; average if the warm-up is over and the period has passed."""
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
