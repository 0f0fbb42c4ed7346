"""`torch.distributed.tensor`: tensors that lie on a mesh of processes."""

from __future__ import annotations

from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]
