"""Clipping gradients, by their joint norm or by value.

Invariant: gradients change in place and nothing is recorded; tensors of one device and dtype go through one operator
over a list where the device has those.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import mindtorch_v2 as torch

from ..._dispatch.state import swap_grad
from ..._tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]

F = TypeVar("F", bound=Callable[..., Any])

# Devices with operators over lists; the others take tensors one by one.
_FOREACH_DEVICES = ("cpu", "npu")


def _no_grad(func: F) -> F:
    @functools.wraps(func)
    def without_recording(*args: Any, **kwargs: Any) -> Any:
        before = swap_grad(False)
        try:
            return func(*args, **kwargs)
        finally:
            swap_grad(before)

    return cast(F, without_recording)


def _grouped(tensors: list[Tensor]) -> Iterable[tuple[Any, list[Tensor]]]:
    """The tensors by device and dtype, in order of first appearance."""
    groups: dict[tuple[Any, Any], list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    for (device, _), members in groups.items():
        yield device, members


def _use_lists(device: Any, tensors: list[Tensor], foreach: bool | None) -> bool:
    if device.type in _FOREACH_DEVICES:
        # A subclass wants to see its own calls unless the caller says otherwise.
        return bool(foreach) if foreach is not None else all(type(t) in (Tensor, torch.nn.Parameter) for t in tensors)
    if foreach:
        raise RuntimeError(f"foreach=True was passed, but can't use the foreach API on {device.type} tensors")
    return False


def _listed(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _grads(parameters: Iterable[Tensor]) -> list[Tensor]:
    return [grad for p in parameters if (grad := p.grad) is not None]


@_no_grad
def _get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements of all tensors together."""
    return _norm_of(_listed(tensors), float(norm_type), error_if_nonfinite, foreach)


def _norm_of(tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool, foreach: bool | None) -> Tensor:
    if not tensors:
        return torch.tensor(0.0)
    first = tensors[0].device
    norms: list[Tensor] = []
    for device, members in _grouped(tensors):
        if _use_lists(device, members, foreach):
            norms.extend(torch._foreach_norm(members, norm_type))
        else:
            norms.extend(torch.linalg.vector_norm(t, norm_type) for t in members)
    total: Tensor = torch.linalg.vector_norm(torch.stack([norm.to(first) for norm in norms]), norm_type)
    if error_if_nonfinite and torch.logical_or(total.isnan(), total.isinf()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@_no_grad
def _clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients so that `total_norm`, which the caller knows, becomes `max_norm` where it is larger."""
    _scale(_grads(_listed(parameters)), float(max_norm), total_norm, foreach)


def _scale(grads: list[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None) -> None:
    if not grads:
        return
    # Never read here: that would wait for the device.
    factor = torch.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    for device, members in _grouped(grads):
        here = factor.to(device)
        if _use_lists(device, members, foreach):
            torch._foreach_mul_(members, here)
        else:
            for grad in members:
                grad.mul_(here)


@_no_grad
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their joint norm is at most `max_norm`; the norm they had is returned."""
    lazy = isinstance(parameters, types.GeneratorType)
    parameters = _listed(parameters)
    if lazy and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    grads = _grads(parameters)
    total = _norm_of(grads, float(norm_type), error_if_nonfinite, foreach)
    _scale(grads, float(max_norm), total, foreach)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@_no_grad
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value]."""
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    clip_value = float(clip_value)
    for device, members in _grouped(_grads(parameters)):
        if _use_lists(device, members, foreach):
            torch._foreach_clamp_min_(members, -clip_value)
            torch._foreach_clamp_max_(members, clip_value)
        else:
            for grad in members:
                grad.clamp_(min=-clip_value, max=clip_value)
