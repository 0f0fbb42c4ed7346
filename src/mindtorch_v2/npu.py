"""`torch.npu`: Ascend devices, with `torch.cuda`'s names."""
from __future__ import annotations

from ._backends.npu import is_available as is_available


def device_count() -> int:
    """How many NPUs there are; asking initialises nothing."""
    return 0


def is_initialized() -> bool:
    return False
