"""Adam, with its variants AMSGrad and decoupled weight decay.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_betas, check_not_negative, column, has_complex, picked, zeros_like
from ._lists import (
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
    one_pass,
    parts_of,
    reals,
    scalar_dtype,
    step_values,
    to_scalar,
    value_of,
    view_as_real,
)
from .optimizer import _device_dtype_check_for_fused

__all__ = ["Adam", "adam"]

_RATE = "lr as a Tensor is not supported for capturable=False and foreach=True"


class Adam(Algorithm):
    """Adam, as in "Adam: A Method for Stochastic Optimization"."""

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

    def _update(self, group: dict[str, Any], params: Tensors, grads: Tensors, states: States) -> None:
        beta1, beta2 = group["betas"]
        steps = column(states, "step")
        if group["differentiable"] and any(step.requires_grad for step in steps):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        if params and group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError(_RATE)
        adam(
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "max_exp_avg_sq") if group["amsgrad"] else [],
            steps,
            has_complex=has_complex(params),
            beta1=beta1,
            beta2=beta2,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            **picked(group, "amsgrad lr weight_decay eps maximize foreach capturable differentiable fused"),
            decoupled_weight_decay=group["decoupled_weight_decay"],
        )


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
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    amsgrad: bool,
    has_complex: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: Any,
    eps: float,
    maximize: bool,
    capturable: bool,
    differentiable: bool,
    decoupled_weight_decay: bool,
) -> None:
    no_scaling(grad_scale, found_inf)
    if capturable:
        check_capturable(params, state_steps)
    lr, beta1, beta2 = to_scalar(lr), to_scalar(beta1), to_scalar(beta2)
    for i, (param, grad, exp_avg, exp_avg_sq, step_t) in enumerate(
        zip(params, grads, exp_avgs, exp_avg_sqs, state_steps)
    ):
        grad = -grad if maximize else grad
        step_t += 1
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            elif differentiable and _learned(weight_decay):
                grad = grad.addcmul_(param.clone(), weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        largest = reals(param, max_exp_avg_sqs[i])[1] if amsgrad else None
        param, grad, exp_avg, exp_avg_sq = reals(param, grad, exp_avg, exp_avg_sq)
        first = beta1.to(device=param.device, dtype=param.dtype) if isinstance(beta1, Tensor) else beta1
        exp_avg.lerp_(grad, 1 - first)
        if differentiable and _learned(beta2):
            exp_avg_sq.lerp_(torch.square(grad), weight=1 - beta2)
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if capturable or differentiable:
            lr, beta1, beta2 = beside(param, lr), beside(param, beta1), beside(param, beta2)
            step: Any = step_t.clone() if _learned(beta1) or _learned(beta2) else step_t
            size = -(lr / (1 - beta1**step))
            root = (1 - beta2**step).sqrt() * size
            if largest is not None:
                largest.copy_(torch.maximum(largest.clone() if differentiable else largest, exp_avg_sq))
            denom = ((exp_avg_sq if largest is None else largest).sqrt() / root).add_(eps / size)
            param.addcdiv_(exp_avg.clone() if differentiable else exp_avg, denom)
        else:
            step = value_of(step_t)
            if largest is not None:
                torch.maximum(largest, exp_avg_sq, out=largest)
            root = (1 - beta2**step) ** 0.5
            denom = ((exp_avg_sq if largest is None else largest).sqrt() / root).add_(eps)
            param.addcdiv_(exp_avg, denom, value=-(lr / (1 - beta1**step)))


def _learned(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _multi_tensor_adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    amsgrad: bool,
    has_complex: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: Any,
    eps: float,
    maximize: bool,
    capturable: bool,
    differentiable: bool,
    decoupled_weight_decay: bool,
) -> None:
    if not params:
        return
    _check_tensor_options(lr, beta1, beta2, capturable)
    if capturable:
        check_capturable(params, state_steps, xla=False)
    no_scaling(grad_scale, found_inf)
    no_autograd(differentiable)
    lr, beta1, beta2 = to_scalar(lr), to_scalar(beta1), to_scalar(beta2)
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    for some, grads, averages, squares, largest, counts in parts_of(*lists):
        if has_complex:
            view_as_real(some, grads, averages, squares, largest)
        count_up(counts)
        grads = decayed(grads, some, 0 if decoupled_weight_decay else weight_decay, maximize)
        if decoupled_weight_decay and weight_decay != 0:
            torch._foreach_mul_(some, 1 - lr * weight_decay)
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
        if amsgrad:
            torch._foreach_maximum_(largest, squares)
        roots = torch._foreach_sqrt(largest if amsgrad else squares)
        steps = step_values(counts, capturable)
        torch._foreach_div_(roots, [(1 - beta2**step) ** 0.5 for step in steps])
        torch._foreach_add_(roots, eps)
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
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    amsgrad: bool,
    has_complex: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: Any,
    eps: float,
    maximize: bool,
    capturable: bool,
    differentiable: bool,
    decoupled_weight_decay: bool,
) -> None:
    if not params:
        return
    if differentiable:
        raise RuntimeError("Adam with fused=True does not support differentiable=True")
    row = torch._fused_adamw_ if decoupled_weight_decay else torch._fused_adam_
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    for some, grads, averages, squares, largest, counts in parts_of(*lists):
        scale, overflow = beside(some[0], grad_scale), beside(some[0], found_inf)
        count_up(counts)
        row(
            some,
            grads,
            averages,
            squares,
            largest,
            counts,
            amsgrad=amsgrad,
            lr=beside(some[0], lr),
            beta1=value_of(beta1),
            beta2=value_of(beta2),
            weight_decay=value_of(weight_decay),
            eps=eps,
            maximize=maximize,
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
    if fused is None and foreach is None:
        plain = not (differentiable or capturable or isinstance(beta1, Tensor) or isinstance(weight_decay, Tensor))
        fused = plain and grad_scale is None and found_inf is None and one_pass(params)
        foreach = not fused and default_form(params, differentiable)[1] and (capturable or not isinstance(lr, Tensor))
    check_steps(state_steps)
    update = _fused_adam if fused else _multi_tensor_adam if foreach else _single_tensor_adam
    update(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        amsgrad=amsgrad,
        has_complex=has_complex,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        grad_scale=grad_scale,
        found_inf=found_inf,
        decoupled_weight_decay=decoupled_weight_decay,
    )
