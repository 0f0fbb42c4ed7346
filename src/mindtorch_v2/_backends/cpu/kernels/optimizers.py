"""Launches of optimiser steps over lists of tensors.

Invariant: the native module gets tensors of one dtype without gaps, those of a parameter in one layout; everything else
is refused, before anything was written, and the row's parts or the optimiser's loop serve it. The `fused_*` functions
serve rows, which leave versions alone as PyTorch's do; passes stand for a loop of operators (`common/passes`).
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.keys import CPU
from ...._dtype import dtype as DType
from ...._dtype import float32, float64
from ...._mypyc import i64
from ...._strides import strides_dense
from ...._tensor_base import TensorBase, is_contiguous, numel, own_memory
from ...common.passes import PASSES, Passes, wrote

_adam: Final[Any] = _native.fused_adam
_sgd: Final[Any] = _native.fused_sgd
_adagrad: Final[Any] = _native.fused_adagrad

_FLOAT32: Final[i64] = float32.code
_FLOAT64: Final[i64] = float64.code


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, TensorBase) else x


def _blocks(lists: list[list[Any]], steps: Any) -> list[Any] | None:
    """Elements, then storage and offset in each list, then the step, for every parameter; None where memory does not
    fit. Steps are numbers, or tensors to be counted up."""
    blocks: list[Any] = []
    params = lists[0]
    first: TensorBase = params[0]
    code = first._dtype.code
    for i in range(len(params)):
        p: TensorBase = params[i]
        plain = is_contiguous(p)
        if p._dtype.code != code or not (plain or strides_dense(p._shape, p._stride)):
            return None
        blocks.append(int(numel(p)))
        for tensors in lists:
            t: TensorBase = tensors[i]
            if t._dtype.code != code or t._shape != p._shape:
                return None
            if t._stride != p._stride and not (plain and is_contiguous(t)):
                return None
            own_memory(t)
            blocks.append(t._storage)
            blocks.append(int(t._offset))
        if steps is not None:
            step = steps[i]
            if isinstance(step, TensorBase):
                own_memory(step)
                blocks.append(step._storage)
                blocks.append(int(step._offset))
            else:
                blocks.append(step)
                blocks.append(None)
    return blocks


# -- rows ------------------------------------------------------------------------------------------------------------
def fused_adam(decoupled: bool, params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any,
               state_steps: Any, lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool,
               maximize: bool, grad_scale: Any) -> bool:
    """Whether the native module has done it."""
    lists = [list(params), list(grads), list(exp_avgs), list(exp_avg_sqs)]
    if amsgrad:
        lists.append(list(max_exp_avg_sqs))
    blocks = _blocks(lists, [float(step.item()) for step in state_steps])
    if blocks is None:
        return False
    done: bool = _adam(params[0]._dtype.code, len(lists), blocks, _FLOAT32, _number(lr), beta1, beta2, weight_decay,
                       eps, decoupled, maximize, _number(grad_scale))
    return done


def fused_sgd(params: Any, grads: Any, buffers: Any, weight_decay: float, momentum: float, lr: Any, dampening: float,
              nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any) -> bool:
    """Whether the native module has done it."""
    lists = [list(params), list(grads)]
    if momentum != 0:
        lists.append(list(buffers))
    blocks = _blocks(lists, None)
    if blocks is None:
        return False
    done: bool = _sgd(params[0]._dtype.code, len(lists), blocks, _number(lr), weight_decay, momentum, dampening,
                      nesterov, is_first_step, maximize, _number(grad_scale))
    return done


def fused_adagrad(params: Any, grads: Any, state_sums: Any, state_steps: Any, lr: Any, lr_decay: float,
                  weight_decay: float, eps: float, maximize: bool, grad_scale: Any) -> bool:
    """Whether the native module has done it."""
    blocks = _blocks([list(params), list(grads), list(state_sums)], [float(step.item()) for step in state_steps])
    if blocks is None:
        return False
    done: bool = _adagrad(params[0]._dtype.code, 3, blocks, _FLOAT32, _number(lr), lr_decay, weight_decay, eps,
                          maximize, _number(grad_scale))
    return done


# -- passes ------------------------------------------------------------------------------------------------------------
def _wide(dt: DType) -> bool:
    """Narrow dtypes are rounded after each operator of a loop, but once in a pass."""
    return dt.code == _FLOAT32 or dt.code == _FLOAT64


def _step_code(steps: list[Any]) -> i64:
    """The dtype that all counts have; -1 where they are no numbers that can be counted up."""
    first: TensorBase = steps[0]
    code = first._dtype.code
    if not _wide(first._dtype):
        return -1
    for s in steps:
        step: TensorBase = s
        if step._dtype.code != code or numel(step) != 1:
            return -1
    return code


@final
class CpuPasses(Passes):
    """Each step is one call of the native module."""

    def adam(self, lists: list[list[Any]], lr: Any, beta1: Any, beta2: Any, weight_decay: Any, eps: Any,
             decoupled: bool, maximize: bool) -> bool:
        steps = lists[len(lists) - 1]
        first: TensorBase = lists[0][0]
        code = _step_code(steps)
        if code < 0 or not _wide(first._dtype):
            return False
        tensors = lists[: len(lists) - 1]
        blocks = _blocks(tensors, steps)
        if blocks is None or not _adam(first._dtype.code, len(tensors), blocks, code, _number(lr), beta1, beta2,
                                       weight_decay, eps, decoupled, maximize, None):
            return False
        wrote(tensors[0], 2 if decoupled and weight_decay != 0 else 1)
        wrote(tensors[2], 1)
        wrote(tensors[3], 2)
        if len(tensors) > 4:
            wrote(tensors[4], 1)
        wrote(steps, 1)
        return True

    def sgd(self, lists: list[list[Any]], lr: Any, weight_decay: Any, momentum: Any, dampening: Any, nesterov: bool,
            maximize: bool) -> bool:
        first: TensorBase = lists[0][0]
        if not _wide(first._dtype):
            return False
        blocks = _blocks(lists, None)
        if blocks is None or not _sgd(first._dtype.code, len(lists), blocks, _number(lr), weight_decay, momentum,
                                      dampening, nesterov, False, maximize, None):
            return False
        wrote(lists[0], 1)
        if len(lists) > 2:
            wrote(lists[2], 2)
        return True

    def adagrad(self, lists: list[list[Any]], lr: Any, lr_decay: Any, weight_decay: Any, eps: Any,
                maximize: bool) -> bool:
        steps = lists[3]
        first: TensorBase = lists[0][0]
        code = _step_code(steps)
        if code < 0 or not _wide(first._dtype):
            return False
        blocks = _blocks(lists[:3], steps)
        if blocks is None or not _adagrad(first._dtype.code, 3, blocks, code, _number(lr), lr_decay, weight_decay, eps,
                                          maximize, None):
            return False
        wrote(lists[0], 1)
        wrote(lists[2], 1)
        wrote(steps, 1)
        return True


PASSES[int(CPU)] = CpuPasses()
