"""What all schedulers share: steps counted on both sides, and the state."""

from __future__ import annotations

import weakref
from functools import wraps
from typing import Any

from ...._warn import warn
from ..sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


def _count_steps(sparsifier: Any) -> None:
    """From now on the sparsifier counts its steps. What counts does not keep it alive."""
    sparsifier._step_count = 0
    step = sparsifier.step
    if getattr(step, "_with_counter", False):
        return
    of, function = weakref.ref(sparsifier), step.__func__

    @wraps(function)
    def counting(*args: Any, **kwargs: Any) -> Any:
        it: Any = of()
        it._step_count += 1
        return function(it, *args, **kwargs)

    setattr(counting, "_with_counter", True)
    sparsifier.step = counting


class BaseScheduler:
    """Base of all schedulers; a subclass says in `get_sl` how sparse each group is in epoch `last_epoch`."""

    def __init__(self, sparsifier: Any, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier: Any = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        _count_steps(sparsifier)
        self._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the sparsifier."""
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        vars(self).update(state_dict)

    def get_last_sl(self) -> list[float]:
        """How sparse each group was made last."""
        return self._last_sl

    def _asked_for_sl(self) -> None:
        if not self._get_sl_called_within_step:
            warn("To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.")

    def get_sl(self) -> list[float]:
        """How sparse each group is now; `step` asks for it."""
        self._asked_for_sl()
        raise NotImplementedError

    def print_sl(self, is_verbose: bool, group: Any, sl: float, epoch: int | None = None) -> None:
        """Say how sparse a group is made."""
        if is_verbose:
            when = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{when} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """The next epoch: every group is given its level. The sparsifier steps first."""
        if self._step_count == 1:
            if not hasattr(self.sparsifier.step, "_with_counter"):
                warn(
                    "Seems like `sparsifier.step()` has been overridden after sparsity scheduler initialization. "
                    "Please, make sure to call `sparsifier.step()` before `scheduler.step()`."
                )
            elif self.sparsifier._step_count < 1:
                warn(
                    "Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make sure you run the "
                    "sparsifier.step() BEFORE any calls to the scheduler.step()."
                )
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            values = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, level) in enumerate(zip(self.sparsifier.groups, values, strict=False)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, i, level, epoch)
        self._last_sl: list[float] = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list[Any]:
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
