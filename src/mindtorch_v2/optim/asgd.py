"""Averaged stochastic gradient descent.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_lr, check_not_negative, column, zeros_like
from ._lists import (
    Lists,
    Tensors,
    beside,
    check_capturable,
    count_up,
    decayed,
    no_autograd,
    parts_of,
    reals,
    scalar_dtype,
    to_scalar,
    use_foreach,
    value_of,
    view_as_real,
)
from ._options import Options

__all__ = ["ASGD", "asgd"]

_ON_DEVICE = "params, mus, etas, and state_steps"


@dataclass(kw_only=True)
class ASGDOptions(Options):
    """Options of a step of ASGD."""

    lambd: float
    t0: float
    alpha: float


class ASGD(Algorithm):
    """Averaged stochastic gradient descent, as in "Acceleration of stochastic approximation by averaging"."""

    _OPTIONS = ASGDOptions
    _LATER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _NUMBERS = ("step", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _number(self, group: dict[str, Any], param: Tensor, value: Any) -> Tensor:
        # Here numbers always lie beside their parameter.
        return torch.as_tensor(to_scalar(value), dtype=scalar_dtype(), device=param.device).clone().detach()

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {
            "step": self._number(group, param, 0.0),
            "eta": self._number(group, param, group["lr"]),
            "mu": self._number(group, param, 1.0),
            "ax": zeros_like(param),
        }

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        lists = (
            params,
            grads,
            column(states, "ax"),
            column(states, "mu"),
            column(states, "eta"),
            column(states, "step"),
        )
        _step(lists, o)


def _single_tensor_asgd(
    o: ASGDOptions, params: Tensors, grads: Tensors, axs: Tensors, mus: Tensors, etas: Tensors, state_steps: Tensors
) -> None:
    if o.capturable:
        check_capturable(params, mus, etas, state_steps, what=_ON_DEVICE)
    lr = to_scalar(o.lr)
    for param, grad, ax, mu, eta, step in zip(params, grads, axs, mus, etas, state_steps):
        grad = -grad if o.maximize else grad
        param, grad, ax = reals(param, grad, ax)
        step += 1
        if o.weight_decay != 0:
            grad = grad.add(param, alpha=o.weight_decay)
        if o.capturable:
            lr = beside(param, lr)
            param.mul_(1 - o.lambd * eta)
            param.addcmul_(grad, eta, value=-1)
            ax.add_(param.sub(ax).mul_(mu))
            eta.copy_(lr / ((1 + o.lambd * lr * step) ** o.alpha))
            mu.copy_(1 / torch.maximum(step - o.t0, torch.ones_like(step)))
            continue
        rate = value_of(eta)
        param.mul_(1 - o.lambd * rate)
        param.add_(grad, alpha=-rate)
        if value_of(mu) != 1:
            ax.add_(param.sub(ax).mul_(mu))
        else:
            ax.copy_(param)
        count = value_of(step)
        eta.copy_(torch.as_tensor(lr / ((1 + o.lambd * lr * count) ** o.alpha)))
        mu.copy_(torch.as_tensor(1 / max(1, count - o.t0)))


def _multi_tensor_asgd(
    o: ASGDOptions, params: Tensors, grads: Tensors, axs: Tensors, mus: Tensors, etas: Tensors, state_steps: Tensors
) -> None:
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, mus, etas, state_steps, xla=False, what=_ON_DEVICE)
    lr = to_scalar(o.lr)
    lists = (params, grads, axs, mus, etas, state_steps)
    for some, grads, means, weights, rates, steps in parts_of(*lists):
        if o.has_complex:
            view_as_real(some, grads, means)
        count_up(steps)
        grads = decayed(grads, some, o.weight_decay, o.maximize)
        torch._foreach_addcmul_(some, torch._foreach_add(grads, some, alpha=o.lambd), rates, value=-1)
        torch._foreach_addcmul_(means, torch._foreach_sub(some, means), weights)
        lr = beside(some[0], lr)
        for weight, rate, step in zip(weights, rates, steps):
            rate.copy_(lr / ((1 + o.lambd * lr * step) ** o.alpha))
            if o.capturable:
                weight.copy_(1 / torch.clamp_min(step - o.t0, 1.0))
            else:
                weight.copy_(torch.as_tensor(1 / max(1, value_of(step) - o.t0)))


def asgd(
    params: Tensors,
    grads: Tensors,
    axs: Tensors,
    mus: Tensors,
    etas: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: Any,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of averaged gradient descent on lists of tensors."""
    options = ASGDOptions(
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
    )
    _step((params, grads, axs, mus, etas, state_steps), options)


def _step(lists: Lists, o: ASGDOptions) -> None:
    form = _multi_tensor_asgd if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_asgd
    form(o, *lists)
