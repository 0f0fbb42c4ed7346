"""Averages of models over training: stochastic weight averaging (SWA) and exponential moving averages (EMA).

Invariant: the averaged model is a copy of its own; the first update copies the parameters, later ones average them in
place, and nothing is recorded for autograd.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ._lists import group_by_device_and_dtype
from ._lr_base import LRScheduler, _format_param, _warn_get_lr_called_within_step
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

PARAM_LIST = tuple[Tensor, ...] | list[Tensor]

# Devices that have functions over lists of tensors; elsewhere a list is a loop.
_LIST_DEVICES = ("npu",)


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _inexact(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that moves each averaged parameter of a list by `1 - decay` of its way to the current one."""
    _check_decay(decay)

    def ema_update(ema_param_list: PARAM_LIST, current_param_list: PARAM_LIST, _: Any) -> None:
        with torch.no_grad():
            if _inexact(ema_param_list[0]):
                torch._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
                return
            for average, current in zip(ema_param_list, current_param_list, strict=True):
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that takes a list of current parameters into a list of equally weighted means."""

    def swa_update(averaged_param_list: PARAM_LIST, current_param_list: PARAM_LIST, num_averaged: Any) -> None:
        with torch.no_grad():
            if _inexact(averaged_param_list[0]):
                torch._foreach_lerp_(averaged_param_list, current_param_list, 1 / (num_averaged + 1))
                return
            ways = torch._foreach_sub(current_param_list, averaged_param_list)
            if isinstance(num_averaged, Tensor):
                torch._foreach_addcdiv_(averaged_param_list, ways, [num_averaged + 1] * len(averaged_param_list))
            else:
                torch._foreach_add_(averaged_param_list, ways, alpha=1.0 / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A function that returns the exponential moving average after one more parameter."""
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with torch.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """A function that returns the mean after one more parameter."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with torch.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of those given to `update_parameters`."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[PARAM_LIST, PARAM_LIST, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of `model` into the average; its buffers too with `use_buffers`, else they are copied."""
        own: Iterable[Tensor] = self.parameters()
        given: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            own = itertools.chain(self.module.parameters(), self.module.buffers())
            given = itertools.chain(model.parameters(), model.buffers())
        pairs = [(average.detach(), current.detach().to(average.device)) for average, current in zip(own, given)]
        if bool(self.n_averaged == 0):
            for average, current in pairs:
                average.copy_(current)
        elif self.multi_avg_fn is not None or self.avg_fn is None:
            self._update_lists(pairs)
        else:
            for average, current in pairs:
                average.copy_(self.avg_fn(average, current, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for buffer, current in zip(self.module.buffers(), model.buffers(), strict=True):
                buffer.detach().copy_(current.detach().to(buffer.device))
        self.n_averaged += 1

    def _update_lists(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        own, given = [average for average, _ in pairs], [current for _, current in pairs]
        lists = group_by_device_and_dtype([own, given])
        for (device, _), ((averages, currents), _) in lists.items():
            count = self.n_averaged.to(device)
            if self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, currents, count)
            elif device.type in _LIST_DEVICES:
                get_swa_multi_avg_fn()(averages, currents, count)
            else:
                mean = get_swa_avg_fn()
                for average, current in zip(averages, currents):
                    average.copy_(mean(average, current, count))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch normalisations in `model` anew, over the data of `loader`."""
    with torch.no_grad():
        momenta = {}
        for module in model.modules():
            if isinstance(module, _BatchNorm):
                module.reset_running_stats()
                momenta[module] = module.momentum
        if not momenta:
            return
        was_training = model.training
        model.train()
        for module in momenta:
            # A cumulative average: every batch has the same weight.
            module.momentum = None
        for batch in loader:
            data = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(data if device is None else data.to(device))
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rates to `swa_lr` in `anneal_epochs` epochs and keeps them there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How much of the way is done when the part `t` of the time has passed."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _done(self, step: int) -> float:
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # The rate that the annealing began with, from the one it has come to.
            initial = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + initial * (1 - now))
        return rates
