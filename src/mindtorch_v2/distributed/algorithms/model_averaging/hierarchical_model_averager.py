"""Models that are averaged in small groups often and in large groups seldom."""

from __future__ import annotations

import logging
import warnings
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from ... import distributed_c10d as dist
from . import utils
from .averagers import _NEEDLESS, ModelAverager

logger = logging.getLogger(__name__)


class HierarchicalModelAverager(ModelAverager):
    """Averages, at each step, over the group of the longest period that divides the step."""

    def __init__(self, period_group_size_dict: Any = None, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            warnings.warn(f"When the maximum period in arg ``period_group_size_dict`` is 1, {_NEEDLESS}", stacklevel=2)
        whole = dist.get_world_size(group=self.process_group)
        last = list(period_group_size_dict.values())[-1]
        if last != whole:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {last} must be equal to the size of arg "
                f"``process_group`` {whole}."
            )
        self.period_process_group_dict: OrderedDict[int, Any] = OrderedDict()
        logger.info("Model averaging hierarchy:")
        for period, size in period_group_size_dict.items():
            logger.info(
                "\tEach group that has %s processes average parameters every %s iterations, "
                "if no higher-level averaging.",
                size,
                period,
            )
            group = self.process_group
            if size != whole:
                group, _ = dist.new_subgroups(group_size=size, group=self.process_group)
            self.period_process_group_dict[period] = group
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps

    def _find_process_group(self) -> Any:
        """The group that averages at this step; None if none does."""
        due = [period for period in self._periods if self.step % period == 0]
        return self.period_process_group_dict[due[-1]] if due else None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step; average over the group whose turn it is."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
