"""`torch.distributed.checkpoint`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    ("async_save load load_sharded_optimizer_state_dict load_state_dict save save_state_dict "),
    (
        "BytesStorageMetadata CheckpointException ChunkStorageMetadata DefaultLoadPlanner "
        "DefaultSavePlanner FileSystemReader FileSystemWriter LoadPlan LoadPlanner Metadata "
        "ReadItem SavePlan SavePlanner StorageReader StorageWriter TensorStorageMetadata WriteItem "
    ),
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
