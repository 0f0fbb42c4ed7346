"""`torch.distributed.checkpoint.hf_storage`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "{name} is not served; FileSystemReader and FileSystemWriter are",
)
