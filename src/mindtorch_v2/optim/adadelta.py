"""Adadelta: steps scaled by running averages of squared gradients and of squared steps.

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
    check_capturable,
    check_steps,
    count_up,
    decayed,
    no_autograd,
    parts_of,
    reals,
    to_scalar,
    use_foreach,
    view_as_real,
)
from ._options import Options

__all__ = ["Adadelta", "adadelta"]


@dataclass(kw_only=True)
class AdadeltaOptions(Options):
    """Options of a step of Adadelta."""

    rho: float
    eps: float


class Adadelta(Algorithm):
    """Adadelta, as in "ADADELTA: An Adaptive Learning Rate Method"."""

    _OPTIONS = AdadeltaOptions
    _LATER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {
            "step": self._number(group, param, 0.0),
            "square_avg": zeros_like(param),
            "acc_delta": zeros_like(param),
        }

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        _step((params, grads, column(states, "square_avg"), column(states, "acc_delta"), column(states, "step")), o)


def _single_tensor_adadelta(
    o: AdadeltaOptions, params: Tensors, grads: Tensors, square_avgs: Tensors, acc_deltas: Tensors, state_steps: Tensors
) -> None:
    if o.capturable:
        check_capturable(params, state_steps, xla=False)
    lr = to_scalar(o.lr)
    for each in zip(params, grads, square_avgs, acc_deltas, state_steps):
        param, grad, square_avg, acc_delta, step = each
        step += 1
        grad = -grad if o.maximize else grad
        if o.weight_decay != 0:
            grad = grad.add(param, alpha=o.weight_decay)
        param, grad, square_avg, acc_delta = reals(param, grad, square_avg, acc_delta)
        square_avg.mul_(o.rho).addcmul_(grad, grad, value=1 - o.rho)
        std = square_avg.add(o.eps).sqrt_()
        delta = acc_delta.add(o.eps).sqrt_()
        if o.differentiable:
            delta = delta.clone()
        delta.div_(std).mul_(grad)
        acc_delta.mul_(o.rho).addcmul_(delta, delta, value=1 - o.rho)
        param.add_(delta, alpha=-lr)


def _multi_tensor_adadelta(
    o: AdadeltaOptions, params: Tensors, grads: Tensors, square_avgs: Tensors, acc_deltas: Tensors, state_steps: Tensors
) -> None:
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, state_steps, xla=False)
    lr = to_scalar(o.lr)
    lists = (params, grads, square_avgs, acc_deltas, state_steps)
    for some, grads, squares, deltas, steps in parts_of(*lists):
        if o.has_complex:
            view_as_real(some, grads, squares, deltas)
        count_up(steps)
        grads = decayed(grads, some, o.weight_decay, o.maximize)
        torch._foreach_mul_(squares, o.rho)
        torch._foreach_addcmul_(squares, grads, grads, value=1 - o.rho)
        std = torch._foreach_add(squares, o.eps)
        torch._foreach_sqrt_(std)
        moves = torch._foreach_add(deltas, o.eps)
        torch._foreach_sqrt_(moves)
        torch._foreach_div_(moves, std)
        torch._foreach_mul_(moves, grads)
        torch._foreach_mul_(deltas, o.rho)
        torch._foreach_addcmul_(deltas, moves, moves, value=1 - o.rho)
        if o.capturable and isinstance(lr, Tensor):
            torch._foreach_mul_(moves, -lr)
            torch._foreach_add_(some, moves)
        else:
            torch._foreach_add_(some, moves, alpha=-lr)


def adadelta(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    state_steps: Tensors,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of Adadelta on lists of tensors."""
    options = AdadeltaOptions(
        capturable=capturable,
        foreach=foreach,
        differentiable=differentiable,
        has_complex=has_complex,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )
    _step((params, grads, square_avgs, acc_deltas, state_steps), options)


def _step(lists: Lists, o: AdadeltaOptions) -> None:
    check_steps(lists[4])
    form = _multi_tensor_adadelta if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_adadelta
    form(o, *lists)
