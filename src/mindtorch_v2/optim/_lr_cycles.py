"""Schedulers that move learning rate and momentum in cycles, one against the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ._lr_base import (
    LRScheduler,
    _check_optimizer,
    _format_param,
    _object_state,
    _Rate,
    _update_param_group_val,
    _warn_get_lr_called_within_step,
)
from .optimizer import Optimizer


class _CyclingLR(LRScheduler):
    """What moves the momentum of an optimiser against its learning rate: `momentum`, or the first of `betas`."""

    use_beta1: bool

    def _find_momentum(self, optimizer: Optimizer) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults

    def _start_momentum(self, base: list[_Rate], highest: list[_Rate]) -> None:
        for low, high, group in zip(base, highest, self.optimizer.param_groups, strict=True):
            self._put_momentum(group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def _put_momentum(self, group: dict[str, Any], value: _Rate) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_CyclingLR):
    """Learning rates that go up and down between two bounds, and momentum against them."""

    __module__ = "mindtorch_v2.optim.lr_scheduler"

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _update_param_group_val(group, "lr", rate)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (float(step_size_down) if step_size_down is not None else up)
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom: Any = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum(optimizer)
            self.base_momentums = _format_param("base_momentum", optimizer, base_momentum)
            self.max_momentums = _format_param("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._start_momentum(self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    @property
    def _scale_fn_ref(self) -> Callable[[float], float]:
        if self._scale_fn_custom is not None:
            custom: Callable[[float], float] = self._scale_fn_custom
            return custom
        if self.mode == "exp_range":
            return partial(self._exp_range_scale_fn, self.gamma)
        return self._triangular_scale_fn if self.mode == "triangular" else self._triangular2_scale_fn

    def scale_fn(self, x: float) -> float:
        """The height of a cycle as a part of the whole, by the number of the cycle or of the step."""
        return self._scale_fn_ref(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[_Rate]:
        """The learning rates at `last_epoch`; the momentum of the groups is set as well."""
        _warn_get_lr_called_within_step(self)
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        argument = cycle if self.scale_mode == "cycle" else self.last_epoch
        scale = self.scale_fn
        rates = [
            low + (high - low) * part * scale(argument) for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            groups, lows, highs = self.optimizer.param_groups, self.base_momentums, self.max_momentums
            for group, low, high in zip(groups, lows, highs, strict=True):
                self._put_momentum(group, high - (high - low) * part * scale(argument))
        return rates

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else _object_state(function)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        rest = dict(state_dict)
        attributes = rest.pop("_scale_fn_custom")
        super().load_state_dict(rest)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self._init_scale_fn()


def _phase(end: float, rates: str, momenta: str) -> dict[str, Any]:
    (start_lr, end_lr), (start_momentum, end_momentum) = rates.split(), momenta.split()
    return {
        "end_step": end,
        "start_lr": start_lr + "_lr",
        "end_lr": end_lr + "_lr",
        "start_momentum": start_momentum + "_momentum",
        "end_momentum": end_momentum + "_momentum",
    }


class OneCycleLR(_CyclingLR):
    """Up to the highest learning rate and down again far below the first one, once in `total_steps` steps."""

    __module__ = "mindtorch_v2.optim.lr_scheduler"

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        peak = float(pct_start * self.total_steps) - 1
        self._schedule_phases = [_phase(peak, "initial max", "max base")]
        if three_phase:
            back = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases.append(_phase(back, "max initial", "base max"))
            self._schedule_phases.append(_phase(self.total_steps - 1, "initial min", "max max"))
        else:
            self._schedule_phases.append(_phase(self.total_steps - 1, "max min", "base max"))
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        highest = _format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum(optimizer)
            high = _format_param("max_momentum", optimizer, max_momentum)
            low = _format_param("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                self._start_momentum(low, high)
        super().__init__(optimizer, last_epoch)

    def _anneal_func(self, start: _Rate, end: _Rate, pct: float) -> _Rate:
        if not hasattr(self, "_anneal_func_type"):  # loaded from a state of old, which has the function itself
            old: _Rate = vars(self)["anneal_func"](start, end, pct)
            return old
        if self._anneal_func_type == "cos":
            return self._annealing_cos(start, end, pct)
        if self._anneal_func_type == "linear":
            return self._annealing_linear(start, end, pct)
        raise ValueError(f"Unknown _anneal_func_type: {self._anneal_func_type}")

    @staticmethod
    def _annealing_cos(start: _Rate, end: _Rate, pct: float) -> _Rate:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: _Rate, end: _Rate, pct: float) -> _Rate:
        return (end - start) * pct + start

    def get_lr(self) -> list[_Rate]:
        """The learning rates at `last_epoch`; the momentum of the groups is set as well."""
        _warn_get_lr_called_within_step(self)
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._put_momentum(group, self._anneal_func(start, end, part))
        return rates


def _total_steps(total: Any, epochs: Any, per_epoch: Any) -> int:
    if total is not None:
        return _positive("total_steps", total, total <= 0 or not isinstance(total, int))
    if epochs is None or per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", per_epoch)):
        _positive(name, value, not isinstance(value, int) or value <= 0)
    return int(epochs * per_epoch)


def _positive(name: str, value: Any, wrong: bool) -> int:
    if wrong:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return int(value)
