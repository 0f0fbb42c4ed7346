"""Muon: momentum whose updates of matrices are made orthogonal.

Invariant: a step changes parameters in place and records nothing for autograd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_lr, column
from ._lists import Tensors, to_scalar
from ._options import Options

__all__ = ["Muon"]

EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5
_ADJUSTMENTS = ("original", "match_rms_adamw")


@dataclass(kw_only=True)
class MuonOptions(Options):
    """Options of a step of Muon."""

    momentum: float
    nesterov: bool
    ns_coefficients: tuple[float, float, float]
    ns_steps: int
    eps: float
    adjust_lr_fn: str | None


class Muon(Algorithm):
    """Muon, as in "Muon: An optimizer for hidden layers in neural networks"."""

    _OPTIONS = MuonOptions
    _NUMBERS = ()

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: ")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def _gather(self, group: dict[str, Any]) -> tuple[Tensors, Tensors, States]:
        if any(param.grad is not None and param.is_complex() for param in group["params"]):
            raise RuntimeError("Muon does not support complex parameters")
        return super()._gather(group)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"momentum_buffer": torch.zeros_like(param.grad, memory_format=torch.preserve_format)}

    def _update(self, o: MuonOptions, params: Tensors, grads: Tensors, states: States) -> None:
        _step(params, grads, column(states, "momentum_buffer"), o)


def _zeropower_via_newtonschulz(grad: Tensor, ns_coefficients: Any, ns_steps: int, eps: float) -> Tensor:
    """An orthogonal matrix near `grad`, by a few steps of a Newton-Schulz iteration in bfloat16."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(grad.shape) != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16()
    x = x.T if tall else x
    x.div_(x.norm().clamp(min=eps))
    for _ in range(ns_steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: Any, adjust_lr_fn: str | None, param_shape: Any) -> Any:
    rows, columns = param_shape[:2]
    if adjust_lr_fn is None or adjust_lr_fn == "original":
        return lr * math.sqrt(max(1, rows / columns))
    if adjust_lr_fn == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr


def muon(
    params: Tensors,
    grads: Tensors,
    muon_momentum_bufs: Tensors,
    *,
    foreach: bool | None = None,
    lr: Any,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of Muon on lists of matrices."""
    options = MuonOptions(
        foreach=foreach,
        lr=lr,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        ns_coefficients=ns_coefficients,
        ns_steps=ns_steps,
        eps=eps,
        adjust_lr_fn=adjust_lr_fn,
        has_complex=has_complex,
    )
    _step(params, grads, muon_momentum_bufs, options)


def _step(params: Tensors, grads: Tensors, buffers: Tensors, o: MuonOptions) -> None:
    if o.foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if o.has_complex:
        raise ValueError("Complex parameters are not supported")
    lr = to_scalar(o.lr)
    for param, grad, buffer in zip(params, grads, buffers):
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        buffer.lerp_(grad, 1 - o.momentum)
        update = grad.lerp(buffer, o.momentum) if o.nesterov else buffer
        update = _zeropower_via_newtonschulz(update, o.ns_coefficients, o.ns_steps, o.eps)
        param.mul_(1 - lr * o.weight_decay)
        param.add_(update, alpha=-_adjust_lr(lr, o.adjust_lr_fn, param.shape))
