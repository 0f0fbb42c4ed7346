"""Splitting nested arguments over devices, and putting nested results together.

Invariant: tensors are split or joined; everything else is shared or kept in its container's type.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from . import comm

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each device its part of the inputs: a tuple of a single tensor's parts, otherwise a list."""
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, [comm.device_index(device, True) for device in target_gpus], dim=dim)
    if isinstance(inputs, (tuple, list, dict)) and inputs:
        items = inputs.items() if isinstance(inputs, dict) else inputs
        parts = zip(*(scatter(item, target_gpus, dim) for item in items))
        kind: Any = type(inputs)
        if _is_namedtuple(inputs):
            return [kind(*part) for part in parts]
        if isinstance(inputs, tuple):
            return list(parts)
        return [list(part) if isinstance(inputs, list) else kind(part) for part in parts]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional and keyword arguments for each device, as many of one as of the other."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    positional.extend(() for _ in range(len(named) - len(positional)))
    named.extend({} for _ in range(len(positional) - len(named)))
    return tuple(positional), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """One result on one device from the results of all."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return _joined(outputs, target_device, dim)
    if first is None:
        return None
    kind: Any = type(first)
    if isinstance(first, dict):
        if not all(len(first) == len(other) for other in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return kind((key, gather([other[key] for other in outputs], target_device, dim)) for key in first)
    parts = (gather(group, target_device, dim) for group in zip(*outputs, strict=True))
    return kind._make(parts) if _is_namedtuple(first) else kind(parts)


def _joined(tensors: Sequence[Tensor], target_device: Any, dim: int) -> Tensor:
    if any(tensor.device.type == "cpu" for tensor in tensors):
        raise AssertionError("Gather function not implemented for CPU tensors")
    if dim == 0 and all(tensor.dim() == 0 for tensor in tensors):
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
            "return a vector.",
            stacklevel=4,
        )
        tensors = [tensor.view(1) for tensor in tensors]
    return comm.gather(tensors, dim, target_device)
