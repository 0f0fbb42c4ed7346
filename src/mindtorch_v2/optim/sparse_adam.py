"""SparseAdam: Adam that only touches the elements for which a sparse gradient has entries.

Invariant: a step changes parameters in place and records nothing for autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ._algorithm import check_betas, zeros_like
from ._lists import to_scalar, value_of
from .optimizer import Optimizer, _use_grad_for_differentiable, evaluated

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for dense parameters with sparse gradients, lazily: moments without entries stay as they are."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [(i, j, p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        sparse = [[i, j] for i, j, param in places if param.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complexes = [[i, j] for i, j, param in places if param.is_complex()]
        if complexes:
            raise ValueError(f"Complex params at indices {complexes}: SparseAdam does not support complex parameters")

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update; `closure` computes the loss anew and its value is returned."""
        loss = evaluated(closure)
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            states = []
            for param in params:
                if not param.grad.is_sparse:
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                state = self.state[param]
                if not state:
                    state.update({"step": 0, "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)})
                state["step"] += 1
                states.append(state)
            beta1, beta2 = group["betas"]
            sparse_adam(
                params,
                [param.grad for param in params],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["step"] for state in states],
                eps=group["eps"],
                beta1=beta1,
                beta2=beta2,
                lr=to_scalar(group["lr"]),
                maximize=group.get("maximize", False),
            )
        return loss


def entries_of(grad: Any) -> tuple[tuple[Tensor, ...], Tensor]:
    """Where a sparse gradient has entries, each place once, and the entries."""
    grad = grad.coalesce()
    return tuple(grad._indices().unbind(0)), grad._values()


def add_sparse(target: Tensor, places: tuple[Tensor, ...], values: Tensor, alpha: Any = 1) -> None:
    """target[places] += alpha * values, for places that differ."""
    target[places] = target[places].add_(values, alpha=alpha)


def sparse_adam(
    params: list[Tensor],
    grads: list[Any],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    maximize: bool,
) -> None:
    """One step of SparseAdam on lists of tensors."""
    for param, grad, exp_avg, exp_avg_sq, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        places, values = entries_of(-grad if maximize else grad)
        if values.numel() == 0:
            continue
        first = exp_avg[places].lerp_(values, 1 - beta1)
        second = exp_avg_sq[places].lerp_(values.pow(2), 1 - beta2)
        exp_avg[places] = first
        exp_avg_sq[places] = second
        size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        add_sparse(param, places, first.div_(second.sqrt_().add_(eps)), -value_of(size))
