"""`torch.distributed.tensor` of a build without distributed: classes without instances."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import _WHY, _Refused
from ..device_mesh import DeviceMesh as DeviceMesh


class DTensor(_Refused):
    """A tensor over several processes: no tensor is one."""


class Placement(_Refused):
    """How a tensor lies on a mesh."""


class Shard(Placement):
    """Split along a dimension."""


class Replicate(Placement):
    """The same everywhere."""


class Partial(Placement):
    """To be summed."""


def distribute_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_WHY)


distribute_module = distribute_tensor
