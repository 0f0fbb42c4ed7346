"""`torch.distributed.tensor`: placements are data; tensors over several processes are refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

_offer(
    __name__,
    "distribute_module distribute_tensor empty full ones rand randn zeros",
    "DTensor",
    "{name} is not served: no tensor lies on several processes here",
)
