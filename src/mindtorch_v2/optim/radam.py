"""RAdam: Adam whose adaptive rate is rectified while there are few squared gradients to average.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import (
    Algorithm,
    States,
    check_betas,
    check_lr,
    check_not_negative,
    column,
    has_complex,
    picked,
    zeros_like,
)
from ._lists import (
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

__all__ = ["RAdam", "radam"]


class RAdam(Algorithm):
    """RAdam, as in "On the variance of the adaptive learning rate and beyond"."""

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

    def _update(self, group: dict[str, Any], params: Tensors, grads: Tensors, states: States) -> None:
        beta1, beta2 = group["betas"]
        radam(
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "step"),
            beta1=beta1,
            beta2=beta2,
            has_complex=has_complex(params),
            **picked(group, "lr weight_decay eps maximize foreach capturable differentiable decoupled_weight_decay"),
        )


def _length(beta2: float, step: Any) -> Any:
    """How many squared gradients the average amounts to."""
    return 2 / (1 - beta2) - 1 - 2 * step * (beta2**step) / (1 - beta2**step)


def _rectification(beta2: float, length: Any) -> Any:
    most = 2 / (1 - beta2) - 1
    return ((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) ** 0.5


def _single_tensor_radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
    decoupled_weight_decay: bool,
    differentiable: bool,
    maximize: bool,
    capturable: bool,
    has_complex: bool,
) -> None:
    if capturable:
        check_capturable(params, state_steps)
    lr = to_scalar(lr)
    for param, grad, exp_avg, exp_avg_sq, step_t in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        grad = -grad if maximize else grad
        param, grad, exp_avg, exp_avg_sq = reals(param, grad, exp_avg, exp_avg_sq)
        step_t += 1
        step = step_t if capturable else value_of(step_t)
        lr = beside(param, lr) if capturable else lr
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        move = exp_avg / (1 - beta1**step) * lr
        length = _length(beta2, step)
        if capturable or length > 5.0:
            root = exp_avg_sq.sqrt()
            root = root.add(eps) if differentiable else root.add_(eps)
            adaptive = ((1 - beta2**step) ** 0.5) / root
            if capturable:
                move = move * torch.where(length > 5.0, _rectification(beta2, length) * adaptive, 1.0)
            else:
                move = move * adaptive * _rectification(beta2, length)
        param.add_(move, alpha=-1.0)


def _multi_tensor_radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
    decoupled_weight_decay: bool,
    differentiable: bool,
    maximize: bool,
    capturable: bool,
    has_complex: bool,
) -> None:
    if not params:
        return
    no_autograd(differentiable)
    if capturable:
        check_capturable(params, state_steps, xla=False)
    lr = to_scalar(lr) if capturable else value_of(lr)
    lists = (params, grads, exp_avgs, exp_avg_sqs, state_steps)
    for some, grads, averages, squares, counts in parts_of(*lists):
        count_up(counts)
        lr = beside(some[0], lr)
        if has_complex:
            view_as_real(some, grads, averages, squares)
        grads = decayed(grads, some, 0 if decoupled_weight_decay else weight_decay, maximize)
        if decoupled_weight_decay and weight_decay != 0:
            torch._foreach_mul_(some, 1 - lr * weight_decay)
        torch._foreach_lerp_(averages, grads, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        # The rate of a step is `adaptive` / root or `plain`; the other one is zero.
        adaptive, plain = [], []
        for step in step_values(counts, capturable):
            length = _length(beta2, step)
            rate = lr / (1 - beta1**step) * -1
            root = (1 - beta2**step) ** 0.5 * rate
            if capturable:
                few = length <= 5.0
                adaptive.append(torch.where(few, 0.0, root * _rectification(beta2, length)))
                plain.append(torch.where(few, rate, 0.0))
            else:
                adaptive.append(root * _rectification(beta2, length) if length > 5 else 0.0)
                plain.append(0.0 if length > 5 else rate)
        rates = torch._foreach_sqrt(squares)
        torch._foreach_add_(rates, eps)
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
    check_steps(state_steps)
    update = _multi_tensor_radam if use_foreach(params, foreach, differentiable) else _single_tensor_radam
    update(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        state_steps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
    )
