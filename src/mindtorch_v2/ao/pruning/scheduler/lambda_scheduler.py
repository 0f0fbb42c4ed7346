"""Levels by a function of the epoch."""

from __future__ import annotations

from collections.abc import Callable

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The group's level times `sl_lambda(epoch)`; a list has one function for each group."""

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        count = len(sparsifier.groups)
        if isinstance(sl_lambda, (list, tuple)):
            if len(sl_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(sl_lambda)}")
            self.sl_lambdas = list(sl_lambda)
        else:
            self.sl_lambdas = [sl_lambda] * count
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        self._asked_for_sl()
        return [level * factor(self.last_epoch) for factor, level in zip(self.sl_lambdas, self.base_sl, strict=False)]
