"""`DistributedDataParallel` of a build without distributed: a class for annotations and `isinstance`."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module


class DistributedDataParallel(Module):
    """A module replicated over processes; making one needs `torch.distributed`, which is not part of this build."""

    module: Any

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel: torch.distributed is not part of this build (torch.distributed.is_available() is "
            "False); nn.DataParallel uses the devices of one process"
        )
