"""`torch.distributed.device_mesh` of a build without distributed."""

from __future__ import annotations

from typing import Any, NoReturn

from . import _WHY, _Refused


class DeviceMesh(_Refused):
    """Devices of several processes: for annotations and `isinstance`."""


def init_device_mesh(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_WHY)
