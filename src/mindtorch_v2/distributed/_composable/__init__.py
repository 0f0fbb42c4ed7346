"""`torch.distributed._composable`: what is applied to modules that exist."""

from __future__ import annotations

from .fsdp import fully_shard as fully_shard
