"""`torch.distributed._composable`: what is applied to modules that exist."""

from __future__ import annotations

from .checkpoint_activation import checkpoint as checkpoint
from .contract import _get_registry as _get_registry
from .contract import contract as contract
from .fsdp import fully_shard as fully_shard
from .replicate import replicate as replicate
