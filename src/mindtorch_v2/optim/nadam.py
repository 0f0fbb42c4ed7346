"""NAdam: Adam with Nesterov's momentum.

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

__all__ = ["NAdam", "nadam"]


@dataclass(kw_only=True)
class NAdamOptions(Options):
    """Options of a step of NAdam."""

    PAIRS = {"betas": ("beta1", "beta2")}
    beta1: float
    beta2: float
    eps: float
    momentum_decay: float
    decoupled_weight_decay: bool


class NAdam(Algorithm):
    """NAdam, as in "Incorporating Nesterov Momentum into Adam"."""

    _OPTIONS = NAdamOptions
    _LATER = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _NUMBERS = ("step", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {
            "step": self._number(group, param, 0.0),
            "mu_product": self._number(group, param, 1.0),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        lists = (
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "mu_product"),
            column(states, "step"),
        )
        _step(lists, o)


def _momentum(beta1: float, step: Any, decay: float) -> Any:
    return beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))


def _single_tensor_nadam(
    o: NAdamOptions,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
) -> None:
    if o.capturable:
        check_capturable(params, mu_products, state_steps, what="params, mu_products and state_steps")
    lr = to_scalar(o.lr)
    for each in zip(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps):
        param, grad, exp_avg, exp_avg_sq, mu_product, step_t = each
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
        mu, mu_next = _momentum(o.beta1, step, o.momentum_decay), _momentum(o.beta1, step + 1, o.momentum_decay)
        mu_product *= mu
        exp_avg.lerp_(grad, 1 - o.beta1)
        exp_avg_sq.mul_(o.beta2).addcmul_(grad, grad, value=1 - o.beta2)
        denom = exp_avg_sq.div(1 - o.beta2**step).sqrt()
        if o.differentiable or o.capturable:
            denom = denom.add(o.eps)
            param.addcdiv_(grad * (-lr * (1.0 - mu) / (1.0 - mu_product)), denom)
            param.addcdiv_(exp_avg * (-lr * mu_next / (1.0 - mu_product * mu_next)), denom)
        else:
            product = value_of(mu_product)
            denom.add_(o.eps)
            param.addcdiv_(grad, denom, value=(-lr * (1.0 - mu) / (1.0 - product)))
            param.addcdiv_(exp_avg, denom, value=(-lr * mu_next) / (1.0 - product * mu_next))


def _multi_tensor_nadam(
    o: NAdamOptions,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
) -> None:
    if not params:
        return
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, mu_products, state_steps, xla=False, what="params, mu_products, and state_steps")
    lr = to_scalar(o.lr) if o.capturable else value_of(o.lr)
    lists = (params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps)
    for some, grads, averages, squares, products, counts in parts_of(*lists):
        lr = beside(some[0], lr)
        if o.has_complex:
            view_as_real(some, grads, averages, squares)
        count_up(counts)
        grads = decayed(grads, some, 0 if o.decoupled_weight_decay else o.weight_decay, o.maximize)
        if o.decoupled_weight_decay and o.weight_decay != 0:
            torch._foreach_mul_(some, 1 - lr * o.weight_decay)
        torch._foreach_lerp_(averages, grads, 1 - o.beta1)
        torch._foreach_mul_(squares, o.beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - o.beta2)
        steps = step_values(counts, o.capturable)
        mus = [_momentum(o.beta1, step, o.momentum_decay) for step in steps]
        nexts = [_momentum(o.beta1, step + 1, o.momentum_decay) for step in steps]
        torch._foreach_mul_(products, mus)
        done = step_values(products, o.capturable)
        denoms = torch._foreach_sqrt(squares)
        torch._foreach_div_(denoms, [(1 - o.beta2**step) ** 0.5 for step in steps])
        torch._foreach_add_(denoms, o.eps)
        by_grad = [lr * (1.0 - mu) / (1.0 - product) * -1 for mu, product in zip(mus, done)]
        by_average = [lr * mu / (1.0 - product * mu) * -1 for mu, product in zip(nexts, done)]
        if o.capturable:
            moves = torch._foreach_mul(grads, by_grad)
            torch._foreach_add_(moves, torch._foreach_mul(averages, by_average))
            torch._foreach_addcdiv_(some, moves, denoms)
        else:
            torch._foreach_addcdiv_(some, grads, denoms, by_grad)
            torch._foreach_addcdiv_(some, averages, denoms, by_average)


def nadam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of NAdam on lists of tensors."""
    options = NAdamOptions(
        decoupled_weight_decay=decoupled_weight_decay,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        has_complex=has_complex,
        maximize=maximize,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
    )
    _step((params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps), options)


def _step(lists: Lists, o: NAdamOptions) -> None:
    check_steps(lists[5])
    check_steps(lists[4], "mu_products")
    form = _multi_tensor_nadam if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_nadam
    form(o, *lists)
