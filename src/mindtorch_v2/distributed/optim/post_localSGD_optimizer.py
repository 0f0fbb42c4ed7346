"""An optimizer of each process's own, after whose steps an averager may average the model."""

from __future__ import annotations

import warnings
from typing import Any

from ...optim.optimizer import Optimizer
from ..algorithms.model_averaging.averagers import ModelAverager


class PostLocalSGDOptimizer(Optimizer):
    """Steps with the optimizer that it is given, then lets the averager have its turn."""

    def __init__(self, optim: Any, averager: ModelAverager) -> None:
        # Everything is the other optimizer's: nothing of the base class is set up.
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The state of the optimizer below."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer below, and the averager's step."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: Any) -> None:
        """Take the state of the optimizer below, and the averager's step."""
        self.optim.load_state_dict(state_dict)
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=2,
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:  # type: ignore[override]
        """One step of the optimizer below, then the averager's."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group to the optimizer below."""
        self.optim.add_param_group(param_group)
