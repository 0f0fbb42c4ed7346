"""`torch.distributed.tensor._sharding_prop`: PyTorch's table of layouts by operator, under its name.

Here layouts are chosen by `_strategies`, call by call: nothing is kept that threads could share.
"""

from __future__ import annotations

import contextlib
from typing import Any


class ShardingPropagator:
    """PyTorch's class, for the lock that its test tools exchange; nothing here takes it."""

    _fake_mode_lock: Any = contextlib.nullcontext()

    def __init__(self) -> None:
        raise NotImplementedError("ShardingPropagator: layouts are chosen call by call (torch.distributed.tensor)")
