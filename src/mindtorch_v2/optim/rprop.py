"""Resilient backpropagation: every element has its own step size, and only signs of gradients count.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_lr, column, zeros_like
from ._lists import (
    Lists,
    Tensors,
    check_capturable,
    check_steps,
    count_up,
    no_autograd,
    parts_of,
    reals,
    to_scalar,
    use_foreach,
    view_as_real,
)
from ._options import Options

__all__ = ["Rprop", "rprop"]


@dataclass(kw_only=True)
class RpropOptions(Options):
    """Options of a step of Rprop."""

    PAIRS = {"etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}
    etaminus: float
    etaplus: float
    step_size_min: float
    step_size_max: float


class Rprop(Algorithm):
    """Resilient backpropagation."""

    _OPTIONS = RpropOptions
    _LATER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        lr = group["lr"]
        size = complex(lr, lr) if param.is_complex() else to_scalar(lr)
        return {
            "step": self._number(group, param, 0.0),
            "prev": zeros_like(param),
            "step_size": torch.full_like(param.grad, size),
        }

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        _step((params, grads, column(states, "prev"), column(states, "step_size"), column(states, "step")), o)


def _factor(sign: Tensor, etaminus: float, etaplus: float) -> Tensor:
    """By what a step size changes: the gradient kept its sign, changed it, or one of the two was zero."""
    return torch.where(sign.gt(0), etaplus, torch.where(sign.lt(0), etaminus, torch.ones_like(sign)))


def _single_tensor_rprop(
    o: RpropOptions, params: Tensors, grads: Tensors, prevs: Tensors, step_sizes: Tensors, state_steps: Tensors
) -> None:
    if o.capturable:
        check_capturable(params, state_steps)
    for param, grad, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps):
        grad = -grad if o.maximize else grad
        step += 1
        param, grad, prev, step_size = reals(param, grad, prev, step_size)
        factor = _factor(grad.mul(prev.clone() if o.differentiable else prev), o.etaminus, o.etaplus)
        step_size.mul_(factor).clamp_(o.step_size_min, o.step_size_max)
        grad = torch.where(factor.eq(o.etaminus), 0.0, grad)
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)


def _multi_tensor_rprop(
    o: RpropOptions, params: Tensors, grads: Tensors, prevs: Tensors, step_sizes: Tensors, state_steps: Tensors
) -> None:
    if not params:
        return
    no_autograd(o.differentiable)
    if o.capturable:
        check_capturable(params, state_steps)
    lists = (params, grads, prevs, step_sizes, state_steps)
    for some, grads, olds, sizes, steps in parts_of(*lists):
        count_up(steps)
        if o.has_complex:
            view_as_real(some, grads, olds, sizes)
        products = torch._foreach_mul(grads, olds)
        torch._foreach_copy_(olds, grads)
        if o.maximize:
            torch._foreach_neg_(products)
            torch._foreach_neg_(olds)
        factors = [_factor(product, o.etaminus, o.etaplus) for product in products]
        torch._foreach_mul_(sizes, factors)
        for size in sizes:
            size.clamp_(o.step_size_min, o.step_size_max)
        torch._foreach_copy_(olds, [torch.where(f.eq(o.etaminus), 0.0, old) for f, old in zip(factors, olds)])
        torch._foreach_addcmul_(some, torch._foreach_sign(olds), sizes, value=-1)


def rprop(
    params: Tensors,
    grads: Tensors,
    prevs: Tensors,
    step_sizes: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of resilient backpropagation on lists of tensors."""
    options = RpropOptions(
        foreach=foreach,
        capturable=capturable,
        maximize=maximize,
        differentiable=differentiable,
        has_complex=has_complex,
        step_size_min=step_size_min,
        step_size_max=step_size_max,
        etaminus=etaminus,
        etaplus=etaplus,
    )
    _step((params, grads, prevs, step_sizes, state_steps), options)


def _step(lists: Lists, o: RpropOptions) -> None:
    check_steps(lists[4])
    form = _multi_tensor_rprop if use_foreach(lists[0], o.foreach, o.differentiable) else _single_tensor_rprop
    form(o, *lists)
