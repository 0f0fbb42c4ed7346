"""Levels that approach their end by a cubic."""

from __future__ import annotations

from typing import Any

from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """From `init_sl` at epoch `init_t` to the group's level after `total_t` steps of `delta_t` epochs.

    Each may be a list with one value for each group. With `initially_zero` the level is zero before `init_t`.
    """

    def __init__(
        self,
        sparsifier: Any,
        init_sl: Any = 0.0,
        init_t: Any = 0,
        delta_t: Any = 10,
        total_t: Any = 100,
        initially_zero: Any = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        # The lists are as long as the groups of it.
        self.sparsifier = sparsifier
        self.init_sl = self._make_sure_a_list(init_sl)
        self.init_t = self._make_sure_a_list(init_t)
        self.delta_t = self._make_sure_a_list(delta_t)
        self.total_t = self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False
    ) -> float:
        """The level at epoch `t`, between `s_0` and `s_f`."""
        if initially_zero and t < t_0:
            return 0
        left = 1.0 - (t - t_0) / (dt * n)
        return max(s_0, min(s_f, s_f + (s_0 - s_f) * left**3))

    def get_sl(self) -> list[float]:
        self._asked_for_sl()
        settings = zip(
            self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero, strict=False
        )
        return [
            self.sparsity_compute_fn(s_0, s_f, self.last_epoch, t_0, dt, n, zero)
            for s_0, s_f, t_0, dt, n, zero in settings
        ]
