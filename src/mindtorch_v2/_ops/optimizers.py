"""`torch._fused_adam_` and its kin: one step of an optimiser over lists of tensors as one operator.

Invariant: nothing is written where `found_inf` says that a gradient is no number; otherwise gradients are divided by
`grad_scale` in place, as PyTorch does. Step counts are those of this step; nobody counts here. Versions stay what they
were, as PyTorch's do. A composite in terms of the operators over lists: a device may serve a row whole.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch import registry
from .._dispatch.keys import INFERENCE
from .._tensor_base import TensorBase, counter
from . import foreach
from .table import composite

_LISTS = foreach.__name__  # the rows over lists are registered before these


def _do(name: str, *args: Any) -> Any:
    return registry.get(f"_foreach_{name}").call(args)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, TensorBase) else x


def unversioned(step: Callable[..., None]) -> Callable[..., None]:
    """`step`, whose writes are not counted."""

    @functools.wraps(step)
    def run(*args: Any) -> None:
        tensors = [t for arg in args if isinstance(arg, (list, tuple)) for t in arg if isinstance(t, TensorBase)]
        before = [(vc, vc.value) for vc in (counter(t) for t in tensors if not t._keys & INFERENCE)]
        step(*args)
        for vc, value in before:
            vc.value = value

    return run


def overflowed(found_inf: Any) -> bool:
    return found_inf is not None and found_inf.item() == 1


def checked(name: str, self: Any, lists: dict[str, Any]) -> None:
    """PyTorch's complaints about what is no tensor, lists of different lengths, dtypes that differ, and dtypes no step
    is for."""
    for place, tensors in enumerate((self, *lists.values())):
        for i, t in enumerate(tensors):
            if not isinstance(t, TensorBase):
                raise TypeError(f"expected Tensor as element {i} in argument {place}, but got {type(t).__name__}")
    for key, tensors in lists.items():
        if len(tensors) != len(self):
            raise _expected(f"{key}.size() == n_tensors")
    for i, param in enumerate(self):
        dt = param._dtype
        if not dt.is_floating_point or dt.itemsize == 1:
            raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")
        for key, tensors in lists.items():
            if key != "state_steps" and tensors[i]._dtype is not dt:
                raise RuntimeError(f"expected scalar type {dt.scalar_name} but found {tensors[i]._dtype.scalar_name}")


def _expected(what: str) -> RuntimeError:
    return RuntimeError(f"Expected {what} to be true, but got false.  (Could this error message be improved?  If so, "
                        "please report an enhancement request to PyTorch.)")


def checked_buffers(momentum: float, buffers: Any) -> dict[str, Any]:
    """Buffers that there are exactly when there is momentum."""
    if momentum == 0 and buffers:
        raise _expected("momentum_buffer_list.empty()")
    return {} if momentum == 0 else {"momentum_buffer_list": buffers}


def _prepared(grads: Any, params: Any, weight_decay: float, maximize: bool, grad_scale: Any) -> Any:
    """Gradients of what is minimised, unscaled and with the penalty; only unscaling writes them."""
    if grad_scale is not None:
        _do("div_.Tensor", grads, grad_scale.to(grads[0].dtype))
    if maximize:
        grads = _do("neg", grads)
    return _do("add.List", grads, params, weight_decay) if weight_decay != 0 else grads


def _counts(steps: Any) -> list[Any]:
    """Step counts: numbers where reading them costs nothing, else the tensors."""
    return [step.item() if step.is_cpu else step for step in steps]


def _add_quotients(params: Any, above: Any, below: Any, sizes: list[Any]) -> None:
    if isinstance(sizes[0], TensorBase):
        _do("div_.List", below, sizes)
        _do("addcdiv_.Scalar", params, above, below, 1)
    else:
        _do("addcdiv_.ScalarList", params, above, below, sizes)


def checked_adam(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any,
                 amsgrad: bool, decoupled: bool) -> None:
    lists = {"grads": grads, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs}
    if amsgrad:
        lists["max_exp_avg_sqs"] = max_exp_avg_sqs
    elif max_exp_avg_sqs:
        raise _expected("max_exp_avg_sqs.empty()")
    lists["state_steps"] = state_steps
    checked("fused_adamw_kernel" if decoupled else "fused_adam_kernel", self, lists)


def _adam(decoupled: bool) -> Any:
    def step(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any,
             beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
             grad_scale: Any, found_inf: Any) -> None:
        checked_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad, decoupled)
        if not self or overflowed(found_inf):
            return
        rate = _number(lr)
        grads = _prepared(grads, self, 0 if decoupled else weight_decay, maximize, grad_scale)
        if decoupled and weight_decay != 0:
            _do("mul_.Scalar", self, 1 - rate * weight_decay)
        _do("lerp_.Scalar", exp_avgs, grads, 1 - beta1)
        _do("mul_.Scalar", exp_avg_sqs, beta2)
        _do("addcmul_.Scalar", exp_avg_sqs, grads, grads, 1 - beta2)
        if amsgrad:
            _do("maximum_.List", max_exp_avg_sqs, exp_avg_sqs)
        roots = _do("sqrt", max_exp_avg_sqs if amsgrad else exp_avg_sqs)
        counts = _counts(state_steps)
        corrections = [(1 - beta2 ** n) ** 0.5 for n in counts]
        _do("div_.List" if isinstance(counts[0], TensorBase) else "div_.ScalarList", roots, corrections)
        _do("add_.Scalar", roots, eps)
        _add_quotients(self, exp_avgs, roots, [rate / (1 - beta1 ** n) * -1 for n in counts])

    return step


def _sgd(self: Any, grads: Any, momentum_buffer_list: Any, weight_decay: float, momentum: float, lr: Any,
         dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any,
         found_inf: Any) -> None:
    checked("fused_sgd_kernel", self, {"grads": grads, **checked_buffers(momentum, momentum_buffer_list)})
    if not self or overflowed(found_inf):
        return
    grads = _prepared(grads, self, weight_decay, maximize, grad_scale)
    if momentum != 0:
        if is_first_step:
            _do("copy_", momentum_buffer_list, grads, False)
        else:
            _do("mul_.Scalar", momentum_buffer_list, momentum)
            _do("add_.List", momentum_buffer_list, grads, 1 - dampening)
        grads = _do("add.List", grads, momentum_buffer_list, momentum) if nesterov else momentum_buffer_list
    _do("add_.List", self, grads, -_number(lr))


def _adagrad(self: Any, grads: Any, state_sums: Any, state_steps: Any, lr: Any, lr_decay: float, weight_decay: float,
             eps: float, maximize: bool, grad_scale: Any, found_inf: Any) -> None:
    checked("fused_adagrad_kernel", self, {"grads": grads, "state_sums": state_sums, "state_steps": state_steps})
    if not self or overflowed(found_inf):
        return
    rate = _number(lr)
    grads = _prepared(grads, self, weight_decay, maximize, grad_scale)
    _do("addcmul_.Scalar", state_sums, grads, grads, 1)
    roots = _do("sqrt", state_sums)
    _do("add_.Scalar", roots, eps)
    _add_quotients(self, grads, roots, [-rate / (1 + (n - 1) * lr_decay) for n in _counts(state_steps)])


_SCALING = "Tensor? grad_scale=None, Tensor? found_inf=None"
for _overload, _rate in (("", "float lr"), (".tensor_lr", "Tensor lr")):
    for _name, _step in (("_fused_adam_", _adam(False)), ("_fused_adamw_", _adam(True))):
        composite(f"{_name}{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
                  f"exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, {_rate}, float beta1, float "
                  f"beta2, float weight_decay, float eps, bool amsgrad, bool maximize, {_SCALING}) -> ()",
                  unversioned(_step), method=False)
    composite(f"_fused_sgd_{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
              f"float weight_decay, float momentum, {_rate}, float dampening, bool nesterov, bool maximize, bool "
              f"is_first_step, {_SCALING}) -> ()", unversioned(_sgd), method=False)
    _steps = "Tensor[]" if _overload else "Tensor(d!)[]"
    composite(f"_fused_adagrad_{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, {_steps} "
              f"state_steps, *, {_rate}, float lr_decay, float weight_decay, float eps, bool maximize, {_SCALING}) "
              "-> ()", unversioned(_adagrad), method=False)
