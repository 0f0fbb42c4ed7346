"""Launches of optimiser steps over lists of tensors.

Invariant: the native module gets tensors of one dtype without gaps, those of a parameter in one layout; everything else
is refused, and the row's parts serve it.
"""

from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._strides import strides_dense
from ...._tensor_base import TensorBase, bump, is_contiguous, numel

_adam: Final[Any] = _native.fused_adam
_sgd: Final[Any] = _native.fused_sgd
_adagrad: Final[Any] = _native.fused_adagrad


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, TensorBase) else x


def _blocks(lists: list[Any], steps: Any) -> list[Any] | None:
    """Elements, step, then storage and offset in each list, for every parameter; None where memory does not fit."""
    blocks: list[Any] = []
    params = lists[0]
    code = params[0]._dtype.code
    for i in range(len(params)):
        p: TensorBase = params[i]
        plain = is_contiguous(p)
        if p._dtype.code != code or not (plain or strides_dense(p._shape, p._stride)):
            return None
        blocks.append(int(numel(p)))
        blocks.append(0.0 if steps is None else steps[i].item())
        for tensors in lists:
            t: TensorBase = tensors[i]
            if t._dtype.code != code or t._shape != p._shape:
                return None
            if t._stride != p._stride and not (plain and is_contiguous(t)):
                return None
            blocks.append(t._storage)
            blocks.append(int(t._offset))
    return blocks


def _wrote(lists: list[Any], scaled: bool) -> None:
    for k in range(len(lists)):
        if k != 1 or scaled:
            for t in lists[k]:
                bump(t)


def adam_step(decoupled: bool, params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any,
              state_steps: Any, lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool,
              maximize: bool, grad_scale: Any) -> bool:
    """Whether the native module has done it."""
    lists = [params, grads, exp_avgs, exp_avg_sqs]
    if amsgrad:
        lists.append(max_exp_avg_sqs)
    blocks = _blocks(lists, state_steps)
    if blocks is None or not _adam(params[0]._dtype.code, len(lists), blocks, _number(lr), beta1, beta2, weight_decay,
                                   eps, decoupled, maximize, _number(grad_scale)):
        return False
    _wrote(lists, grad_scale is not None)
    return True


def sgd_step(params: Any, grads: Any, buffers: Any, weight_decay: float, momentum: float, lr: Any, dampening: float,
             nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any) -> bool:
    """Whether the native module has done it."""
    lists = [params, grads, buffers] if momentum != 0 else [params, grads]
    blocks = _blocks(lists, None)
    if blocks is None or not _sgd(params[0]._dtype.code, len(lists), blocks, _number(lr), weight_decay, momentum,
                                  dampening, nesterov, is_first_step, maximize, _number(grad_scale)):
        return False
    _wrote(lists, grad_scale is not None)
    return True


def adagrad_step(params: Any, grads: Any, state_sums: Any, state_steps: Any, lr: Any, lr_decay: float,
                 weight_decay: float, eps: float, maximize: bool, grad_scale: Any) -> bool:
    """Whether the native module has done it."""
    lists = [params, grads, state_sums]
    blocks = _blocks(lists, state_steps)
    if blocks is None or not _adagrad(params[0]._dtype.code, len(lists), blocks, _number(lr), lr_decay, weight_decay,
                                      eps, maximize, _number(grad_scale)):
        return False
    _wrote(lists, grad_scale is not None)
    return True
