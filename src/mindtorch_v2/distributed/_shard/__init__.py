"""`torch.distributed._shard`: importable, and refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "load_with_process_group shard_module shard_parameter",
    "",
    "{name} is not served; torch.distributed.tensor has DTensor",
)
