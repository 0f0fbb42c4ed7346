"""Many parameters as one vector, and back.

Invariant: the order is that of the iterable, and all parameters live on one device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor


def _one_device(param: Tensor, known: int | None) -> int:
    """The index of the device that all parameters so far share; -1 stands for those without devices to choose from."""
    here = param.get_device() if param.device.type == "npu" else -1
    if known is not None and here != known:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return here


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters flattened into one new vector."""
    device: int | None = None
    parts: list[Tensor] = []
    for param in parameters:
        device = _one_device(param, device)
        parts.append(param.view(-1))
    vector: Tensor = torch.cat(parts)
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make each parameter a view of its part of `vec`."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {torch.typename(vec)}")
    device: int | None = None
    start = 0
    for param in parameters:
        device = _one_device(param, device)
        stop = start + param.numel()
        part: Any = vec[start:stop]
        param.data = part.view_as(param).data
        start = stop
