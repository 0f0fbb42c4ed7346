"""Adam, with its variants AMSGrad and decoupled weight decay.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._backends.common.passes import adam_pass, gathered, plain_lists
from .._tensor import Tensor
from ..nn.parameter import Parameter
from ._algorithm import Algorithm, States, check_betas, check_not_negative, column, is_scaled, scaled_by, zeros_like
from ._lists import (
    Lists,
    Tensors,
    add_quotients,
    beside,
    check_capturable,
    check_steps,
    count_up,
    decayed,
    default_form,
    no_autograd,
    no_scaling,
    parts_of,
    reals,
    scalar_dtype,
    step_values,
    to_scalar,
    value_of,
    view_as_real,
)
from ._options import Options, are_numbers, is_rate
from .optimizer import _device_dtype_check_for_fused

__all__ = ["Adam", "adam"]

_STATE = ("exp_avg", "exp_avg_sq", "step")
_AMSGRAD = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

_RATE = "lr as a Tensor is not supported for capturable=False and foreach=True"


@dataclass(kw_only=True)
class AdamOptions(Options):
    """Options of a step of Adam."""

    PAIRS = {"betas": ("beta1", "beta2")}
    beta1: Any
    beta2: Any
    eps: float
    amsgrad: bool
    decoupled_weight_decay: bool = False

    def numbers(self) -> tuple[Any, ...] | None:
        numbers = (self.beta1, self.beta2, self.weight_decay, self.eps)
        if not (self._asked_nothing() and are_numbers(*numbers)):
            return None
        return *numbers, bool(self.decoupled_weight_decay), bool(self.maximize)


class Adam(Algorithm):
    """Adam, as in "Adam: A Method for Stochastic Optimization"."""

    _OPTIONS = AdamOptions
    _LATER = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _ADVICE = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            if foreach and not capturable:
                raise ValueError(_RATE)
            if lr.numel() != 1:
                raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        _check_tensor_betas(betas, bool(foreach) and not capturable)
        defaults = {
            "lr": lr,
            "betas": tuple(map(to_scalar, betas)),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            self._step_supports_amp_scaling = True
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        if group["fused"]:
            _device_dtype_check_for_fused(param)
        if group["fused"] or group["capturable"]:
            step = self._number(group, param, 0.0)
        else:
            # On the host even where the default device is another.
            step = torch.tensor(0.0, dtype=scalar_dtype(), device="cpu")
        state = {"step": step, "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def _pass(self, lr: Any, numbers: tuple[Any, ...], o: AdamOptions, params: Tensors) -> bool:
        lists = gathered(params, self.state, _AMSGRAD if o.amsgrad else _STATE, Parameter)
        return lists is not None and not is_scaled(self) and adam_pass(lists, lr, *numbers)

    def _update(self, o: AdamOptions, params: Tensors, grads: Tensors, states: States) -> None:
        steps = column(states, "step")
        if o.differentiable and any(step.requires_grad for step in steps):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        if params and o.foreach and isinstance(o.lr, Tensor) and not o.capturable:
            raise RuntimeError(_RATE)
        o.grad_scale, o.found_inf = scaled_by(self)
        largest = column(states, "max_exp_avg_sq") if o.amsgrad else []
        _step((params, grads, column(states, "exp_avg"), column(states, "exp_avg_sq"), largest, steps), o)


def _check_tensor_betas(betas: tuple[Any, Any], refused: bool) -> None:
    if not (all(isinstance(beta, float) for beta in betas) or all(isinstance(beta, Tensor) for beta in betas)):
        raise ValueError("betas must be either both floats or both Tensors")
    for position, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if refused:
                raise ValueError(
                    f"betas[{position}] as a Tensor is not supported for capturable=False and foreach=True"
                )
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{position}] must be 1-element")


def _single_tensor_adam(
    o: AdamOptions,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
) -> None:
    no_scaling(o.grad_scale, o.found_inf)
    if o.capturable:
        check_capturable(params, state_steps)
    lr, beta1, beta2 = to_scalar(o.lr), to_scalar(o.beta1), to_scalar(o.beta2)
    for i, (param, grad, exp_avg, exp_avg_sq, step_t) in enumerate(
        zip(params, grads, exp_avgs, exp_avg_sqs, state_steps)
    ):
        grad = -grad if o.maximize else grad
        step_t += 1
        if o.weight_decay != 0:
            if o.decoupled_weight_decay:
                param.mul_(1 - lr * o.weight_decay)
            elif o.differentiable and _learned(o.weight_decay):
                grad = grad.addcmul_(param.clone(), o.weight_decay)
            else:
                grad = grad.add(param, alpha=o.weight_decay)
        largest = reals(param, max_exp_avg_sqs[i])[1] if o.amsgrad else None
        param, grad, exp_avg, exp_avg_sq = reals(param, grad, exp_avg, exp_avg_sq)
        first = beta1.to(device=param.device, dtype=param.dtype) if isinstance(beta1, Tensor) else beta1
        exp_avg.lerp_(grad, 1 - first)
        if o.differentiable and _learned(beta2):
            exp_avg_sq.lerp_(torch.square(grad), weight=1 - beta2)
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if o.capturable or o.differentiable:
            lr, beta1, beta2 = beside(param, lr), beside(param, beta1), beside(param, beta2)
            step: Any = step_t.clone() if _learned(beta1) or _learned(beta2) else step_t
            size = -(lr / (1 - beta1**step))
            root = (1 - beta2**step).sqrt() * size
            if largest is not None:
                largest.copy_(torch.maximum(largest.clone() if o.differentiable else largest, exp_avg_sq))
            denom = ((exp_avg_sq if largest is None else largest).sqrt() / root).add_(o.eps / size)
            param.addcdiv_(exp_avg.clone() if o.differentiable else exp_avg, denom)
        else:
            step = value_of(step_t)
            if largest is not None:
                torch.maximum(largest, exp_avg_sq, out=largest)
            root = (1 - beta2**step) ** 0.5
            denom = ((exp_avg_sq if largest is None else largest).sqrt() / root).add_(o.eps)
            param.addcdiv_(exp_avg, denom, value=-(lr / (1 - beta1**step)))


def _learned(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _multi_tensor_adam(
    o: AdamOptions,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
) -> None:
    if not params:
        return
    _check_tensor_options(o.lr, o.beta1, o.beta2, o.capturable)
    if o.capturable:
        check_capturable(params, state_steps, xla=False)
    no_scaling(o.grad_scale, o.found_inf)
    no_autograd(o.differentiable)
    lr, beta1, beta2 = to_scalar(o.lr), to_scalar(o.beta1), to_scalar(o.beta2)
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    for some, grads, averages, squares, largest, counts in parts_of(*lists):
        if o.has_complex:
            view_as_real(some, grads, averages, squares, largest)
        count_up(counts)
        grads = decayed(grads, some, 0 if o.decoupled_weight_decay else o.weight_decay, o.maximize)
        if o.decoupled_weight_decay and o.weight_decay != 0:
            torch._foreach_mul_(some, 1 - lr * o.weight_decay)
        lr, beta1, beta2 = beside(some[0], lr), beside(some[0], beta1), beside(some[0], beta2)
        if isinstance(beta1, Tensor):
            torch._foreach_lerp_(averages, grads, [1 - beta1] * len(some))
        else:
            torch._foreach_lerp_(averages, grads, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        if isinstance(beta2, Tensor):
            torch._foreach_addcmul_(squares, torch._foreach_mul(grads, 1 - beta2), grads, 1.0)
        else:
            torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        if o.amsgrad:
            torch._foreach_maximum_(largest, squares)
        roots = torch._foreach_sqrt(largest if o.amsgrad else squares)
        steps = step_values(counts, o.capturable)
        torch._foreach_div_(roots, [(1 - beta2**step) ** 0.5 for step in steps])
        torch._foreach_add_(roots, o.eps)
        add_quotients(some, averages, roots, [lr / (1 - beta1**step) * -1 for step in steps])


def _check_tensor_options(lr: Any, beta1: Any, beta2: Any, capturable: bool) -> None:
    for name, value in (("lr", lr), ("beta1", beta1), ("beta2", beta2)):
        if isinstance(value, Tensor):
            if not capturable:
                error = RuntimeError if name == "lr" else ValueError
                raise error(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if value.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")


def _fused_adam(
    o: AdamOptions,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
) -> None:
    if not params:
        return
    if o.differentiable:
        raise RuntimeError("Adam with fused=True does not support differentiable=True")
    row = torch._fused_adamw_ if o.decoupled_weight_decay else torch._fused_adam_
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    for some, grads, averages, squares, largest, counts in parts_of(*lists):
        scale, overflow = beside(some[0], o.grad_scale), beside(some[0], o.found_inf)
        count_up(counts)
        row(
            some,
            grads,
            averages,
            squares,
            largest,
            counts,
            amsgrad=o.amsgrad,
            lr=beside(some[0], o.lr),
            beta1=value_of(o.beta1),
            beta2=value_of(o.beta2),
            weight_decay=value_of(o.weight_decay),
            eps=o.eps,
            maximize=o.maximize,
            grad_scale=scale,
            found_inf=overflow,
        )
        if overflow is not None:
            torch._foreach_sub_(counts, [overflow] * len(counts))


def adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: Any,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adam on lists of tensors."""
    options = AdamOptions(
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_complex=has_complex,
        decoupled_weight_decay=decoupled_weight_decay,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )
    numbers = options.numbers()
    largest = [max_exp_avg_sqs] if amsgrad else []
    lists = [params, grads, exp_avgs, exp_avg_sqs, *largest, state_steps]
    tried = numbers is not None and is_rate(lr) and plain_lists(lists, Parameter)
    if not (tried and adam_pass(lists, lr, *numbers or ())):
        _step((params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps), options)


def _step(lists: Lists, o: AdamOptions) -> None:
    foreach = o.foreach
    if foreach is None and o.fused is None:
        foreach = default_form(lists[0], o.differentiable)[1] and (o.capturable or not isinstance(o.lr, Tensor))
    check_steps(lists[5])
    form = _fused_adam if o.fused else _multi_tensor_adam if foreach else _single_tensor_adam
    form(o, *lists)
