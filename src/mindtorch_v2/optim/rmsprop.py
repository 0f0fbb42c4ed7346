"""RMSprop: steps scaled by a running average of squared gradients.

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

__all__ = ["RMSprop", "rmsprop"]


@dataclass(kw_only=True)
class RMSpropOptions(Options):
    """Options of a step of RMSprop."""

    alpha: float
    eps: float
    momentum: float
    centered: bool


class RMSprop(Algorithm):
    """RMSprop, as in Hinton's lectures; centred, as in "Generating Sequences With Recurrent Neural Networks"."""

    _OPTIONS = RMSpropOptions
    _LATER = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        state = {"step": self._number(group, param, 0.0), "square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        lists = (
            params,
            grads,
            column(states, "square_avg"),
            column(states, "grad_avg") if o.centered else [],
            column(states, "momentum_buffer") if o.momentum > 0 else [],
            column(states, "step"),
        )
        _step(lists, o)


def _single_tensor_rmsprop(
    o: RMSpropOptions,
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
) -> None:
    if o.capturable:
        check_capturable(params, state_steps)
    lr = to_scalar(o.lr)
    for i, (param, grad, square_avg, step) in enumerate(zip(params, grads, square_avgs, state_steps)):
        grad = -grad if o.maximize else grad
        step += 1
        if o.weight_decay != 0:
            grad = grad.add(param, alpha=o.weight_decay)
        grad_avg = reals(param, grad_avgs[i])[1] if o.centered else None
        buffer = reals(param, momentum_buffer_list[i])[1] if o.momentum > 0 else None
        param, grad, square_avg = reals(param, grad, square_avg)
        square_avg.mul_(o.alpha).addcmul_(grad, grad, value=1 - o.alpha)
        if grad_avg is not None:
            grad_avg.lerp_(grad, 1 - o.alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = avg.add(o.eps) if o.differentiable else avg.add_(o.eps)
        if buffer is not None:
            buffer.mul_(o.momentum).addcdiv_(grad, avg)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, avg, value=-lr)


def _multi_tensor_rmsprop(
    o: RMSpropOptions,
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
) -> None:
    if not params:
        return
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, state_steps)
    lr = to_scalar(o.lr)
    lists = (params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps)
    for some, grads, squares, averages, buffers, steps in parts_of(*lists):
        if o.has_complex:
            view_as_real(some, grads, squares, buffers, averages)
        count_up(steps)
        grads = decayed(grads, some, o.weight_decay, o.maximize)
        torch._foreach_mul_(squares, o.alpha)
        torch._foreach_addcmul_(squares, grads, grads, value=1 - o.alpha)
        if o.centered:
            torch._foreach_lerp_(averages, grads, 1 - o.alpha)
            avg = torch._foreach_addcmul(squares, averages, averages, value=-1)
            torch._foreach_sqrt_(avg)
        else:
            avg = torch._foreach_sqrt(squares)
        torch._foreach_add_(avg, o.eps)
        on_device = o.capturable and isinstance(lr, Tensor)
        if o.momentum > 0:
            torch._foreach_mul_(buffers, o.momentum)
            torch._foreach_addcdiv_(buffers, grads, avg)
            if on_device:
                torch._foreach_add_(some, torch._foreach_mul(buffers, -lr))
            else:
                torch._foreach_add_(some, buffers, alpha=-lr)
        elif on_device:
            torch._foreach_div_(avg, -lr)
            torch._foreach_addcdiv_(some, grads, avg)
        else:
            torch._foreach_addcdiv_(some, grads, avg, value=-lr)


def rmsprop(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of RMSprop on lists of tensors."""
    options = RMSpropOptions(
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
    )
    _step((params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps), options)


def _step(lists: Lists, o: RMSpropOptions) -> None:
    check_steps(lists[5])
    form = _multi_tensor_rmsprop if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_rmsprop
    form(o, *lists)
