"""Stochastic gradient descent, with momentum.

Invariant: a step changes parameters in place and records nothing for autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from .optimizer import Optimizer


class SGD(Optimizer):
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        for name, asked in (("foreach", foreach), ("differentiable", differentiable), ("fused", fused)):
            if asked:
                raise NotImplementedError(f"SGD: {name}=True is not implemented; leave {name} out")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update; `closure` computes the loss anew and its value is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                if group["momentum"] == 0 and group["weight_decay"] == 0:
                    rate = _number(group["lr"])
                    if not group["maximize"]:
                        rate = -rate
                    for param in group["params"]:
                        grad = param.grad
                        if grad is not None:
                            param.add_(grad, alpha=rate)
                else:
                    self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        rate = -_number(group["lr"])
        decay = _number(group["weight_decay"])
        momentum, dampening = group["momentum"], group["dampening"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if group["maximize"]:
                grad = -grad
            if decay != 0:
                grad = grad.add(param, alpha=decay)
            if momentum != 0:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = grad.detach().clone()
                else:
                    buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
                grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            param.add_(grad, alpha=rate)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value
