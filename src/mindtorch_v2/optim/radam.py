"""RAdam: Adam whose adaptive rate is rectified while there are few squared gradients to average.

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
    beside,
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

__all__ = ["RAdam", "radam"]


@dataclass(kw_only=True)
class RAdamOptions(Options):
    """Options of a step of RAdam."""

    PAIRS = {"betas": ("beta1", "beta2")}
    beta1: float
    beta2: float
    eps: float
    decoupled_weight_decay: bool


class RAdam(Algorithm):
    """RAdam, as in "On the variance of the adaptive learning rate and beyond"."""

    _OPTIONS = RAdamOptions
    _LATER = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": self._number(group, param, 0.0), "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        _step((params, grads, column(states, "exp_avg"), column(states, "exp_avg_sq"), column(states, "step")), o)


def _length(beta2: float, step: Any) -> Any:
    """How many squared gradients the average amounts to."""
    return 2 / (1 - beta2) - 1 - 2 * step * (beta2**step) / (1 - beta2**step)


def _rectification(beta2: float, length: Any) -> Any:
    most = 2 / (1 - beta2) - 1
    return ((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) ** 0.5


def _single_tensor_radam(
    o: RAdamOptions, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, state_steps: Tensors
) -> None:
    if o.capturable:
        check_capturable(params, state_steps)
    lr = to_scalar(o.lr)
    for param, grad, exp_avg, exp_avg_sq, step_t in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        grad = -grad if o.maximize else grad
        param, grad, exp_avg, exp_avg_sq = reals(param, grad, exp_avg, exp_avg_sq)
        step_t += 1
        step = step_t if o.capturable else value_of(step_t)
        lr = beside(param, lr) if o.capturable else lr
        if o.weight_decay != 0:
            if o.decoupled_weight_decay:
                param.mul_(1 - lr * o.weight_decay)
            else:
                grad = grad.add(param, alpha=o.weight_decay)
        exp_avg.lerp_(grad, 1 - o.beta1)
        exp_avg_sq.mul_(o.beta2).addcmul_(grad, grad, value=1 - o.beta2)
        move = exp_avg / (1 - o.beta1**step) * lr
        length = _length(o.beta2, step)
        if o.capturable or length > 5.0:
            root = exp_avg_sq.sqrt()
            root = root.add(o.eps) if o.differentiable else root.add_(o.eps)
            adaptive = ((1 - o.beta2**step) ** 0.5) / root
            if o.capturable:
                move = move * torch.where(length > 5.0, _rectification(o.beta2, length) * adaptive, 1.0)
            else:
                move = move * adaptive * _rectification(o.beta2, length)
        param.add_(move, alpha=-1.0)


def _multi_tensor_radam(
    o: RAdamOptions, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, state_steps: Tensors
) -> None:
    if not params:
        return
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, state_steps, xla=False)
    lr = to_scalar(o.lr) if o.capturable else value_of(o.lr)
    lists = (params, grads, exp_avgs, exp_avg_sqs, state_steps)
    for some, grads, averages, squares, counts in parts_of(*lists):
        count_up(counts)
        lr = beside(some[0], lr)
        if o.has_complex:
            view_as_real(some, grads, averages, squares)
        grads = decayed(grads, some, 0 if o.decoupled_weight_decay else o.weight_decay, o.maximize)
        if o.decoupled_weight_decay and o.weight_decay != 0:
            torch._foreach_mul_(some, 1 - lr * o.weight_decay)
        torch._foreach_lerp_(averages, grads, 1 - o.beta1)
        torch._foreach_mul_(squares, o.beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - o.beta2)
        # The rate of a step is `adaptive` / root or `plain`; the other one is zero.
        adaptive, plain = [], []
        for step in step_values(counts, o.capturable):
            length = _length(o.beta2, step)
            rate = lr / (1 - o.beta1**step) * -1
            root = (1 - o.beta2**step) ** 0.5 * rate
            if o.capturable:
                few = length <= 5.0
                adaptive.append(torch.where(few, 0.0, root * _rectification(o.beta2, length)))
                plain.append(torch.where(few, rate, 0.0))
            else:
                adaptive.append(root * _rectification(o.beta2, length) if length > 5 else 0.0)
                plain.append(0.0 if length > 5 else rate)
        rates = torch._foreach_sqrt(squares)
        torch._foreach_add_(rates, o.eps)
        torch._foreach_reciprocal_(rates)
        torch._foreach_mul_(rates, adaptive)
        torch._foreach_add_(rates, plain)
        torch._foreach_addcmul_(some, averages, rates)


def radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of RAdam on lists of tensors."""
    options = RAdamOptions(
        decoupled_weight_decay=decoupled_weight_decay,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        maximize=maximize,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
    )
    _step((params, grads, exp_avgs, exp_avg_sqs, state_steps), options)


def _step(lists: Lists, o: RAdamOptions) -> None:
    check_steps(lists[4])
    form = _multi_tensor_radam if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_radam
    form(o, *lists)
