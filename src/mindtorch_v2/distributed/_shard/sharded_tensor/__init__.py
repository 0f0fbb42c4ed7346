"""`torch.distributed._shard.sharded_tensor`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "custom_sharded_op_impl empty full init_from_local_shards load_with_process_group ones pre_load_state_dict_hook "
    "rand randn sharded_op_impl state_dict_hook zeros",
    "Shard ShardMetadata ShardedTensor ShardedTensorBase ShardedTensorMetadata TensorProperties",
    "{name} is not served; torch.distributed.tensor has DTensor",
)
