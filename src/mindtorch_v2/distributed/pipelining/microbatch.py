"""`torch.distributed.pipelining.microbatch`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "merge_chunks split_args_kwargs_into_chunks",
    "TensorChunkSpec",
    "{name} is not served; fully_shard and parallelize_module are",
)
