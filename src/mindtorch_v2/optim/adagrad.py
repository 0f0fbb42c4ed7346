"""Adagrad: steps scaled by the sum of all squared gradients.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._backends.common.passes import adagrad_pass, gathered, plain_lists
from .._tensor import Tensor
from ..nn.parameter import Parameter
from ._algorithm import Algorithm, States, check_lr, check_not_negative, column, is_scaled, scaled_by
from ._lists import (
    Lists,
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
from ._options import Options, are_numbers, is_rate
from .optimizer import _device_dtype_check_for_fused
from .sparse_adam import add_sparse, entries_of

__all__ = ["Adagrad", "adagrad"]

_STATE = ("sum", "step")


@dataclass(kw_only=True)
class AdagradOptions(Options):
    """Options of a step of Adagrad."""

    lr_decay: float
    eps: float

    def numbers(self) -> tuple[Any, ...] | None:
        numbers = (self.lr_decay, self.weight_decay, self.eps)
        if not (self._asked_nothing() and are_numbers(*numbers)):
            return None
        return *numbers, bool(self.maximize)


class Adagrad(Algorithm):
    """Adagrad, as in "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"."""

    _OPTIONS = AdagradOptions
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

    def _pass(self, lr: Any, numbers: tuple[Any, ...], o: AdagradOptions, params: Tensors) -> bool:
        lists = gathered(params, self.state, _STATE, Parameter)
        return lists is not None and not is_scaled(self) and adagrad_pass(lists, lr, *numbers)

    def _update(self, o: AdagradOptions, params: Tensors, grads: Tensors, states: States) -> None:
        o.has_sparse_grad = any(grad.is_sparse for grad in grads)
        o.grad_scale, o.found_inf = scaled_by(self)
        _step((params, grads, column(states, "sum"), column(states, "step")), o)


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
    options = AdagradOptions(
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_sparse_grad=has_sparse_grad,
        foreach=foreach,
        differentiable=differentiable,
        has_complex=has_complex,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
    )
    numbers = options.numbers()
    lists = [params, grads, state_sums, state_steps]
    tried = numbers is not None and is_rate(lr) and plain_lists(lists, Parameter)
    if not (tried and adagrad_pass(lists, lr, *numbers or ())):
        _step((params, grads, state_sums, state_steps), options)


def _step(lists: Lists, o: AdagradOptions) -> None:
    check_steps(lists[3])
    foreach = o.foreach
    if foreach is None and o.fused is None:
        foreach = default_form(lists[0], o.differentiable)[1]
    # Sparse gradients go one by one, as the foreach operators take none.
    one_by_one = not foreach or (o.has_sparse_grad and not o.differentiable)
    form = _fused_adagrad if o.fused else _single_tensor_adagrad if one_by_one else _multi_tensor_adagrad
    form(o, *lists)


def _single_tensor_adagrad(
    o: AdagradOptions, params: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors
) -> None:
    no_scaling(o.grad_scale, o.found_inf)
    lr = to_scalar(o.lr)
    for param, grad, total, step in zip(params, grads, state_sums, state_steps):
        step += 1
        rate = lr / (1 + (value_of(step) - 1) * o.lr_decay)
        grad = -grad if o.maximize else grad
        if o.weight_decay != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=o.weight_decay)
        if grad.is_sparse:
            places, values = entries_of(grad)
            add_sparse(total, places, values.pow(2))
            add_sparse(param, places, values / total[places].sqrt_().add_(o.eps), -rate)
            continue
        param, grad, total = reals(param, grad, total)
        total.addcmul_(grad, grad, value=1)
        std = total.sqrt() + o.eps if o.differentiable else total.sqrt().add_(o.eps)
        param.addcdiv_(grad, std, value=-rate)


def _multi_tensor_adagrad(
    o: AdagradOptions, params: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors
) -> None:
    no_autograd(o.differentiable)
    no_scaling(o.grad_scale, o.found_inf)
    lr = to_scalar(o.lr)
    lists = (params, grads, state_sums, state_steps)
    for some, grads, totals, counts in parts_of(*lists):
        if o.has_complex:
            view_as_real(some, grads, totals)
        count_up(counts)
        grads = decayed(grads, some, o.weight_decay, o.maximize)
        rates = [-lr / (1 + (step - 1) * o.lr_decay) for step in step_values(counts, False)]
        torch._foreach_addcmul_(totals, grads, grads, value=1)
        std = torch._foreach_sqrt(totals)
        torch._foreach_add_(std, o.eps)
        add_quotients(some, grads, std, rates)


def _fused_adagrad(
    o: AdagradOptions, params: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors
) -> None:
    if not params:
        return
    if o.has_sparse_grad or o.has_complex:
        raise RuntimeError("`fused` does not support sparse grad or complex param")
    if o.differentiable:
        raise RuntimeError("adagrad with fused=True does not support differentiable=True")
    lists = (params, grads, state_sums, state_steps)
    for some, grads, totals, counts in parts_of(*lists):
        overflow = beside(some[0], o.found_inf)
        count_up(counts)
        torch._fused_adagrad_(
            some,
            grads,
            totals,
            counts,
            lr=beside(some[0], o.lr),
            lr_decay=o.lr_decay,
            weight_decay=o.weight_decay,
            eps=o.eps,
            maximize=o.maximize,
            grad_scale=beside(some[0], o.grad_scale),
            found_inf=overflow,
        )
        if overflow is not None:
            torch._foreach_sub_(counts, [overflow] * len(counts))
