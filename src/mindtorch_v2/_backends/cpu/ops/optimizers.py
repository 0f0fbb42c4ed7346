"""CPU lines of optimiser steps over lists: one native pass where memory allows it, else the row's parts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dispatch import registry
from ...._dispatch.keys import CPU
from ...._ops.optimizers import checked, checked_adam, checked_buffers, overflowed
from ..kernels.optimizers import fused_adagrad, fused_adam, fused_sgd
from ..lines import cpu, makes


def _serve(name: str, step: Callable[..., bool]) -> None:
    op = registry.get(name)
    parts = op.composite
    assert parts is not None

    def run(*args: Any) -> None:
        if not step(*args):
            parts.run(op, args, CPU)

    cpu(name, makes(run))


def _adam(decoupled: bool) -> Callable[..., bool]:
    def step(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any,
             beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
             grad_scale: Any, found_inf: Any) -> bool:
        checked_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad, decoupled)
        return not self or overflowed(found_inf) or fused_adam(
            decoupled, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2,
            weight_decay, eps, amsgrad, maximize, grad_scale)

    return step


def _sgd(self: Any, grads: Any, momentum_buffer_list: Any, weight_decay: float, momentum: float, lr: Any,
         dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any,
         found_inf: Any) -> bool:
    checked("fused_sgd_kernel", self, {"grads": grads, **checked_buffers(momentum, momentum_buffer_list)})
    return not self or overflowed(found_inf) or fused_sgd(
        self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
        grad_scale)


def _adagrad(self: Any, grads: Any, state_sums: Any, state_steps: Any, lr: Any, lr_decay: float, weight_decay: float,
             eps: float, maximize: bool, grad_scale: Any, found_inf: Any) -> bool:
    checked("fused_adagrad_kernel", self, {"grads": grads, "state_sums": state_sums, "state_steps": state_steps})
    return not self or overflowed(found_inf) or fused_adagrad(
        self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale)


for _overload in ("", ".tensor_lr"):
    _serve(f"_fused_adam_{_overload}", _adam(False))
    _serve(f"_fused_adamw_{_overload}", _adam(True))
    _serve(f"_fused_sgd_{_overload}", _sgd)
    _serve(f"_fused_adagrad_{_overload}", _adagrad)
