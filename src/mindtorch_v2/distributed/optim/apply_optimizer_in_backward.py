"""Optimizers that step while backward runs: one for each parameter, as soon as its gradient is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...utils.weak import WeakTensorKeyDictionary

__all__: list[str] = []

param_to_optim_hook_handle_map: Any = WeakTensorKeyDictionary()
param_to_acc_grad_map: Any = WeakTensorKeyDictionary()


def _apply_optimizer_in_backward(
    optimizer_class: Any, params: Iterable[Any], optimizer_kwargs: dict[str, Any], register_hook: bool = True
) -> None:
    """Give each parameter an optimizer that steps when its gradient has been accumulated; the gradient is then None."""
    for param in params:
        _apply_to(param, optimizer_class, optimizer_kwargs, register_hook)


def _apply_to(param: Any, optimizer_class: Any, settings: dict[str, Any], register_hook: bool) -> None:
    if param not in param_to_acc_grad_map:
        param_to_acc_grad_map[param] = param.view_as(param).grad_fn.next_functions[0][0]
    if not hasattr(param, "_in_backward_optimizers"):
        param._in_backward_optimizers, param._optimizer_classes, param._optimizer_kwargs = [], [], []
    param._in_backward_optimizers.append(optimizer_class([param], **settings))
    param._optimizer_classes.append(optimizer_class)
    param._optimizer_kwargs.append(settings)
    if not register_hook:
        return

    def step(*_: Any) -> None:
        for each in param._in_backward_optimizers:
            each.step()
        param.grad = None

    handle = param_to_acc_grad_map[param].register_hook(step)
    if param not in param_to_optim_hook_handle_map:
        param_to_optim_hook_handle_map[param] = []
    param_to_optim_hook_handle_map[param].append(handle)


def _get_in_backward_optimizers(module: Any) -> list[Any]:
    """The optimizers that step inside backward for a module's parameters."""
    return [each for param in module.parameters() for each in getattr(param, "_in_backward_optimizers", ())]
