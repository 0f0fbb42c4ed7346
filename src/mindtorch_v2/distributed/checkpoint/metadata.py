"""`torch.distributed.checkpoint.metadata`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "BytesStorageMetadata ChunkStorageMetadata Metadata TensorStorageMetadata",
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
