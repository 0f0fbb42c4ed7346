"""`torch.distributed.checkpoint.filesystem`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "FileSystemReader FileSystemWriter",
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
