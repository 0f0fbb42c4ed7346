"""NPU lines of optimiser steps over lists: one launch for a list where the library has such a function.

Invariant: the vendor gets row-major tensors of one dtype that share no storage with each other, and never one without
elements. What it writes are the tensors themselves. Nothing is read back from the device, but a learning rate or a
`found_inf` that the vendor wants as a number.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._ops.optimizers import checked, checked_adam, checked_buffers, overflowed, unversioned
from ...._tensor_base import TensorBase, is_contiguous, numel
from .. import launch, quirks, table
from ..kernels import MOST_DIMS
from ..lines import call, fused, npu

# The first takes lists, and came with a newer toolkit than the second.
ADAMW, ADAMW_ONE, SGD = "aclnnFusedAdamw", "aclnnApplyAdamWV2", "aclnnFusedSgd"


def _fit(function: str, lists: tuple[Any, ...]) -> bool:
    """Whether these lists, each as long as the first, are what the vendor's functions take."""
    params = lists[0]
    if not params or any(len(tensors) != len(params) for tensors in lists):
        return False
    dt, dev = params[0]._dtype, params[0]._device
    if not table.signature(function).params[0].mask >> int(dt.code) & 1:
        return False
    storages = set()
    for tensors in lists:
        for t, like in zip(tensors, params):
            if (t._dtype is not dt or t._device != dev or t._shape != like._shape or not is_contiguous(t)
                    or len(t._shape) > MOST_DIMS):
                return False
            storages.add(id(t._storage))
    return len(storages) == len(lists) * len(params)


def _full(tensors: Any, keep: list[int]) -> list[Any]:
    """Those that have elements, with at least one dimension."""
    view = registry.get("view")
    return [t if t._shape else view.call((t, (1,))) for t in (tensors[i] for i in keep)]


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, TensorBase) else x


def _unscale(grads: Any, grad_scale: Any, found_inf: Any) -> None:
    """Gradients divided by their scale, in place; as they are where one of them is no number."""
    scale = grad_scale.to(grads[0]._dtype)
    if found_inf is not None:
        scale = registry.get("where").call((found_inf == 0, scale, scale.new_ones(())))
    registry.get("_foreach_div_.Tensor").call((grads, scale.reshape(())))


# -- Adam ------------------------------------------------------------------------------------------------------------
def _adam_fits(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any,
               beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
               grad_scale: Any, found_inf: Any) -> bool:
    lists = (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
    return (_fit(ADAMW_ONE, lists if amsgrad else lists[:4]) and len(state_steps) == len(self)
            and all(s._device == self[0]._device and s._dtype.name == "float32" and numel(s) == 1 for s in state_steps))


def _together() -> bool:
    return not quirks.lacks(ADAMW) and launch.available(ADAMW)


def _adam(decoupled: bool) -> Any:
    def step(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any,
             beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
             grad_scale: Any, found_inf: Any) -> None:
        checked_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad, decoupled)
        keep = [i for i, p in enumerate(self) if numel(p) > 0]
        together = _together()
        if not keep or (not together and overflowed(found_inf)):
            return
        if grad_scale is not None:
            _unscale([grads[i] for i in keep], grad_scale, found_inf)
        lists = [_full(tensors, keep) for tensors in (self, grads, exp_avgs, exp_avg_sqs)]
        largest = _full(max_exp_avg_sqs, keep) if amsgrad else None
        steps = [state_steps[i] for i in keep]
        if not decoupled and weight_decay != 0:
            # The vendor's penalty is on weights; this one is part of the gradient.
            if maximize:
                lists[1] = list(registry.get("_foreach_neg").call((lists[1],)))
            lists[1] = list(registry.get("_foreach_add.List").call((lists[1], lists[0], weight_decay)))
            maximize = False
        options = (_number(lr), beta1, beta2, weight_decay if decoupled else 0.0, eps, amsgrad, maximize)
        name = "_fused_adamw_" if decoupled else "_fused_adam_"
        if together:
            overflow = None if found_inf is None else found_inf.to(steps[0]._dtype)
            call(ADAMW, name, *lists, largest, steps, None, overflow, *options)
        else:
            for i, s in enumerate(steps):
                p, g, m, v = (tensors[i] for tensors in lists)
                call(ADAMW_ONE, name, p, m, v, largest[i] if largest else None, g, s, *options)

    return step


# -- stochastic gradient descent -------------------------------------------------------------------------------------
def _sgd_fits(self: Any, grads: Any, momentum_buffer_list: Any, weight_decay: float, momentum: float, lr: Any,
              dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any,
              found_inf: Any) -> bool:
    # Without momentum two launches over lists do it, and the vendor's documents do not say what to pass for buffers.
    return (momentum > 0 and not (nesterov and dampening != 0) and _fit(SGD, (self, grads, momentum_buffer_list))
            and (grad_scale is None or numel(grad_scale) == 1))


def _sgd(self: Any, grads: Any, momentum_buffer_list: Any, weight_decay: float, momentum: float, lr: Any,
         dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any,
         found_inf: Any) -> None:
    checked("fused_sgd_kernel", self, {"grads": grads, **checked_buffers(momentum, momentum_buffer_list)})
    keep = [i for i, p in enumerate(self) if numel(p) > 0]
    if not keep or overflowed(found_inf):
        return
    lists = [_full(tensors, keep) for tensors in (self, grads, momentum_buffer_list)]
    scale = None if grad_scale is None else grad_scale.to(self[0]._dtype)
    call(SGD, "_fused_sgd_", *lists, scale, weight_decay, momentum, _number(lr), dampening, nesterov, maximize,
         is_first_step)


for _overload in ("", ".tensor_lr"):
    npu(f"_fused_adam_{_overload}", fused((ADAMW_ONE,), _adam_fits, unversioned(_adam(False))))
    npu(f"_fused_adamw_{_overload}", fused((ADAMW_ONE,), _adam_fits, unversioned(_adam(True))))
    npu(f"_fused_sgd_{_overload}", fused((SGD,), _sgd_fits, unversioned(_sgd)))
