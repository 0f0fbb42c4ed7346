"""Shapes of parts and of wholes, for those who lay out tensors themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._size import Size
from ..device_mesh import DeviceMesh
from ._dtensor_spec import local_box, normalized, whole_shape
from .placement_types import Placement

__all__ = [
    "compute_global_tensor_info",
    "compute_global_tensor_shape",
    "compute_local_shape_and_global_offset",
    "compute_local_tensor_info",
]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's part, and where in the whole it begins."""
    shape, offset = local_box(global_shape, mesh, normalized(placements, len(global_shape), mesh))
    return tuple(shape), () if skip_offset else tuple(offset)


def compute_local_tensor_info(
    global_tensor: Any, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Shape and strides of this rank's part of a tensor."""
    shape = local_box(global_tensor.shape, mesh, normalized(placements, global_tensor.dim(), mesh))[0]
    order = sorted(range(len(shape)), key=lambda dim: global_tensor.stride(dim))
    stride, step = [0] * len(shape), 1
    for dim in order:
        stride[dim] = step
        step *= max(shape[dim], 1)
    return list(shape), stride


def compute_global_tensor_info(
    tensor: Any, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Shape and strides of the whole whose parts are all like this one."""
    return whole_shape(tensor, mesh, normalized(placements, tensor.dim(), mesh))


def compute_global_tensor_shape(shape: Any, mesh: DeviceMesh, placements: Sequence[Placement]) -> Any:
    """The shape of the whole, from the shapes of all ranks' parts."""
    from ... import tensor
    from .. import _functional_collectives as funcol

    if len(placements) != 1:
        raise NotImplementedError("compute_global_tensor_shape only supports 1 placement for now.")
    placement = placements[0]
    if placement.is_replicate():
        return Size(shape)
    if not placement.is_shard():
        raise NotImplementedError(f"Placement type {type(placement)} not supported.")
    dim = normalized(placements, len(shape), mesh)[0].dim  # type: ignore[attr-defined]
    lengths = funcol.all_gather_single(tensor([shape[dim]], device=mesh.device_type), mesh.get_group(0))
    found = list(shape)
    found[dim] = int(lengths.sum().item())
    return Size(found)
