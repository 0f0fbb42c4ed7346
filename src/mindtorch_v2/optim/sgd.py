"""Stochastic gradient descent, with momentum.

Invariant: a step changes parameters in place, and records nothing for autograd unless `differentiable` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._backends.common.passes import gathered, plain_lists, sgd_pass
from .._tensor import Tensor
from ..nn.parameter import Parameter
from ._algorithm import Algorithm, States, is_scaled, scaled_by
from ._lists import Tensors, beside, decayed, default_form, group_by_device_and_dtype, no_scaling, parts_of, to_scalar
from ._options import Options, are_numbers, is_rate
from .optimizer import _device_dtype_check_for_fused

__all__ = ["SGD", "sgd"]

_BUFFER = ("momentum_buffer",)


@dataclass(kw_only=True)
class SGDOptions(Options):
    """Options of a step of SGD."""

    momentum: float
    dampening: float
    nesterov: bool

    def numbers(self) -> tuple[Any, ...] | None:
        numbers = (self.weight_decay, self.momentum, self.dampening)
        if not (self._asked_nothing() and are_numbers(*numbers)):
            return None
        return *numbers, bool(self.nesterov), bool(self.maximize)


class SGD(Algorithm):
    """Stochastic gradient descent, with momentum and Nesterov's momentum."""

    _OPTIONS = SGDOptions
    _LATER = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}
    _NUMBERS = ()

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
        if fused:
            self._step_supports_amp_scaling = True
            self._need_device_dtype_check_for_fused = True
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def _gather(self, group: dict[str, Any]) -> tuple[Tensors, Tensors, States]:
        """Without momentum a parameter has no state, not even an empty one."""
        params = [param for param in group["params"] if param.grad is not None]
        if params and group["fused"] and getattr(self, "_need_device_dtype_check_for_fused", True):
            _device_dtype_check_for_fused(params[0])
            self._need_device_dtype_check_for_fused = False
        states = [self.state[param] for param in params] if group["momentum"] != 0 else []
        return params, [param.grad for param in params], states

    def _pass(self, lr: Any, numbers: tuple[Any, ...], o: SGDOptions, params: Tensors) -> bool:
        lists = gathered(params, self.state, _BUFFER if o.momentum != 0 else (), Parameter)
        return lists is not None and not is_scaled(self) and sgd_pass(lists, lr, *numbers)

    def _update(self, o: SGDOptions, params: Tensors, grads: Tensors, states: States) -> None:
        buffers = [state.get("momentum_buffer") for state in states]
        o.has_sparse_grad = any(grad.is_sparse for grad in grads)
        o.grad_scale, o.found_inf = scaled_by(self)
        _step(params, grads, buffers, o)
        for state, buffer in zip(states, buffers):
            state["momentum_buffer"] = buffer


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: list[Any],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of gradient descent on lists of tensors; buffers that are None are made."""
    options = SGDOptions(
        has_sparse_grad=has_sparse_grad,
        foreach=foreach,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
    )
    numbers = options.numbers()
    lists = [params, d_p_list, momentum_buffer_list] if momentum != 0 else [params, d_p_list]
    tried = numbers is not None and is_rate(lr) and plain_lists(lists, Parameter)
    if not (tried and sgd_pass(lists, lr, *numbers or ())):
        _step(params, d_p_list, momentum_buffer_list, options)


def _step(params: Tensors, grads: Tensors, buffers: list[Any], o: SGDOptions) -> None:
    foreach = o.foreach
    if foreach is None and o.fused is None:
        foreach = default_form(params, False)[1]
    form = _multi_tensor_sgd if foreach else _fused_sgd if o.fused else _single_tensor_sgd
    form(o, params, grads, buffers)


def _single_tensor_sgd(o: SGDOptions, params: Tensors, grads: Tensors, momentum_buffer_list: list[Any]) -> None:
    no_scaling(o.grad_scale, o.found_inf)
    lr = to_scalar(o.lr)
    for i, (param, grad) in enumerate(zip(params, grads)):
        grad = -grad if o.maximize else grad
        if o.weight_decay != 0:
            if isinstance(o.weight_decay, Tensor) and o.weight_decay.requires_grad:
                # An alpha has no derivative.
                grad = grad.addcmul_(param.clone(), o.weight_decay)
            else:
                grad = grad.add(param, alpha=o.weight_decay)
        if o.momentum != 0:
            buffer = momentum_buffer_list[i]
            if buffer is None:
                buffer = momentum_buffer_list[i] = grad.detach().clone()
            else:
                buffer.mul_(o.momentum).add_(grad, alpha=1 - o.dampening)
            grad = grad.add(buffer, alpha=o.momentum) if o.nesterov else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _multi_tensor_sgd(o: SGDOptions, params: Tensors, grads: Tensors, momentum_buffer_list: list[Any]) -> None:
    no_scaling(o.grad_scale, o.found_inf)
    lr = to_scalar(o.lr)
    lists = [params, grads, momentum_buffer_list]
    for (some, grads, buffers), places in group_by_device_and_dtype(lists, with_indices=True).values():
        grads = decayed(grads, some, o.weight_decay, o.maximize)
        if o.momentum != 0:
            old = [i for i, buffer in enumerate(buffers) if buffer is not None]
            if old:
                torch._foreach_mul_([buffers[i] for i in old], o.momentum)
                torch._foreach_add_([buffers[i] for i in old], [grads[i] for i in old], alpha=1 - o.dampening)
            for i, place in enumerate(places):
                if buffers[i] is None:
                    buffers[i] = momentum_buffer_list[place] = grads[i].detach().clone()
            if o.nesterov:
                grads = torch._foreach_add(grads, buffers, alpha=o.momentum)
            else:
                grads = buffers
        torch._foreach_add_(some, grads, alpha=-lr)


def _fused_sgd(o: SGDOptions, params: Tensors, grads: Tensors, momentum_buffer_list: list[Any]) -> None:
    if o.has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    first = o.momentum != 0 and all(buffer is None for buffer in momentum_buffer_list)
    if first:
        momentum_buffer_list[:] = [torch.empty_like(grad) for grad in grads]
    lists = (params, grads, momentum_buffer_list)
    for some, grads, buffers in parts_of(*lists):
        torch._fused_sgd_(
            some,
            grads,
            buffers if o.momentum != 0 else [],
            weight_decay=o.weight_decay,
            momentum=o.momentum,
            lr=o.lr,
            dampening=o.dampening,
            nesterov=o.nesterov,
            maximize=o.maximize,
            is_first_step=first,
            grad_scale=beside(some[0], o.grad_scale),
            found_inf=beside(some[0], o.found_inf),
        )
