"""Adamax: Adam with the infinity norm.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_betas, check_lr, check_not_negative, column, zeros_like
from ._lists import (
    Lists,
    Tensors,
    add_quotients,
    check_capturable,
    check_steps,
    count_up,
    decayed,
    no_autograd,
    parts_of,
    reals,
    step_values,
    to_scalar,
    use_foreach,
    value_of,
    view_as_real,
)
from ._options import Options

__all__ = ["Adamax", "adamax"]


@dataclass(kw_only=True)
class AdamaxOptions(Options):
    """Options of a step of Adamax."""

    PAIRS = {"betas": ("beta1", "beta2")}
    beta1: float
    beta2: float
    eps: float


class Adamax(Algorithm):
    """Adamax, as in "Adam: A Method for Stochastic Optimization"."""

    _OPTIONS = AdamaxOptions
    _LATER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": self._number(group, param, 0.0), "exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        _step((params, grads, column(states, "exp_avg"), column(states, "exp_inf"), column(states, "step")), o)


def _single_tensor_adamax(
    o: AdamaxOptions, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_infs: Tensors, state_steps: Tensors
) -> None:
    if o.capturable:
        check_capturable(params, state_steps)
    lr = to_scalar(o.lr)
    for param, grad, exp_avg, exp_inf, step in zip(params, grads, exp_avgs, exp_infs, state_steps):
        grad = -grad if o.maximize else grad
        step += 1
        if o.weight_decay != 0:
            grad = grad.add(param, alpha=o.weight_decay)
        param, grad, exp_avg, exp_inf = reals(param, grad, exp_avg, exp_inf)
        exp_avg.lerp_(grad, 1 - o.beta1)
        if o.differentiable:
            both = torch.cat([exp_inf.mul_(o.beta2).unsqueeze(0), grad.abs().add_(o.eps).unsqueeze_(0)], 0)
            exp_inf.copy_(torch.amax(both, 0, keepdim=False))
        else:
            torch.maximum(exp_inf.mul_(o.beta2), grad.abs().add_(o.eps), out=exp_inf)
        if o.capturable:
            correction = o.beta1**step - 1
            correction.div_(lr)
            param.addcdiv_(exp_avg, exp_inf * correction)
        else:
            param.addcdiv_(exp_avg, exp_inf, value=-(lr / (1 - o.beta1 ** value_of(step))))


def _multi_tensor_adamax(
    o: AdamaxOptions, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_infs: Tensors, state_steps: Tensors
) -> None:
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, state_steps, xla=False)
    lr = to_scalar(o.lr) if o.capturable else value_of(o.lr)
    lists = (params, grads, exp_avgs, exp_infs, state_steps)
    for some, grads, averages, norms, steps in parts_of(*lists):
        if o.has_complex:
            view_as_real(some, grads, averages, norms)
        count_up(steps)
        grads = decayed(grads, some, o.weight_decay, o.maximize)
        torch._foreach_lerp_(averages, grads, 1 - o.beta1)
        torch._foreach_mul_(norms, o.beta2)
        sizes = torch._foreach_abs(grads)
        torch._foreach_add_(sizes, o.eps)
        torch._foreach_maximum_(norms, sizes)
        if o.capturable:
            corrections = [(o.beta1**step - 1).div_(lr) for step in steps]
            torch._foreach_addcdiv_(some, averages, torch._foreach_mul(norms, corrections))
        else:
            rates = [lr / (1 - o.beta1**step) * -1 for step in step_values(steps, False)]
            add_quotients(some, averages, norms, rates)


def adamax(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
) -> None:
    """One step of Adamax on lists of tensors."""
    options = AdamaxOptions(
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        eps=eps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
    )
    _step((params, grads, exp_avgs, exp_infs, state_steps), options)


def _step(lists: Lists, o: AdamaxOptions) -> None:
    check_steps(lists[4])
    form = _multi_tensor_adamax if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_adamax
    form(o, *lists)
