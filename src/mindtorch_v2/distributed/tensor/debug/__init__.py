"""`torch.distributed.tensor.debug`: what collectives a program asks for; drawings of layouts are refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ._comm_mode import CommDebugMode

__all__ = ["CommDebugMode"]

_offer(__name__, "visualize_sharding", "", "{name} is not served; a DTensor's placements say how it lies on its mesh")
