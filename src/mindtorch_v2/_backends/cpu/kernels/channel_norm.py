"""Launches of batch and group norm: planes of places side by side, or channels last, in one native call each way.

Invariant: the rows' own formulas, in terms of operators, serve what the kernel is not made for: no elements, and many
channels of a few places, which are neither planes nor columns.
"""
from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._core_operators import CORE
from ...._dispatch.keys import CPU
from ...._dtype import dtype
from ...._ops import batch_norm as rows
from ...._tensor_base import TensorBase, is_contiguous, numel, own_memory
from .dense import deliver, dense_as, fresh, is_last, last_as, operand, target, target_last, wide_dtype

_FEW: Final = 8  # places below which a plane is not worth a loop of its own; those of one place are columns
_MANY: Final = 512  # planes whose loops cost more than the calls of operators that stand for them

Planes = tuple[int, int, int, int, bool]  # images, channels, places, groups, whether channels are last
_channel_norm: Final[Any] = _native.channel_norm
_channel_norm_backward: Final[Any] = _native.channel_norm_backward
_running_update: Final[Any] = _native.running_update
_NONE: Final[tuple[Any, int, int]] = (None, 0, 0)


def _given(t: TensorBase | None, dt: dtype) -> tuple[Any, int, int]:
    return _NONE if t is None else operand(dense_as(t, dt))


def _channel_planes(x: TensorBase) -> Planes:
    n, c = x._shape[0], x._shape[1]
    places = 1
    for size in x._shape[2:]:
        places *= size
    if places == 1 or is_last(x):
        # One image of all places: a channel has its statistics over all of them.
        return 1, c, n * places, 0, True
    return n, c, places, 0, False


def _too_few(planes: Planes) -> bool:
    return planes[2] < _FEW and not planes[4] and planes[0] * planes[1] > _MANY


def _source(t: TensorBase, dt: dtype, last: bool) -> TensorBase:
    return last_as(t, dt) if last and len(t._shape) > 3 else dense_as(t, dt)


def _target(out: TensorBase, dt: dtype, last: bool) -> TensorBase:
    return target_last(out, dt) if last and len(out._shape) > 3 else target(out, dt)


def _deliver_all(outs: Any, parts: Any) -> None:
    for out, part in zip(outs, parts):
        deliver(out, part)


def _update(running: TensorBase, seen: TensorBase, momentum: float, factor: float) -> None:
    """Running statistics after `seen * factor`, without a new version (`rows.update_running`)."""
    if running._keys == CPU and running._dtype is seen._dtype and is_contiguous(running):
        own_memory(running)
        _running_update(
            running._storage, int(running._offset), running._dtype.code,
            seen._storage, int(seen._offset), seen._dtype.code,
            int(numel(seen)), momentum, factor)
    else:
        rows.update_running(running, CORE.mul.call((seen, factor)), momentum)


def batch_norm(outs: Any, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                momentum: float, eps: float) -> None:
    planes = _channel_planes(input)
    if _too_few(planes) or numel(input) == 0:
        _deliver_all(outs, rows.batch_norm_in_parts(input, weight, bias, running_mean, running_var, training, momentum,
                                                    eps))
        return
    dt = wide_dtype(input._dtype)
    read = input._dtype
    y, c = _target(outs[0], read, planes[4]), (planes[1],)
    parameters = (*_given(weight, dt), *_given(bias, dt))
    x = operand(_source(input, read, planes[4]))
    if not training:
        _channel_norm(*x, *operand(y), *parameters, *_given(running_mean, dt), *_given(running_var, dt), *_NONE,
                      *planes, eps, True)
        deliver(outs[0], y)
        return
    mean, var, rstd = target(outs[1], dt), fresh(c, dt), target(outs[2], dt)
    _channel_norm(*x, *operand(y), *parameters, *operand(mean), *operand(var), *operand(rstd), *planes, eps, False)
    size = planes[0] * planes[2]
    if running_mean is not None:
        _update(running_mean, mean, momentum, 1.0)
    if running_var is not None:
        _update(running_var, var, momentum, size / max(size - 1, 1))
    _deliver_all(outs, (y, mean, rstd))


def _backward(outs: Any, planes: Planes, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, fixed: bool,
              mask: Any) -> None:
    read = input._dtype
    dt, last = wide_dtype(read), planes[4]
    made = [_target(out, read if k == 0 else dt, last) if mask[k] else None for k, out in enumerate(outs)]
    dx = _NONE if made[0] is None else operand(made[0])
    _channel_norm_backward(*operand(_source(grad, read, last)), *operand(_source(input, read, last)), *_given(mean, dt),
                           *_given(rstd, dt), *_given(weight, dt), *dx, *_given(made[1], dt), *_given(made[2], dt),
                           *planes, fixed)
    for out, part in zip(outs, made):
        if part is not None:
            deliver(out, part)


def batch_backward(outs: Any, grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
                    save_mean: Any, save_invstd: Any, train: bool, eps: float, output_mask: Any) -> None:
    planes = _channel_planes(input)
    if _too_few(planes) or numel(input) == 0:
        _deliver_all(outs, rows.batch_backward_in_parts(grad_out, input, weight, running_mean, running_var, save_mean,
                                                        save_invstd, train, eps, output_mask))
        return
    mean, rstd = (save_mean, save_invstd) if train else (
        running_mean, (running_var.to(wide_dtype(input._dtype)) + eps).rsqrt())
    _backward(outs, planes, grad_out, input, mean, rstd, weight, not train, output_mask)


def _group_planes(x: Any, N: int, C: int, HxW: int, group: int) -> Planes:
    return N, C, HxW, group, is_last(x) and tuple(x._shape[:2]) == (N, C)


def group_norm(outs: Any, input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int,
                eps: float) -> None:
    planes = _group_planes(input, N, C, HxW, group)
    if _too_few(planes) or numel(input) == 0:
        _deliver_all(outs, rows.group_norm_in_parts(input, weight, bias, N, C, HxW, group, eps))
        return
    dt, read = wide_dtype(input._dtype), input._dtype
    y, sets = _target(outs[0], read, planes[4]), (N, group)
    mean, var, rstd = target(outs[1], dt), fresh(sets, dt), target(outs[2], dt)
    _channel_norm(*operand(_source(input, read, planes[4])), *operand(y), *_given(weight, dt), *_given(bias, dt),
                  *operand(mean), *operand(var), *operand(rstd), *planes, eps, False)
    _deliver_all(outs, (y, mean, rstd))


def group_backward(outs: Any, grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int,
                    group: int, output_mask: Any) -> None:
    planes = _group_planes(input, N, C, HxW, group)
    if _too_few(planes) or numel(input) == 0:
        _deliver_all(outs, rows.group_backward_in_parts(grad_out, input, mean, rstd, weight, N, C, HxW, group,
                                                        output_mask))
        return
    _backward(outs, planes, grad_out, input, mean, rstd, weight, False, output_mask)
