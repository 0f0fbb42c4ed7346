"""Adagrad: steps scaled by the sum of all squared gradients.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_lr, check_not_negative, column, has_complex, picked
from ._lists import (
    Tensors,
    add_quotients,
    beside,
    check_steps,
    count_up,
    decayed,
    default_form,
    no_autograd,
    no_scaling,
    parts_of,
    reals,
    step_values,
    to_scalar,
    value_of,
    view_as_real,
)
from .optimizer import _device_dtype_check_for_fused
from .sparse_adam import add_sparse, entries_of

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Algorithm):
    """Adagrad, as in "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"."""

    _LATER = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            self._need_device_dtype_check_for_fused = True
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._begin(group, param))

    def share_memory(self) -> None:
        """Move the sums to memory that other processes see."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        value: Any = self.defaults["initial_accumulator_value"]
        if param.is_complex():
            value = complex(value, value)
        total = torch.full_like(param, value, memory_format=torch.preserve_format)
        return {"step": self._number(group, param, 0.0), "sum": total}

    def _gather(self, group: dict[str, Any]) -> tuple[Tensors, Tensors, States]:
        params = [param for param in group["params"] if param.grad is not None]
        if params and group["fused"] and getattr(self, "_need_device_dtype_check_for_fused", True):
            _device_dtype_check_for_fused(params[0])
            self._need_device_dtype_check_for_fused = False
        for param in params:
            if not self.state[param]:
                self.state[param].update(self._begin(group, param))
        return params, [param.grad for param in params], [self.state[param] for param in params]

    def _update(self, group: dict[str, Any], params: Tensors, grads: Tensors, states: States) -> None:
        adagrad(
            params,
            grads,
            column(states, "sum"),
            column(states, "step"),
            has_sparse_grad=any(grad.is_sparse for grad in grads),
            has_complex=has_complex(params),
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            **picked(group, "lr weight_decay lr_decay eps foreach maximize differentiable fused"),
        )


def adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adagrad on lists of tensors."""
    check_steps(state_steps)
    if fused is None and foreach is None:
        foreach = default_form(params, differentiable)[1]
    # Sparse gradients go one by one, as the foreach operators take none.
    one_by_one = not foreach or (has_sparse_grad and not differentiable)
    update = _fused_adagrad if fused else _single_tensor_adagrad if one_by_one else _multi_tensor_adagrad
    update(
        params,
        grads,
        state_sums,
        state_steps,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        has_sparse_grad=has_sparse_grad,
        maximize=maximize,
        differentiable=differentiable,
        has_complex=has_complex,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )


def _single_tensor_adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    has_sparse_grad: bool,
    maximize: bool,
    differentiable: bool,
    has_complex: bool,
) -> None:
    no_scaling(grad_scale, found_inf)
    lr = to_scalar(lr)
    for param, grad, total, step in zip(params, grads, state_sums, state_steps):
        step += 1
        rate = lr / (1 + (value_of(step) - 1) * lr_decay)
        grad = -grad if maximize else grad
        if weight_decay != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=weight_decay)
        if grad.is_sparse:
            places, values = entries_of(grad)
            add_sparse(total, places, values.pow(2))
            add_sparse(param, places, values / total[places].sqrt_().add_(eps), -rate)
            continue
        param, grad, total = reals(param, grad, total)
        total.addcmul_(grad, grad, value=1)
        std = total.sqrt() + eps if differentiable else total.sqrt().add_(eps)
        param.addcdiv_(grad, std, value=-rate)


def _multi_tensor_adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    has_sparse_grad: bool,
    maximize: bool,
    differentiable: bool,
    has_complex: bool,
) -> None:
    no_autograd(differentiable)
    no_scaling(grad_scale, found_inf)
    lr = to_scalar(lr)
    lists = (params, grads, state_sums, state_steps)
    for some, grads, totals, counts in parts_of(*lists):
        if has_complex:
            view_as_real(some, grads, totals)
        count_up(counts)
        grads = decayed(grads, some, weight_decay, maximize)
        rates = [-lr / (1 + (step - 1) * lr_decay) for step in step_values(counts, False)]
        torch._foreach_addcmul_(totals, grads, grads, value=1)
        std = torch._foreach_sqrt(totals)
        torch._foreach_add_(std, eps)
        add_quotients(some, grads, std, rates)


def _fused_adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    has_sparse_grad: bool,
    maximize: bool,
    differentiable: bool,
    has_complex: bool,
) -> None:
    if not params:
        return
    if has_sparse_grad or has_complex:
        raise RuntimeError("`fused` does not support sparse grad or complex param")
    if differentiable:
        raise RuntimeError("adagrad with fused=True does not support differentiable=True")
    lists = (params, grads, state_sums, state_steps)
    for some, grads, totals, counts in parts_of(*lists):
        overflow = beside(some[0], found_inf)
        count_up(counts)
        torch._fused_adagrad_(
            some,
            grads,
            totals,
            counts,
            lr=beside(some[0], lr),
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            eps=eps,
            maximize=maximize,
            grad_scale=beside(some[0], grad_scale),
            found_inf=overflow,
        )
        if overflow is not None:
            torch._foreach_sub_(counts, [overflow] * len(counts))
